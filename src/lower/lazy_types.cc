#include "lower/lazy_types.h"

#include <utility>
#include <vector>

#include "ir/walk.h"

namespace sardonyx::lower {

LazyTypes::LazyTypes() {
  inference_.symbols = &symbols_;
  inference_.problem = [](const ir::Node&, const Error&) {};
}

void LazyTypes::catch_up(Pending* pending) {
  if (pending == nullptr || at_once_) return;
  catch_up(pending->around);
  if (!std::exchange(pending->entered, true)) enter(pending->graph, pending->scope);
  const std::vector<ir::Node>& nodes = pending->graph.nodes;
  for (; pending->inferred < nodes.size(); ++pending->inferred)
    infer(nodes[pending->inferred], pending->scope);
}

void LazyTypes::enter(const ir::Graph& graph, infer::Scope& scope) {
  for (const auto* declared : {&graph.value_info, &graph.outputs}) {
    for (const ir::ValueInfo& info : *declared) {
      if (info.type)
        scope.set(info.name,
                  infer::ValueFacts::of(ir::value_type(*info.type, *inference_.symbols)));
    }
  }
  infer::enter(graph, scope, inference_);
}

void LazyTypes::infer(const ir::Node& node, infer::Scope& scope) {
  std::vector<infer::ValueFacts> outputs;
  try {
    std::vector<const infer::ValueFacts*> inputs;
    for (const std::string& name : node.inputs)
      inputs.push_back(name.empty() ? nullptr : scope.find(name));
    const ops::InferSubgraph subgraph =
        has_graphs(node) ? infer::subgraphs_of(scope, inference_) : ops::InferSubgraph();
    outputs = infer::infer_node(node, infer::bind_node(node), inputs, inference_, &subgraph);
  } catch (const Error&) {
    return;  // unknown here; reported later with all that is known then
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) scope.set(node.outputs[i], std::move(outputs[i]));
  }
}

}  // namespace sardonyx::lower
