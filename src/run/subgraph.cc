#include "run/subgraph.h"

#include "base/fail.h"

namespace sardonyx::run {

PlannedGraph::PlannedGraph(const ir::Graph& graph, std::span<const ValueFacts> inputs,
                           std::vector<std::pair<std::string, ValueFacts>> captured,
                           std::vector<int> positions, const PlanServices& services)
    : graph_(graph), positions_(std::move(positions)) {
  try {
    plan_ = std::make_shared<const Plan>(graph, inputs, captured, services);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported) throw;
  }
  for (auto& [name, known] : captured) {
    names_.push_back(name);
    constants_.push_back(known.constant ? Value(*known.constant) : Value());
  }
}

std::vector<Value> PlannedGraph::run(ops::RunContext& outer, std::span<Value> inputs) const {
  if (inputs.size() != graph_.inputs.size()) {
    fail_at(fmt::format("graph '{}'", graph_.name), ErrorCode::run_failed,
            "takes {} inputs; got {}", graph_.inputs.size(), inputs.size());
  }
  // What outlives the body is charged by who holds it.
  const eval::Environment::Scope scope(outer.environment());
  if (!plan_) return run_plainly(outer, inputs);
  std::vector<ops::Slot*> captured;
  for (const int position : positions_)
    captured.push_back(position < 0 ? nullptr : outer.input_slots()[position]);
  std::vector<Value> outputs(graph_.outputs.size());
  try {
    plan_->run(inputs, captured, outputs, outer.environment(), nullptr, inputs);
  } catch (const ShapeMismatch&) {
    return run_plainly(outer, inputs);  // the node feeds other shapes than inference foresaw
  }
  return outputs;
}

eval::Frame PlannedGraph::captured(const ops::RunContext& outer) const {
  eval::Frame around;
  for (size_t i = 0; i < names_.size(); ++i) {
    around.set(names_[i], positions_[i] < 0 ? constants_[i] : outer.in_value(positions_[i]));
  }
  return around;
}

std::vector<ValueFacts> PlannedGraph::infer_outputs(ops::RunContext& outer,
                                                    std::span<const ValueFacts> inputs) const {
  return eval::infer_graph_outputs(graph_, captured(outer), inputs);
}

std::vector<Value> PlannedGraph::run_plainly(ops::RunContext& outer,
                                             std::span<const Value> inputs) const {
  const eval::Frame around = captured(outer);
  eval::Frame frame(&around);
  for (size_t i = 0; i < inputs.size(); ++i) frame.set(graph_.inputs[i].name, inputs[i]);
  return eval::run_graph(graph_, frame, outer.environment(), {.observe = {}, .is_sound = true});
}

}  // namespace sardonyx::run
