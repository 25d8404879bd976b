// Type and shape inference: one node, and the walk over a graph.
#pragma once

#include <functional>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/memory_account.h"
#include "base/name_map.h"
#include "ir/model.h"
#include "ops/operator.h"

namespace sardonyx::infer {

using ops::Constraint;
using ops::ValueFacts;

// What is known of the values visible at some point of a graph: its own names, then those of the
// graphs around it. Borrows the outer scope.
class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // Null where no value of this name is visible.
  const ValueFacts* find(const HashedName& name) const;
  const ValueFacts* find_here(const HashedName& name) const;
  // The reference stays valid as long as the scope does.
  ValueFacts& set(const HashedName& name, ValueFacts&& known);
  ValueFacts& set(const HashedName& name, const ValueFacts& known) {
    return set(name, ValueFacts(known));
  }
  // Room for so many more values.
  void reserve(size_t count);
  // For a scope that lasts longer than the one around it.
  void forget_outer() { outer_ = nullptr; }
  // All values of this graph, in the order in which they came.
  template <class Visit>
  void for_each_here(Visit&& visit) const {
    for (const std::vector<Value>& block : blocks_) {
      for (const Value& value : block) visit(value.name, value.known);
    }
  }

 private:
  struct Value {
    Value(std::string_view name, ValueFacts&& known) : name(name), known(std::move(known)) {}
    std::string_view name;  // in names_
    ValueFacts known;
  };
  static constexpr size_t first_names = 512;  // bytes

  MemoryCharge memory_;  // after all that may throw
  NameMap<Value*> values_;
  std::vector<std::vector<Value>> blocks_;  // of which none grows: values stay where they are
  std::pmr::monotonic_buffer_resource names_{first_names};
  const Scope* outer_;
};

// What the inference of one model may still cost. Loops within loops and long chains of arithmetic
// on sizes would take time without bound; when the budget is spent, what is left is inferred in one
// round, with open sizes.
struct Budget {
  int64_t nodes = 500'000;      // inferred inside subgraphs
  int64_t symbols = 4'000'000;  // in the expressions that nodes make
  // Of memory, about, for what inference of symbolic values knows of a value beyond what most have:
  // more than 8 sizes, more than 16 elements. When they are spent, such values keep neither.
  int64_t bytes = int64_t{256} << 20;
};

// Why a size or an element is unknown.
struct Unknown {
  Unknown(std::string node, std::string reason)
      : node(std::move(node)), reason(std::move(reason)) {}
  std::string node;    // "NonZero 'hits'": the node that makes it; "": the model's input has it
  std::string reason;  // "its data decide"; of an input, "value of 'trips'", "element 1 of 'sizes'"
};

// By symbol id. Those that one node makes share theirs.
using Unknowns = std::unordered_map<int, std::shared_ptr<const Unknown>>;

// What a model declares of a value and inference can't confirm.
struct Disagreement {
  std::string where;  // "value_info of function own.Twice": what declares it
  std::string value;
  std::string declared, inferred;  // types as text
  std::string source;              // of what was inferred: "the node makes", "it is given"
  std::string node;                // "Add 'sum'": the node that makes the value, or "input 'x'"
  // False: the declaration names or numbers a size that inference knows as an expression, which
  // may hold for some inputs; true: both can't be.
  bool contradiction = true;
  bool of_shapes = false;  // the types agree but for their shapes
};

// What inference collects while it walks.
struct InferenceContext {
  ir::SymbolTable* symbols = nullptr;              // never null
  std::vector<Constraint>* constraints = nullptr;  // null: not recorded
  // Given an error of a node, decides: return to go on (the node's outputs stay unknown). Empty:
  // the error is thrown.
  std::function<void(const ir::Node&, const Error&)> problem;
  std::shared_ptr<Budget> budget = std::make_shared<Budget>();  // never null

  // Inference of symbolic values (ops::InferMode) also believes the types that the graphs declare
  // where it can't tell itself, and reports those that it can't confirm.
  bool symbolic_values = false;
  bool fold_predicates = false;  // ops::InferMode
  std::function<void(Disagreement)> disagreement = {};
  Unknowns* unknowns = nullptr;  // null: not recorded
  // Given each subgraph and what is known of its values, each time it has been inferred. The scope
  // has no outer one any more.
  std::function<void(const ir::Graph&, std::unique_ptr<Scope>)> inferred = {};
};

// The signature and the operator a node of the newest version has. Throws Error (unsupported)
// where Sardonyx has no code for it, naming what is close.
struct Binding {
  const schema::Signature* signature;
  const ops::Operator* op;
};
Binding bind_node(const ir::Node& node);

// What is known of a node's outputs, given its inputs (null for absent ones). Integer outputs
// whose elements are all known numbers become constants.
std::vector<ValueFacts> infer_node(const ir::Node& node, const Binding& binding,
                                   std::span<const ValueFacts* const> inputs,
                                   const InferenceContext& inference,
                                   const ops::InferSubgraph* subgraph);
// The same into a list that node after node may use; what it holds is lost.
void infer_node(const ir::Node& node, const Binding& binding,
                std::span<const ValueFacts* const> inputs, const InferenceContext& inference,
                const ops::InferSubgraph* subgraph, std::vector<ValueFacts>& outputs);

// Infers a graph's nodes one by one, in order and each of the newest version, into `scope`, which
// must hold the graph's inputs already (see enter). Borrows all three; of the graph it reads what
// is declared of values.
class Walk {
 public:
  Walk(const ir::Graph& graph, Scope& scope, const InferenceContext& inference);
  ~Walk();
  // Declares a value that later steps make, as the graph's value_info does. `function` declares it,
  // as `own_name`.
  void declare(ir::ValueInfo info, std::string function, std::string own_name);
  void step(const ir::Node& node);
  // The same where the caller has looked its operator up.
  void step(const ir::Node& node, const Binding& binding);
  // A tensor that a step made has this shape, where that is not known of it: so an older version
  // says. Does nothing unless the inference is symbolic_values, since a run does not hold to it.
  void complete(std::string_view name, ir::Dims shape);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Walks over all nodes of the graph. Called for subgraphs by itself.
void infer_graph(const ir::Graph& graph, Scope& scope, const InferenceContext& inference);

// What the error of a node says whose input nothing before it makes.
inline constexpr std::string_view undefined_input = "is not defined before the node";

// Puts a graph's initializers into the scope; part of enter.
void enter_initializers(const ir::Graph& graph, Scope& scope, const InferenceContext& inference);

// Puts a graph's initializers and inputs into the scope. `inputs`: what is known of them, in
// order; missing ones are taken from their declarations. Inputs that have an initializer of the
// same name keep the initializer's type but not its elements: the caller may override them.
void enter(const ir::Graph& graph, Scope& scope, const InferenceContext& inference,
           std::span<const ValueFacts> inputs = {});

// What is known of the graph's outputs, after infer_graph.
std::vector<ValueFacts> outputs_of(const ir::Graph& graph, const Scope& scope,
                                   const InferenceContext& inference);

// Infers subgraphs of nodes whose graph's values are in `scope`. Borrows both.
ops::InferSubgraph subgraphs_of(const Scope& scope, const InferenceContext& inference);

// The names a graph reads from around it: not defined in it, in order of first use, subgraphs
// included.
std::vector<std::string> captured_names(const ir::Graph& graph);

}  // namespace sardonyx::infer
