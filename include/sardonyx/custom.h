// Operators of one's own: signature, inference and kernel in C++, in the program itself or in a
// library that is named when a model is loaded (docs/custom_operators.md).
//
//   auto operators = std::make_shared<sardonyx::CustomOperators>();
//   operators->add("com.example", "Twice\n since 1\n in x: T\n out y: T\n where T in float double",
//                  std::make_shared<Twice>());
//   sardonyx::Model model("model.onnx", {.custom_operators = operators});
//
// What a kernel meets is pure virtual or inline: a library of operators needs these headers and no
// symbol of Sardonyx. Everything that leaves one of its functions by exception is reported with
// the node's place; fail() is the direct way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sardonyx/element_type.h"
#include "sardonyx/value.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

class ShapeInferenceContext;

// A dimension: a number, or an expression of the model's names ("2*batch + 1"). Valid during the
// call of infer() that it belongs to.
class SymbolicDim {
 public:
  SymbolicDim(int64_t value = 0) : value_(value) {}  // NOLINT: a number is a size
  // For implementations of ShapeInferenceContext: expression `number` of this context.
  SymbolicDim(ShapeInferenceContext* context, int64_t number) : context_(context), value_(number) {}

  bool is_number() const { return context_ == nullptr; }
  int64_t value() const { return value_; }  // the number; of an expression, its place
  ShapeInferenceContext* context() const { return context_; }

  friend SymbolicDim operator+(SymbolicDim a, SymbolicDim b) { return combined('+', a, b); }
  friend SymbolicDim operator-(SymbolicDim a, SymbolicDim b) { return combined('-', a, b); }
  friend SymbolicDim operator*(SymbolicDim a, SymbolicDim b) { return combined('*', a, b); }
  friend SymbolicDim floor_div(SymbolicDim a, SymbolicDim b) { return combined('/', a, b); }
  friend SymbolicDim ceil_div(SymbolicDim a, SymbolicDim b) { return combined('^', a, b); }
  friend SymbolicDim min(SymbolicDim a, SymbolicDim b) { return combined('<', a, b); }
  friend SymbolicDim max(SymbolicDim a, SymbolicDim b) { return combined('>', a, b); }

 private:
  static SymbolicDim combined(char operation, SymbolicDim a, SymbolicDim b);

  ShapeInferenceContext* context_ = nullptr;
  int64_t value_;
};

// Where a tensor's elements lie, row-major; strings are std::string objects. Borrowed.
struct CustomTensor {
  ElementType type = ElementType::undefined;
  std::span<const int64_t> shape;
  void* data = nullptr;
  int64_t count = 0;  // elements

  // The elements as T; throws std::logic_error where they are of another type.
  template <class T>
  std::span<const T> elements() const {
    require<T>();
    return {static_cast<const T*>(data), static_cast<size_t>(count)};
  }
  template <class T>
  std::span<T> mutable_elements() const {
    require<T>();
    return {static_cast<T*>(data), static_cast<size_t>(count)};
  }

 private:
  template <class T>
  void require() const {
    if (type != element_type_of<T>::value)
      throw std::logic_error("the elements of a tensor are read as another type than they have");
  }
};

// What every stage sees of its node. Attribute getters give the node's value, then the default of
// the signature; where there is neither, they report the node as broken.
class CustomNode {
 public:
  virtual int input_count() const = 0;  // absent ones before the last included
  virtual int output_count() const = 0;
  virtual bool has_input(int i) const = 0;
  virtual bool has_output(int i) const = 0;
  virtual ElementType element(int input) const = 0;  // undefined where it is not known yet
  virtual std::optional<int64_t> rank(int input) const = 0;
  // The elements of an input that never changes (an initializer, a constant); data null where it
  // may change, and in reference runs. Valid during this call: a kernel keeps a copy of what it
  // needs.
  virtual CustomTensor constant(int input) const = 0;
  // The `since` of the signature that the model's import chooses.
  virtual int32_t since() const = 0;

  virtual bool has_attribute(std::string_view name) const = 0;  // in the node itself
  virtual int64_t attribute_int(std::string_view name) const = 0;
  virtual float attribute_float(std::string_view name) const = 0;
  virtual std::string attribute_string(std::string_view name) const = 0;
  virtual std::vector<int64_t> attribute_ints(std::string_view name) const = 0;
  virtual std::vector<float> attribute_floats(std::string_view name) const = 0;
  virtual std::vector<std::string> attribute_strings(std::string_view name) const = 0;
  // A tensor attribute, decoded; valid as long as this object.
  virtual CustomTensor attribute_tensor(std::string_view name) const = 0;

  // Reports what is wrong with the node, with its place before the message.
  [[noreturn]] virtual void fail(std::string_view message) const = 0;

 protected:
  ~CustomNode() = default;
};

// Types and shapes of the outputs from those of the inputs, for numbers and names alike. Inputs
// are of types that the signature allows.
class ShapeInferenceContext : public CustomNode {
 public:
  // A dimension of an input whose rank is known.
  virtual SymbolicDim size(int input, int64_t axis) = 0;
  // Of an output; what is not set stays unknown. A set shape may hold unknown().
  virtual void set_output(int output, ElementType type, const std::vector<SymbolicDim>& shape) = 0;
  virtual void set_output_of_any_rank(int output, ElementType type) = 0;
  // The type and shape of an input.
  virtual void set_output_like(int output, int input) = 0;
  // A size that the data decide; kernels of such outputs allocate them. At most `bound`.
  virtual SymbolicDim unknown() = 0;
  virtual SymbolicDim unknown(SymbolicDim bound) = 0;
  // What the two sizes broadcast to; reports those that can't.
  virtual SymbolicDim broadcast(SymbolicDim a, SymbolicDim b) = 0;
  // Reports sizes that surely differ, and has those that may differ checked by each run. `rule`:
  // "the inner dimensions of A and B must agree".
  virtual void require_equal(SymbolicDim a, SymbolicDim b, std::string_view rule) = 0;
  virtual SymbolicDim combine(char operation, SymbolicDim a, SymbolicDim b) = 0;  // of SymbolicDim
  // The number or expression as text, the same for equal ones: "2*batch + 1".
  virtual std::string text_of(SymbolicDim size) const = 0;

 protected:
  ~ShapeInferenceContext() = default;
};

inline SymbolicDim SymbolicDim::combined(char operation, SymbolicDim a, SymbolicDim b) {
  ShapeInferenceContext* const context = a.context_ != nullptr ? a.context_ : b.context_;
  if (context != nullptr) return context->combine(operation, a, b);  // by inference
  const int64_t x = a.value_, y = b.value_;
  int64_t result = 0;
  bool overflow = false;
  switch (operation) {
    case '+': overflow = __builtin_add_overflow(x, y, &result); break;
    case '-': overflow = __builtin_sub_overflow(x, y, &result); break;
    case '*': overflow = __builtin_mul_overflow(x, y, &result); break;
    case '<': return x < y ? x : y;
    case '>': return x > y ? x : y;
    default:
      if (y == 0 || (y == -1 && x == INT64_MIN)) throw std::domain_error("a size is divided by 0");
      result = x / y;
      if (x % y != 0) result += operation == '^' ? ((x < 0) == (y < 0)) : -((x < 0) != (y < 0));
  }
  if (overflow) throw std::overflow_error("a size does not fit 64 bits");
  return result;
}

// What a kernel is made from: for each node of a session, before any run where ranks are known.
class KernelBuilder : public CustomNode {
 public:
  // run() may be given output `output` in the memory of input `input`, where the two have one
  // size and nobody else needs that input.
  virtual void may_share(int output, int input) = 0;
  // run() calls KernelContext::allocate for every output; needed where infer() left a size
  // unknown().
  virtual void allocates_outputs() = 0;
  // Input `input` is never read by run(), since the kernel keeps what it needs of it.
  virtual void does_not_read(int input) = 0;

  // Names in the graph that runs; empty for absent inputs and outputs, and for nodes without one.
  virtual std::string node_name() const = 0;
  virtual std::string input_name(int i) const = 0;
  virtual std::string output_name(int i) const = 0;
  // What is known before any run: -1 for open sizes; nothing where the rank is open.
  virtual std::optional<std::vector<int64_t>> input_shape(int i) const = 0;
  virtual std::optional<std::vector<int64_t>> output_shape(int i) const = 0;
  virtual ElementType output_element(int i) const = 0;  // undefined where it is not known

  // What `make` gave when this node was prepared first, for what must be made once: a node is
  // prepared again for sizes that decide ranks, and by runs where ranks or types are open. It
  // lives as long as the node.
  virtual std::shared_ptr<void> once(const std::function<std::shared_ptr<void>()>& make) const = 0;

 protected:
  ~KernelBuilder() = default;
};

// Sizes of a kernel's inputs and outputs (outputs of kernels that allocate are not known).
class CustomShapes {
 public:
  virtual bool has_input(int i) const = 0;
  virtual bool has_output(int i) const = 0;
  virtual std::span<const int64_t> input_shape(int i) const = 0;
  virtual std::span<const int64_t> output_shape(int i) const = 0;

 protected:
  ~CustomShapes() = default;
};

// One run of one node.
class KernelContext {
 public:
  virtual bool has_input(int i) const = 0;
  virtual bool has_output(int i) const = 0;
  virtual CustomTensor input(int i) const = 0;   // not to be written to
  virtual CustomTensor output(int i) const = 0;  // to be filled
  // Output `output` with this shape, to be filled; for kernels that allocate, which do so once for
  // every output that the node has.
  virtual CustomTensor allocate(int output, const std::vector<int64_t>& shape) = 0;
  // As much memory as the kernel asked for, aligned to 64 bytes, uninitialised.
  virtual void* scratch() const = 0;
  // Calls body(begin, end) for pieces of [0, count) of `grain` each, on the threads of the session.
  // The pieces depend on nothing but count and grain; the first exception of one ends the run.
  template <class Body>
  void parallel_for(int64_t count, int64_t grain, Body&& body) const {
    using Held = std::remove_reference_t<Body>;
    run_pieces(
        count, grain,
        [](const void* held, int64_t begin, int64_t end) {
          (*static_cast<Held*>(const_cast<void*>(held)))(begin, end);
        },
        &body);
  }
  // True once the caller has cancelled the run or its deadline has passed: long kernels may return
  // early then; their outputs are not used.
  virtual bool is_cancelled() const = 0;
  // The values that came in can't be computed with. Ends the run.
  [[noreturn]] virtual void fail(std::string_view message) const = 0;

 protected:
  virtual void run_pieces(int64_t count, int64_t grain, void (*body)(const void*, int64_t, int64_t),
                          const void* held) const = 0;  // what parallel_for() calls
  ~KernelContext() = default;
};

// A node prepared to run. Immutable: any number of threads may run it at the same time.
class CustomKernel {
 public:
  virtual ~CustomKernel() = default;
  // As `sardonyx explain` shows it.
  virtual std::string name() const { return "custom"; }
  // Bytes of scratch memory that a run with these sizes needs.
  virtual int64_t scratch_bytes(const CustomShapes&) const { return 0; }
  virtual void run(KernelContext& run) const = 0;
};

// An operator: the same object serves all models, sessions and threads, so it has no state that
// changes.
class CustomOperator {
 public:
  virtual ~CustomOperator() = default;
  virtual void infer(ShapeInferenceContext& context) const = 0;
  virtual std::unique_ptr<CustomKernel> prepare(KernelBuilder& context) const = 0;
  // Whether prepare() can do without ranks of inputs, which the model may leave open. Otherwise
  // each run prepares such a node anew.
  virtual bool prepares_without_ranks() const { return false; }
};

// Where operators are added; a library meets nothing else of the table they go to.
class CustomRegistry {
 public:
  // `signature` is a signature file's text (docs/spec_format.md), one operator with its versions.
  // Domains of the standard, and names that Sardonyx has itself, are refused: Error (bad_input),
  // as for a text that can't be read, with the line.
  virtual void add(std::string_view domain, std::string_view signature,
                   std::shared_ptr<const CustomOperator> op) = 0;

 protected:
  ~CustomRegistry() = default;
};

// The operators that a program adds to those of Sardonyx, for the models it gives them to
// (LoadOptions). Filled by one thread, then shared; what models have taken does not change by what
// is added later.
class CustomOperators final : public CustomRegistry {
 public:
  CustomOperators();
  ~CustomOperators();
  CustomOperators(const CustomOperators&) = delete;
  CustomOperators& operator=(const CustomOperators&) = delete;

  void add(std::string_view domain, std::string_view signature,
           std::shared_ptr<const CustomOperator> op) override;  // throws Error (bad_input)

  // Loads a library of operators, which runs code of it: only ever one that the user named. The
  // library stays loaded as long as anything made with its operators. Throws Error: (unreadable)
  // for a file that is no library, or none of operators, (unsupported) for one that was built for
  // another Sardonyx or C++ library, (bad_input) for what add() refuses.
  void load(const std::string& path);

  struct [[gnu::visibility("hidden")]] Implementation;  // for the library itself
  const Implementation& implementation() const { return *implementation_; }

 private:
  std::unique_ptr<Implementation> implementation_;
};

// What a library of operators must have been built with, as text: the version of the interfaces
// above and the C++ library whose types they hold.
#ifdef _GLIBCXX_USE_CXX11_ABI
#define SARDONYX_CXX_LIBRARY (_GLIBCXX_USE_CXX11_ABI ? "libstdc++ (C++11)" : "libstdc++ (old)")
#elif defined(_LIBCPP_VERSION)
#define SARDONYX_CXX_LIBRARY "libc++"
#else
#define SARDONYX_CXX_LIBRARY "another C++ library"
#endif
inline constexpr int32_t custom_operators_abi = 2;
inline constexpr const char* custom_operators_cxx = SARDONYX_CXX_LIBRARY;

// Begins the one function of a library of operators:
//
//   SARDONYX_OPERATOR_LIBRARY(registry) { registry.add("com.example", …); }
//
// The names it exports, and what they are, never change: sardonyx_operators_abi (int32_t),
// sardonyx_operators_cxx (const char*) and sardonyx_add_operators (CustomRegistry&).
#define SARDONYX_OPERATOR_LIBRARY(registry)                                                \
  extern "C" {                                                                             \
  [[gnu::visibility("default")]] extern const int32_t sardonyx_operators_abi;              \
  [[gnu::visibility("default")]] extern const char* const sardonyx_operators_cxx;          \
  [[gnu::visibility("default")]] void sardonyx_add_operators(::sardonyx::CustomRegistry&); \
  const int32_t sardonyx_operators_abi = ::sardonyx::custom_operators_abi;                 \
  const char* const sardonyx_operators_cxx = ::sardonyx::custom_operators_cxx;             \
  }                                                                                        \
  void sardonyx_add_operators(::sardonyx::CustomRegistry& registry)

}  // namespace sardonyx

#pragma GCC visibility pop
