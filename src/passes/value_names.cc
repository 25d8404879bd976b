#include "passes/value_names.h"

#include <algorithm>
#include <memory>

#include "schema/schema.h"

namespace sardonyx::passes {
namespace {

void rename(std::string& name, const NewNames& names) {
  if (const auto found = names.find(name); found != names.end()) name = found->second;
}

void rename_inside(std::shared_ptr<const ir::Graph>& graph, const NewNames& names) {
  const auto captured = infer::captured_names(*graph);
  if (std::ranges::none_of(captured, [&](const auto& name) { return names.contains(name); }))
    return;
  auto copy = std::make_shared<ir::Graph>(*graph);
  rename_uses(*copy, names);
  graph = std::move(copy);
}

// Adds the names that a graph, or one inside it, gives to values.
void collect_defined(const ir::Graph& graph, std::unordered_set<std::string>& names) {
  for (const ir::ValueInfo& input : graph.inputs) names.insert(input.name);
  for (const ir::TensorProto& tensor : graph.initializers) names.insert(tensor.name);
  for (const ir::SparseTensorProto& tensor : graph.sparse_initializers)
    names.insert(tensor.values.name);
  for (const ir::Node& node : graph.nodes) {
    names.insert(node.outputs.begin(), node.outputs.end());
    ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
      collect_defined(inner, names);
    });
  }
}

}  // namespace

bool is_known_by_outputs(const ir::Node& node) {
  const schema::Signature* signature =
      node.custom ? nullptr : schema::newest(node.domain, node.op_type);
  return signature != nullptr && signature->nondeterministic && !ir::has_graphs(node);
}

std::unordered_set<std::string> defined_inside(const ir::Graph& graph) {
  std::unordered_set<std::string> names;
  for (const ir::Node& node : graph.nodes) {
    ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
      collect_defined(inner, names);
    });
  }
  return names;
}

void rename_uses(ir::Node& node, const NewNames& names) {
  for (std::string& input : node.inputs) rename(input, names);
  for (ir::Attribute& attribute : node.attributes) {
    if (attribute.g) rename_inside(attribute.g, names);
    for (auto& graph : attribute.graphs) rename_inside(graph, names);
  }
}

void rename_uses(ir::Graph& graph, const NewNames& names) {
  for (ir::Node& node : graph.nodes) rename_uses(node, names);
  for (ir::ValueInfo& output : graph.outputs) rename(output.name, names);
}

}  // namespace sardonyx::passes
