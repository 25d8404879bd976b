// The contract of type and shape inference: one function per operator, for symbolic dimensions,
// for concrete ones and at run time.
#pragma once

#include <forward_list>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/value_type.h"
#include "ops/node_view.h"

namespace sardonyx::ops {

using ir::Dim;
using ir::Dims;
using ir::ValueType;

// What is known of one value before (or while) the model runs.
struct ValueFacts {
  ValueFacts();  // not the compiler's, which clears all bytes before it makes the members

  ValueType type;
  // All elements, where they are known (an initializer, a folded value, a value at run time).
  // Null where they are not; inference of symbolic values leaves it out, too, where `elements` say
  // the same: see InferContext::constant.
  std::shared_ptr<const Tensor> constant;
  // The elements of a small integer or boolean tensor as expressions, in row-major order; of a
  // sequence or an optional one: how many values it holds. Null where nothing is known.
  std::shared_ptr<const Dims> elements;

  static ValueFacts of(Tensor tensor);       // type, constant and elements
  static ValueFacts of(const Value& value);  // the same of a tensor, of others the type
  static ValueFacts of(ValueType type) {
    ValueFacts known;
    known.type = std::move(type);
    return known;
  }
  // Of an int64 tensor of rank 1 with up to max_known_elements: type and elements.
  static ValueFacts of(std::span<const int64_t> list);
};

// The tensor that `elements` make; nullopt where they aren't all numbers or the type is not one
// that shape computations use.
std::optional<Tensor> tensor_of_elements(const ValueFacts& known);

// The constants of values whose elements are known, made for those who ask for them.
class MadeConstants {
 public:
  // Null where not known; good as long as `known` and this are.
  const Tensor* of(const ValueFacts& known);

 private:
  std::forward_list<Tensor> made_;
};

// Tensors up to this many elements carry their elements as expressions.
inline constexpr int64_t max_known_elements = 1024;

// Something that must hold for the run to be sound but that symbolic sizes leave open. Checked
// whenever sizes are bound, before any step runs.
struct Constraint {
  enum class Kind { equal, at_least, broadcast };
  Kind kind;
  Dim a, b;             // a == b, a >= b, or: a == b or one of them is 1
  std::string message;  // "MatMul 'm': the inner dimensions of A and B must agree"
};

// Infers a subgraph with the given inputs, seeing the outer scope of the node it belongs to.
// Returns what is known of its outputs.
using InferSubgraph = std::function<std::vector<ValueFacts>(const ir::Graph& graph,
                                                            std::span<const ValueFacts> inputs)>;

// How far inference goes.
struct InferMode {
  // Unknown elements of small integer tensors get names, too, and sizes that must be equal are
  // taken to be: what holds if the model runs at all. A plan may not build on that.
  bool symbolic_values = false;
  // What comparisons of sizes make is an expression, 0 or 1, where it is no number: for who wants
  // to know which sizes decide a condition.
  bool fold_predicates = false;
  // What inference may still cost; null: anything. At 0, what would take rounds is left open.
  const int64_t* budget = nullptr;
  // Below 0: nothing large may be made known of a value.
  const int64_t* bytes = nullptr;
};

// Reports by throwing Error through fail(); the walk turns that into a diagnostic with the node's
// place. One thread at a time.
class InferContext : public NodeView {
 public:
  // `inputs` has one entry per input of the node, null for absent ones. `constraints` and
  // `subgraph` may be null. `outputs` loses what it holds and gets what is found of the outputs.
  InferContext(const ir::Node& node, const schema::Signature* signature,
               std::span<const ValueFacts* const> inputs, ir::SymbolTable& symbols,
               std::vector<Constraint>* constraints, const InferSubgraph* subgraph,
               std::vector<ValueFacts>& outputs, InferMode mode = {})
      : NodeView(node, signature),
        inputs_(inputs),
        symbols_(symbols),
        constraints_(constraints),
        subgraph_(subgraph),
        outputs_(outputs),
        mode_(mode) {
    outputs_.clear();
    outputs_.resize(node.outputs.size());
  }

  // Inputs. An absent or unknown input has a type of kind none.
  const ValueType& type(int i) const { return known(i).type; }
  ElementType element(int i) const { return type(i).element; }
  // The shape of input i, where its rank is known.
  const std::optional<Dims>& shape(int i) const { return type(i).shape; }
  std::optional<int64_t> rank(int i) const;
  const Tensor* constant(int i) const;  // null where not known
  // Null where not known.
  const Dims* elements(int i) const { return known(i).elements.get(); }
  // The elements of an integer input where every one is a known number.
  std::optional<std::vector<int64_t>> integers(int i) const;
  // What is known of input i as a whole (absent: nothing known).
  const ValueFacts& known(int i) const {
    const auto index = static_cast<size_t>(i);  // a negative one is beyond all
    return index < inputs_.size() && inputs_[index] != nullptr ? *inputs_[index] : nothing_known;
  }

  // Outputs. What is not set stays unknown.
  void set(int i, ValueType type);
  void set(int i, ElementType element, Dims shape) {
    set(i, ValueType::tensor(element, std::move(shape)));
  }
  void set_elements(int i, Dims elements);  // of an integer output, type set before
  void set_constant(int i, Tensor tensor);  // sets type and elements too
  void set_known(int i, ValueFacts known);
  ValueFacts& output(int i) { return outputs_[static_cast<size_t>(i)]; }
  // Brings the outputs to what the rest may rely on: no size is indefinite, no element lies
  // outside its type, all of a tensor's elements are known or none.
  void settle_outputs();

  // Sizes.
  Dim unknown(std::optional<Dim> upper = {});  // decided by the run
  // An element that only the run decides; nullopt where such are not named.
  std::optional<Dim> unknown_element();
  Dims unknown_shape(int64_t rank);
  // a and b must be equal (at least): fails where they surely aren't, records a constraint where
  // that is open, or learns it with symbolic values, which records none. `what`: "the inner
  // dimensions of A and B must agree".
  void require_equal(const Dim& a, const Dim& b, std::string_view what);
  void require_at_least(const Dim& a, const Dim& b, std::string_view what);
  // Numpy's multidirectional broadcasting of known-rank shapes; incompatible sizes fail.
  Dims broadcast(std::span<const Dim> a, std::span<const Dim> b);

  // Infers a graph attribute's graph with these inputs; fails where the context has none.
  std::vector<ValueFacts> infer_subgraph(const ir::Graph& graph,
                                         std::span<const ValueFacts> inputs);
  ir::SymbolTable& symbols() { return symbols_; }
  const InferMode& mode() const { return mode_; }
  bool is_over_bytes() const { return mode_.bytes != nullptr && *mode_.bytes < 0; }
  bool is_over_budget() const { return mode_.budget != nullptr && *mode_.budget <= 0; }

 private:
  static const ValueFacts nothing_known;

  Dim definite(const Dim& dim);
  void settle(ValueFacts& output);

  std::span<const ValueFacts* const> inputs_;
  ir::SymbolTable& symbols_;
  std::vector<Constraint>* constraints_;
  const InferSubgraph* subgraph_;
  std::vector<ValueFacts>& outputs_;
  InferMode mode_;
  mutable MadeConstants made_constants_;
};

}  // namespace sardonyx::ops
