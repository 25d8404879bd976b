#include "passes/canonicalize/dead_nodes.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "ops/custom.h"
#include "passes/value_names.h"
#include "schema/schema.h"

namespace sardonyx::passes {
namespace {

const schema::Signature* signature_of(const ir::Node& node) {
  return node.custom ? ops::custom_signature(node) : schema::newest(node.domain, node.op_type);
}

bool ends_in_list(const schema::Signature* signature) {
  return signature != nullptr && !signature->outputs.empty() &&
         signature->outputs.back().option == schema::FormalOption::variadic;
}

bool must_have(const schema::Signature* signature, size_t output) {
  return signature != nullptr && output < signature->outputs.size() &&
         signature->outputs[output].option == schema::FormalOption::single;
}

}  // namespace

bool remove_dead_nodes(ir::Graph& graph) {
  std::unordered_set<std::string> used;
  for (const auto& output : graph.outputs) used.insert(output.name);
  std::vector<ir::Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool needed =
        std::any_of(node->outputs.begin(), node->outputs.end(),
                    [&](const std::string& name) { return !name.empty() && used.contains(name); });
    if (!needed) continue;
    const schema::Signature* signature = signature_of(*node);
    for (size_t i = 1; i < node->outputs.size(); ++i) {
      std::string& name = node->outputs[i];
      if (!used.contains(name) && !must_have(signature, i)) name.clear();
    }
    // How many a list of outputs has may mean something: Split shares out by it.
    while (!ends_in_list(signature) && node->outputs.size() > 1 && node->outputs.back().empty())
      node->outputs.pop_back();
    for_each_read(*node, [&](const std::string& name) { used.insert(name); });
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  const bool changed = kept.size() != graph.nodes.size();
  graph.nodes = std::move(kept);
  std::erase_if(graph.initializers,
                [&](const ir::TensorProto& t) { return !used.contains(t.name); });
  return changed;
}

}  // namespace sardonyx::passes
