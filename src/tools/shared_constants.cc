#include "tools/shared_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/walk.h"

namespace sardonyx {
namespace {

constexpr int64_t small_bytes = 256;

int64_t bytes_of(const ir::TensorProto& tensor) {
  size_t bytes = tensor.raw_data.size() + tensor.float_data.size() + tensor.double_data.size() +
                 tensor.int32_data.size() + tensor.int64_data.size() + tensor.uint64_data.size();
  for (const auto& text : tensor.string_data) bytes += text.size();
  return static_cast<int64_t>(bytes);
}

// The tensor of a Constant that is worth sharing; null otherwise.
const ir::TensorProto* constant_of(const ir::Node& node) {
  if (node.op_type != "Constant" || !ir::canonical_domain(node.domain).empty()) return nullptr;
  const ir::Attribute* value = node.find("value");
  if (value == nullptr || !value->t || bytes_of(*value->t) < small_bytes) return nullptr;
  return value->t.get();
}

// Lowering has bounded how deep graphs nest.
void for_each_node(ir::Graph& graph, const std::function<void(ir::Node&)>& visit) {
  for (ir::Node& node : graph.nodes) {
    visit(node);
    for (ir::Attribute& attribute : node.attributes) {
      const auto inside = [&](std::shared_ptr<const ir::Graph>& held) {
        auto copy = std::make_shared<ir::Graph>(*held);
        for_each_node(*copy, visit);
        held = std::move(copy);
      };
      if (attribute.g) inside(attribute.g);
      for (auto& inner : attribute.graphs) inside(inner);
    }
  }
}

}  // namespace

void share_constants(ir::Graph& graph) {
  std::unordered_map<const ir::TensorProto*, int> holders;
  std::unordered_set<std::string> names;
  const ir::WalkCallbacks look = {.enter =
                                      [&](const ir::WalkPlace& place) {
                                        for (const ir::ValueInfo& input : place.graph->inputs)
                                          names.insert(input.name);
                                        for (const auto& one : place.graph->initializers)
                                          names.insert(one.name);
                                        for (const auto& one : place.graph->sparse_initializers)
                                          names.insert(one.values.name);
                                        return true;
                                      },
                                  .node =
                                      [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
                                        names.insert(node.outputs.begin(), node.outputs.end());
                                        if (const ir::TensorProto* tensor = constant_of(node))
                                          ++holders[tensor];
                                      }};
  ir::walk(graph, look);
  if (std::ranges::none_of(holders, [](const auto& one) { return one.second > 1; })) return;
  std::unordered_map<const ir::TensorProto*, std::string> shared;
  std::vector<std::shared_ptr<const ir::TensorProto>> kept;
  for_each_node(graph, [&](ir::Node& node) {
    const ir::TensorProto* tensor = constant_of(node);
    if (tensor == nullptr || holders[tensor] < 2) return;
    auto [at, is_new] = shared.try_emplace(tensor);
    if (is_new) {
      at->second = node.outputs[0] + "/shared";
      for (int i = 2; !names.insert(at->second).second; ++i)
        at->second = fmt::format("{}/shared{}", node.outputs[0], i);
      kept.push_back(node.find("value")->t);
    }
    node.op_type = "Identity";
    node.inputs = {at->second};
    node.attributes.clear();
  });
  for (const auto& tensor : kept) {
    graph.initializers.push_back(*tensor);
    graph.initializers.back().name = shared[tensor.get()];
  }
}

}  // namespace sardonyx
