#include "rewrite/loop_invariants.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "rewrite/graph_index.h"
#include "rewrite/value_names.h"

namespace sardonyx::rewrite {
namespace {

// Where the states of a node lie among its inputs, and those of its body.
struct Places {
  size_t node_input, body_input, body_output;
  size_t count;
};

std::optional<Places> states_of(const ir::Node& node, const ir::Graph& body) {
  const size_t inputs = node.inputs.size();
  if (is_op(&node, "Loop") && inputs >= 2 && body.inputs.size() == inputs &&
      body.outputs.size() + 1 >= inputs)
    return Places{2, 2, 1, inputs - 2};
  if (!is_op(&node, "Scan") || body.inputs.size() != inputs) return std::nullopt;
  const ir::Attribute* scans = node.find("num_scan_inputs");
  if (scans == nullptr || !scans->i || *scans->i < 1 ||
      *scans->i > static_cast<int64_t>(inputs))
    return std::nullopt;
  const size_t states = inputs - static_cast<size_t>(*scans->i);
  return body.outputs.size() >= states ? std::optional(Places{0, 0, 0, states}) : std::nullopt;
}

// The value that a chain of Identity nodes in the body starts from.
std::string source_of(const ir::Graph& body, std::string name) {
  for (auto node = body.nodes.rbegin(); node != body.nodes.rend(); ++node) {
    if (is_op(&*node, "Identity") && node->inputs.size() == 1 && node->outputs[0] == name)
      name = node->inputs[0];
  }
  return name;
}

std::vector<size_t> invariant_states(const ir::Node& node, const ir::Graph& body,
                                     const Places& places) {
  std::vector<size_t> found;
  std::unordered_set<std::string> defined;
  for (size_t i = 0; i < places.count; ++i) {
    const std::string& outer = node.inputs[places.node_input + i];
    const std::string& inner = body.inputs[places.body_input + i].name;
    if (outer.empty() || source_of(body, body.outputs[places.body_output + i].name) != inner)
      continue;
    if (defined.empty()) collect_defined(body, defined);
    if (!defined.contains(outer)) found.push_back(i);
  }
  return found;
}

template <class T>
void erase_at(std::vector<T>& list, size_t i) {
  if (i < list.size()) list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
}

// Appends what stands for the node's outputs of these states to `after`.
void free_states(ir::Node& node, ir::Attribute& attribute, const Places& places,
                 const std::vector<size_t>& states, std::vector<ir::Node>& after) {
  auto body = std::make_shared<ir::Graph>(*attribute.g);
  NewNames names;
  for (const size_t i : states)
    names[body->inputs[places.body_input + i].name] = node.inputs[places.node_input + i];
  for (auto i = states.rbegin(); i != states.rend(); ++i) {
    if (*i < node.outputs.size() && !node.outputs[*i].empty()) {
      ir::Node handed;
      handed.op_type = "Identity";
      handed.name = node.name;
      handed.inputs = {node.inputs[places.node_input + *i]};
      handed.outputs = {node.outputs[*i]};
      after.push_back(std::move(handed));
    }
    erase_at(node.outputs, *i);
    erase_at(node.inputs, places.node_input + *i);
    erase_at(body->inputs, places.body_input + *i);
    erase_at(body->outputs, places.body_output + *i);
  }
  rename_uses(*body, names);
  attribute.g = std::move(body);
}

}  // namespace

void free_loop_invariants(ir::Graph& graph) {
  const auto loops = [](const ir::Node& node) {
    return is_op(&node, "Loop") || is_op(&node, "Scan");
  };
  if (std::ranges::none_of(graph.nodes, loops)) return;
  std::vector<ir::Node> nodes;
  nodes.reserve(graph.nodes.size());
  for (ir::Node& node : graph.nodes) {
    std::vector<ir::Node> after;
    const auto body =
        std::ranges::find_if(node.attributes, [](const auto& a) { return a.name == "body" && a.g; });
    if (loops(node) && body != node.attributes.end()) {
      if (const auto places = states_of(node, *body->g)) {
        const std::vector<size_t> states = invariant_states(node, *body->g, *places);
        if (!states.empty()) free_states(node, *body, *places, states, after);
      }
    }
    nodes.push_back(std::move(node));
    std::ranges::move(after, std::back_inserter(nodes));
  }
  graph.nodes = std::move(nodes);
}

}  // namespace sardonyx::rewrite
