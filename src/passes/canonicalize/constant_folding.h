// Constants computed before anything runs, in one walk with inference.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "infer/infer.h"
#include "ir/model.h"
#include "passes/assumptions.h"
#include "passes/optimize.h"

namespace sardonyx::passes {

// Gives a scope that holds what is known of a graph's inputs and initializers, and of what it
// captures.
using EnterGraph = std::function<std::unique_ptr<infer::Scope>()>;

struct FoldingOptions {
  // Leave DequantizeLinear in place: its weights are worth more as bytes.
  bool keep_dequantize = false;
  // What becomes of a graph inside a node; null: it stays as it is. `place` names it: "body of Loop
  // 'x'".
  std::function<void(ir::Graph& graph, const EnterGraph& enter, const std::string& place)> subgraph;
};

// Folds the graphs of one model, which share the budgets of `options`. Borrows the options.
class ConstantFolder {
 public:
  explicit ConstantFolder(const OptimizeOptions& options);

  // Infers all values of the graph into `scope`, which knows what enters it. What does not change
  // from run to run becomes an initializer, as far as the budgets go. An If whose condition is
  // known gives way to the branch that it takes. Throws Error with the node's place.
  // Returns whether nodes have changed.
  bool fold(ir::Graph& graph, infer::Scope& scope, const FoldingOptions& folding);

  const infer::InferenceContext& inference() const { return inference_; }

 private:
  using ValueFacts = infer::ValueFacts;
  using Scope = infer::Scope;
  // What the last inference of each subgraph of a node gave it as inputs: for a loop's body, types
  // that hold in every iteration.
  using Given = std::unordered_map<const ir::Graph*, std::vector<ValueFacts>>;
  struct Folded;

  void fold_into(Folded& to, ir::Node node);
  const ir::Graph* taken_branch(const ir::Node& node, std::span<const ValueFacts* const> inputs,
                                std::span<const ValueFacts> made, const Given& entering);
  void note_lengths(const ir::Node& node, std::span<const ValueFacts* const> inputs,
                    std::span<const ValueFacts> made);
  void visit_subgraphs(ir::Node& node, const Scope& scope, const Given& entering,
                       const FoldingOptions& folding);
  bool has_conditions(const ir::Node& node, const infer::Binding& binding,
                      std::span<const ValueFacts* const> inputs) const;
  bool fold_node(const ir::Node& node, const infer::Binding& binding,
                 std::span<const ValueFacts* const> inputs, std::vector<ValueFacts>& made,
                 bool keep_dequantize);
  void allow_for(int64_t bytes);

  const OptimizeOptions& options_;
  bool unreported_ = true;
  bool counted_ = false;  // the constants that the graph came with
  int64_t all_growth_left_;
  // Constants that folded nodes read: each makes room once, however many read it.
  std::unordered_set<std::string> replaced_;
  int64_t growth_left_;  // for constants beyond options_.max_growth
  Assumptions* assumptions_;
  ir::SymbolTable symbols_;
  infer::InferenceContext inference_;
};

}  // namespace sardonyx::passes
