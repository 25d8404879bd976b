#include "ops/custom.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>

#include "base/fail.h"
#include "ir/internal_domain.h"
#include "ir/tensor.h"
#include "schema/type_id.h"

namespace sardonyx::ops {
namespace {

struct Bound final : ir::CustomBinding {
  std::shared_ptr<const CustomEntry> entry;
  const schema::Signature* signature = nullptr;
  mutable std::mutex mutex;
  mutable std::shared_ptr<void> kept;  // by KernelBuilder::once()
};

const Bound& bound(const ir::Node& node) { return static_cast<const Bound&>(*node.custom); }

CustomTensor described(const Tensor& tensor) {
  return {tensor.element_type(), tensor.shape(), const_cast<void*>(tensor.data()), tensor.size()};
}

// Runs code from outside; whatever it throws becomes an error of this node.
template <class Call>
auto guarded(const NodeView& node, Call&& call) {
  try {
    return call();
  } catch (const Error& error) {
    if (!error.location().empty()) throw;
    node.fail(error.code(), "{}", error.message());
  } catch (const std::exception& error) {
    node.fail("{}", error.what());
  } catch (...) {
    node.fail("the operator's code threw something that is no std::exception");
  }
}

// The same while a model runs, whose executor knows the place.
template <class Call>
auto guarded_run(Call&& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(ErrorCode::run_failed, "{}", error.what());
  } catch (...) {
    fail(ErrorCode::run_failed, "the kernel threw something that is no std::exception");
  }
}

// ---- what all stages of a node have in common

// `Context` is InferContext or PrepareContext, `Interface` what it looks like from outside.
template <class Interface, class Context>
class Node : public Interface {
 public:
  explicit Node(Context& context) : context_(context) {}

  int input_count() const override { return context_.input_count(); }
  int output_count() const override { return context_.output_count(); }
  bool has_input(int i) const override { return i >= 0 && context_.has_input(i); }
  bool has_output(int i) const override { return i >= 0 && context_.has_output(i); }
  ElementType element(int input) const override { return type(input).element; }
  std::optional<int64_t> rank(int input) const override {
    const auto rank = type(input).rank();
    return rank ? std::optional(static_cast<int64_t>(*rank)) : std::nullopt;
  }
  CustomTensor constant(int input) const override {
    if (!has_input(input)) return {};
    const Tensor* held = context_.constant(input);
    return held != nullptr ? described(*held) : CustomTensor();
  }
  int32_t since() const override { return context_.signature()->since; }

  bool has_attribute(std::string_view name) const override { return context_.has_attribute(name); }
  int64_t attribute_int(std::string_view name) const override { return context_.attr_int(name); }
  float attribute_float(std::string_view name) const override { return context_.attr_float(name); }
  std::string attribute_string(std::string_view name) const override {
    return context_.attr_string(name);
  }
  std::vector<int64_t> attribute_ints(std::string_view name) const override {
    return required(context_.attr_ints(name), name);
  }
  std::vector<float> attribute_floats(std::string_view name) const override {
    return required(context_.attr_floats(name), name);
  }
  std::vector<std::string> attribute_strings(std::string_view name) const override {
    return required(context_.attr_strings(name), name);
  }
  CustomTensor attribute_tensor(std::string_view name) const override {
    const ir::TensorProto* proto = context_.attr_tensor(name);
    if (proto == nullptr) context_.fail("attribute '{}' is missing", name);
    return described(tensors_.emplace_back(ir::aligned(ir::to_tensor(*proto))));
  }
  [[noreturn]] void fail(std::string_view message) const override { context_.fail("{}", message); }

 protected:
  const ValueType& type(int input) const {
    static const ValueType none;
    if (!has_input(input)) return none;
    if constexpr (std::is_same_v<Context, InferContext>)
      return context_.type(input);
    else
      return context_.in_type(input);
  }
  template <class T>
  T required(std::optional<T> value, std::string_view name) const {
    if (!value) context_.fail("attribute '{}' is missing", name);
    return *std::move(value);
  }

  Context& context_;

 private:
  mutable std::deque<Tensor> tensors_;
};

// ---- inference

class Inference final : public Node<ShapeInferenceContext, InferContext> {
 public:
  using Node::Node;

  SymbolicDim size(int input, int64_t axis) override {
    const auto& shape = type(input).shape;
    if (!shape)
      context_.fail("the operator's inference asks for a size of input {}, whose rank is not known",
                    input);
    const auto rank = static_cast<int64_t>(shape->size());
    const int64_t at = context_.normalized_axis(axis, rank);
    return handle((*shape)[static_cast<size_t>(at)]);
  }

  void set_output(int output, ElementType type, const std::vector<SymbolicDim>& shape) override {
    Dims dims;
    for (const SymbolicDim& size : shape) {
      dims.push_back(dim(size));
      if (dims.back().is_constant() && *dims.back().value() < 0)
        context_.fail("dimension {} of output {} comes out as {}", dims.size() - 1, output,
                      *dims.back().value());
    }
    set(output, ValueType::tensor(type, std::move(dims)));
  }
  void set_output_of_any_rank(int output, ElementType type) override {
    set(output, ValueType::tensor(type));
  }
  void set_output_like(int output, int input) override { set(output, type(input)); }

  SymbolicDim unknown() override { return handle(context_.unknown()); }
  SymbolicDim unknown(SymbolicDim bound) override { return handle(context_.unknown(dim(bound))); }
  SymbolicDim broadcast(SymbolicDim a, SymbolicDim b) override {
    const Dim x[] = {dim(a)}, y[] = {dim(b)};
    return handle(context_.broadcast(x, y)[0]);
  }
  void require_equal(SymbolicDim a, SymbolicDim b, std::string_view rule) override {
    context_.require_equal(dim(a), dim(b), rule);
  }
  SymbolicDim combine(char operation, SymbolicDim a, SymbolicDim b) override {
    const Dim x = dim(a), y = dim(b);
    switch (operation) {
      case '+': return handle(x + y);
      case '-': return handle(x - y);
      case '*': return handle(x * y);
      case '/': return handle(floor_div(x, y));
      case '^': return handle(ceil_div(x, y));
      case '<': return handle(min(x, y));
      case '>': return handle(max(x, y));
      default: context_.fail("the operator's inference combines sizes by '{}'", operation);
    }
  }
  std::string text_of(SymbolicDim size) const override { return dim(size).to_string(); }

 private:
  SymbolicDim handle(Dim dim) {
    if (dim.is_constant()) return {*dim.value()};
    dims_.push_back(std::move(dim));
    return {this, static_cast<int64_t>(dims_.size()) - 1};
  }
  Dim dim(const SymbolicDim& size) const {
    if (size.is_number()) return {size.value()};
    if (size.context() != this || size.value() < 0 ||
        size.value() >= static_cast<int64_t>(dims_.size()))
      context_.fail("the operator's inference uses a size of another call");
    return dims_[static_cast<size_t>(size.value())];
  }
  void set(int output, ValueType type) {
    const schema::Formal* formal =
        output < 0 ? nullptr : context_.signature()->output(static_cast<size_t>(output));
    if (formal == nullptr)
      context_.fail("the operator's inference sets output {}, which its signature does not have",
                    output);
    if (!is_known(type.element) && type.element != ElementType::undefined)
      context_.fail("the operator's inference gives output {} an element type that there is not",
                    output);
    const schema::TypeId id = schema::type_id(type);
    if (type.element != ElementType::undefined && !schema::allows(*formal, id))
      context_.fail(
          "the operator's inference makes output {} ('{}') {}, which its signature does "
          "not allow",
          output, formal->name, schema::to_string(id));
    if (has_output(output)) context_.set(output, std::move(type));
  }

  Dims dims_;
};

void infer(InferContext& context) {
  Inference inference(context);
  guarded(context, [&] { bound(context.node()).entry->op->infer(inference); });
}

// ---- preparation and running

class Preparation final : public Node<KernelBuilder, PrepareContext> {
 public:
  using Node::Node;

  void may_share(int output, int input) override {
    require(output, input);
    traits_.in_place.push_back({output, input});
  }
  void allocates_outputs() override { traits_.allocates_outputs = true; }
  void does_not_read(int input) override {
    require(0, input);
    traits_.unread_inputs.push_back(input);
  }
  std::string node_name() const override { return context_.node().name; }
  std::string input_name(int i) const override {
    return has_input(i) ? context_.node().inputs[static_cast<size_t>(i)] : "";
  }
  std::string output_name(int i) const override {
    return has_output(i) ? context_.node().outputs[static_cast<size_t>(i)] : "";
  }
  std::optional<std::vector<int64_t>> input_shape(int i) const override {
    return known_sizes(context_.in_type(i));
  }
  std::optional<std::vector<int64_t>> output_shape(int i) const override {
    return known_sizes(context_.out_type(i));
  }
  ElementType output_element(int i) const override { return context_.out_element(i); }
  std::shared_ptr<void> once(const std::function<std::shared_ptr<void>()>& make) const override {
    const Bound& node = bound(context_.node());
    const std::lock_guard lock(node.mutex);
    if (node.kept == nullptr) node.kept = make();
    return node.kept;
  }
  StepTraits take_traits() { return std::move(traits_); }

 private:
  static std::optional<std::vector<int64_t>> known_sizes(const ValueType& type) {
    if (!type.shape) return std::nullopt;
    std::vector<int64_t> sizes;
    for (const Dim& dim : *type.shape) sizes.push_back(dim.value().value_or(-1));
    return sizes;
  }
  void require(int output, int input) const {
    if (input < 0 || input >= input_count() || output < 0 || output >= output_count())
      context_.fail(
          "the operator's preparation speaks of input {} and output {}; the node has {} "
          "and {}",
          input, output, input_count(), output_count());
  }
  StepTraits traits_;
};

template <class Context>
class Shapes final : public CustomShapes {
 public:
  Shapes(const Context& context, bool outputs_known)
      : context_(context), outputs_known_(outputs_known) {}
  bool has_input(int i) const override { return i >= 0 && context_.has_input(i); }
  bool has_output(int i) const override { return i >= 0 && context_.has_output(i); }
  std::span<const int64_t> input_shape(int i) const override {
    return has_input(i) ? context_.in_shape(i) : std::span<const int64_t>();
  }
  std::span<const int64_t> output_shape(int i) const override {
    return outputs_known_ && has_output(i) ? context_.out_shape(i) : std::span<const int64_t>();
  }

 private:
  const Context& context_;
  const bool outputs_known_;
};

class Run final : public KernelContext {
 public:
  Run(RunContext& run, bool allocates) : run_(run), allocates_(allocates) {}

  bool has_input(int i) const override { return i >= 0 && run_.has_input(i); }
  bool has_output(int i) const override { return i >= 0 && run_.has_output(i); }
  CustomTensor input(int i) const override {
    if (!has_input(i)) return {};
    return {run_.in_type(i), run_.in_shape(i), const_cast<void*>(run_.data(i)), run_.in_size(i)};
  }
  CustomTensor output(int i) const override {
    if (!has_output(i)) return {};
    if (allocates_) fail("the kernel says that it allocates its outputs and asks for one");
    return {run_.out_type(i), run_.out_shape(i), run_.out_data(i), run_.out_size(i)};
  }
  CustomTensor allocate(int i, const std::vector<int64_t>& shape) override {
    if (!has_output(i)) return {};
    if (!allocates_)
      fail("the kernel allocates an output without having said so when it was prepared");
    void* const data = run_.allocate_output(i, shape);
    made_.resize(static_cast<size_t>(run_.output_count()));
    made_[static_cast<size_t>(i)] = true;
    return {run_.out_type(i), run_.out_shape(i), data, run_.out_size(i)};
  }
  bool has_made(int i) const {
    return static_cast<size_t>(i) < made_.size() && made_[static_cast<size_t>(i)];
  }
  void* scratch() const override { return run_.scratch(); }
  bool is_cancelled() const override {
    try {
      run_.environment().check_cancelled();
      return false;
    } catch (const Error&) {
      return true;
    }
  }
  [[noreturn]] void fail(std::string_view message) const override {
    throw Error(ErrorCode::run_failed, std::string(message));
  }

 protected:
  void run_pieces(int64_t count, int64_t grain, void (*body)(const void*, int64_t, int64_t),
                  const void* held) const override {
    run_.pool().parallel_for(count, std::max<int64_t>(grain, 1),
                             [&](int64_t begin, int64_t end, int) { body(held, begin, end); });
  }

 private:
  RunContext& run_;
  const bool allocates_;
  std::vector<bool> made_;  // outputs that have been allocated
};

class CustomStep final : public Step {
 public:
  // Keeps the library loaded until the kernel has gone.
  CustomStep(std::shared_ptr<const ir::CustomBinding> binding,
             std::unique_ptr<const CustomKernel> kernel, StepTraits given)
      : binding_(std::move(binding)), kernel_(std::move(kernel)) {
    name_ = kernel_->name();
    traits() = std::move(given);
  }
  std::string_view kernel() const override { return name_; }

  void bind(BindContext& context) const override {
    const Shapes<BindContext> shapes(context, !traits().allocates_outputs);
    const int64_t bytes = guarded_run([&] { return kernel_->scratch_bytes(shapes); });
    if (bytes < 0 || bytes > std::numeric_limits<int64_t>::max() / 2)
      fail(ErrorCode::run_failed, "the kernel asks for {} bytes of scratch memory", bytes);
    context.need_scratch(bytes);
  }

  void run(RunContext& context) const override {
    Run run(context, traits().allocates_outputs);
    guarded_run([&] { kernel_->run(run); });
    context.environment().check_cancelled();
    for (int i = 0; traits().allocates_outputs && i < context.output_count(); ++i) {
      if (context.has_output(i) && !run.has_made(i))
        fail(ErrorCode::run_failed, "the kernel has not allocated output {}", i);
    }
  }

 private:
  const std::shared_ptr<const ir::CustomBinding> binding_;
  const std::unique_ptr<const CustomKernel> kernel_;
  std::string name_;
};

// Where the types of all inputs are known, inference has said those of the outputs.
void require_output_types(const PrepareContext& context, const Preparation& node) {
  for (int i = 0; i < node.input_count(); ++i)
    if (node.has_input(i) && node.element(i) == ElementType::undefined) return;
  for (int i = 0; i < node.output_count(); ++i)
    if (node.has_output(i) && node.output_element(i) == ElementType::undefined)
      context.fail("the operator's inference has not set the type of output {}", i);
}

std::unique_ptr<Step> prepare(PrepareContext& context) {
  Preparation preparation(context);
  require_output_types(context, preparation);
  const std::shared_ptr<const ir::CustomBinding> binding = context.node().custom;
  return guarded(context, [&]() -> std::unique_ptr<Step> {
    std::unique_ptr<CustomKernel> kernel = bound(context.node()).entry->op->prepare(preparation);
    if (kernel == nullptr) context.fail("the operator gives no kernel");
    return std::make_unique<CustomStep>(binding, std::move(kernel), preparation.take_traits());
  });
}

constexpr Operator outside = {
    .name = "", .domain = "", .infer = infer, .prepare = prepare, .upgrade = nullptr};

// ai.onnx.contrib is what ONNX Runtime's extensions have their operators in.
bool is_ours(std::string_view domain) {
  return domain.empty() || domain == ir::internal_domain ||
         (domain.starts_with("ai.onnx") && domain != "ai.onnx.contrib");
}

}  // namespace

void CustomTable::add(std::string_view domain, std::string_view signature,
                      std::shared_ptr<const CustomOperator> op,
                      std::shared_ptr<const void> library) {
  if (op == nullptr) fail(ErrorCode::bad_input, "an operator is added without its code");
  if (is_ours(ir::canonical_domain(domain)))
    fail(ErrorCode::bad_input,
         "the domain '{}' is not free; operators of one's own go to a domain of one's own, such as "
         "com.example",
         domain);
  auto signatures = schema::parse_signatures(domain, signature);
  const std::string_view name = signatures->versions().front().name;
  if (schema::newest(domain, name) != nullptr || find_operator(domain, name) != nullptr)
    fail(ErrorCode::bad_input, "Sardonyx has the operator {}.{} itself", domain, name);
  CustomEntry entry{std::move(library), std::move(signatures), std::move(op)};
  Key key(domain, name);
  if (entries_.contains(key))
    fail(ErrorCode::bad_input, "the operator {}.{} has been added before", domain, name);
  entries_.emplace(std::move(key), std::make_shared<const CustomEntry>(std::move(entry)));
}

void CustomTable::add_all(const CustomTable& other) {
  for (const auto& [key, entry] : other.entries_) {
    if (!entries_.emplace(key, entry).second)
      fail(ErrorCode::bad_input, "the operator {}.{} has been added before", key.first, key.second);
  }
}

std::span<const schema::Signature> CustomTable::versions(std::string_view domain,
                                                         std::string_view name) const {
  const auto found = entries_.find(Key(domain, name));
  if (found == entries_.end()) return {};
  return found->second->signatures->versions();
}

std::vector<std::string_view> CustomTable::names(std::string_view domain) const {
  std::vector<std::string_view> names;
  for (const auto& [key, entry] : entries_) {
    if (key.first == domain) names.push_back(key.second);
  }
  return names;
}

std::shared_ptr<const ir::CustomBinding> CustomTable::bind(std::string_view domain,
                                                           std::string_view name,
                                                           int64_t opset) const {
  const auto found = entries_.find(Key(domain, name));
  if (found == entries_.end()) return nullptr;
  const schema::Signature* signature =
      schema::bound_version(found->second->signatures->versions(), opset);
  if (signature == nullptr) return nullptr;
  auto made = std::make_shared<Bound>();
  made->entry = found->second;
  made->signature = signature;
  return made;
}

const schema::Signature* custom_signature(const ir::Node& node) { return bound(node).signature; }
const Operator& custom_operator() { return outside; }
bool prepares_without_ranks(const ir::Node& node) {
  return node.custom != nullptr && bound(node).entry->op->prepares_without_ranks();
}

}  // namespace sardonyx::ops
