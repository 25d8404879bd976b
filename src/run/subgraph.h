// A subgraph of a control-flow node as a plan of its own.
#pragma once

#include <memory>
#include <vector>

#include "run/plan.h"

namespace sardonyx::run {

class PlannedGraph final : public ops::PreparedGraph {
 public:
  // `positions[i]`: which input of the control-flow step holds captured value i; -1 for constants.
  // `graph` must outlive this (it is an attribute of the plan's own node).
  PlannedGraph(const ir::Graph& graph, std::span<const ValueFacts> inputs,
               std::vector<std::pair<std::string, ValueFacts>> captured, std::vector<int> positions,
               const PlanServices& services);

  std::shared_ptr<const Plan> plan() const { return plan_; }

  int input_count() const override { return static_cast<int>(graph_.inputs.size()); }
  int output_count() const override { return static_cast<int>(graph_.outputs.size()); }
  std::vector<Value> run(ops::RunContext& outer, std::span<Value> inputs) const override;
  std::vector<ValueFacts> infer_outputs(ops::RunContext& outer,
                                        std::span<const ValueFacts> inputs) const override;

 private:
  eval::Frame captured(const ops::RunContext& outer) const;
  std::vector<Value> run_plainly(ops::RunContext& outer, std::span<const Value> inputs) const;

  const ir::Graph& graph_;
  std::vector<std::string> names_;  // of the captured values
  std::vector<Value> constants_;    // of those captured as constants; none for the others
  std::vector<int> positions_;
  std::shared_ptr<const Plan>
      plan_;  // null where planning failed: the run meets the reason, if it gets there
};

}  // namespace sardonyx::run
