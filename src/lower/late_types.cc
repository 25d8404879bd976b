#include "lower/late_types.h"

#include <utility>
#include <vector>

#include "ir/walk.h"

namespace sardonyx::lower {

LateTypes::LateTypes() {
  findings_.symbols = &symbols_;
  findings_.problem = [](const ir::Node&, const Error&) {};
}

void LateTypes::catch_up(Pending* pending) {
  if (pending == nullptr || at_once_) return;
  catch_up(pending->around);
  if (!std::exchange(pending->entered, true)) enter(pending->graph, pending->scope);
  const std::vector<ir::Node>& nodes = pending->graph.nodes;
  for (; pending->inferred < nodes.size(); ++pending->inferred)
    infer(nodes[pending->inferred], pending->scope);
}

void LateTypes::enter(const ir::Graph& graph, infer::Scope& scope) {
  for (const auto* declared : {&graph.value_info, &graph.outputs}) {
    for (const ir::ValueInfo& info : *declared) {
      if (info.type)
        scope.set(info.name, infer::Known::of(ir::value_type(*info.type, *findings_.symbols)));
    }
  }
  infer::enter(graph, scope, findings_);
}

void LateTypes::infer(const ir::Node& node, infer::Scope& scope) {
  std::vector<infer::Known> outputs;
  try {
    std::vector<const infer::Known*> inputs;
    for (const std::string& name : node.inputs)
      inputs.push_back(name.empty() ? nullptr : scope.find(name));
    const ops::InferSubgraph subgraph =
        has_graphs(node) ? infer::subgraphs_of(scope, findings_) : ops::InferSubgraph();
    outputs = infer::infer_node(node, infer::bind_node(node), inputs, findings_, &subgraph);
  } catch (const Error&) {
    return;  // unknown here; reported later with all that is known then
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) scope.set(node.outputs[i], std::move(outputs[i]));
  }
}

}  // namespace sardonyx::lower
