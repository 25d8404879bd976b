#include "passes/canonicalize/loop_invariants.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "passes/graph_index.h"
#include "passes/value_names.h"

namespace sardonyx::passes {
namespace {

// Where the states of a node lie among its inputs, and those of its body.
struct Places {
  size_t node_input, body_input, body_output;
  size_t count;
};

bool may_have_states(const ir::Node& node) { return is_op(&node, "Loop") || is_op(&node, "Scan"); }

std::optional<Places> states_of(const ir::Node& node, const ir::Graph& body) {
  const size_t inputs = node.inputs.size();
  if (is_op(&node, "Loop") && inputs >= 2 && body.inputs.size() == inputs &&
      body.outputs.size() + 1 >= inputs)
    return Places{2, 2, 1, inputs - 2};
  if (!is_op(&node, "Scan") || body.inputs.size() != inputs) return std::nullopt;
  const ir::Attribute* scans = node.find("num_scan_inputs");
  if (scans == nullptr || !scans->i || *scans->i < 1 || *scans->i > static_cast<int64_t>(inputs))
    return std::nullopt;
  const size_t states = inputs - static_cast<size_t>(*scans->i);
  return body.outputs.size() >= states ? std::optional(Places{0, 0, 0, states}) : std::nullopt;
}

// Of each value that Identity nodes of the body hand on, the one that they start from.
std::unordered_map<std::string_view, std::string_view> handed_on(const ir::Graph& body) {
  std::unordered_map<std::string_view, std::string_view> sources;
  for (const ir::Node& node : body.nodes) {
    if (!is_op(&node, "Identity") || node.inputs.size() != 1 || node.outputs.size() != 1) continue;
    const auto before = sources.find(node.inputs[0]);
    sources[node.outputs[0]] = before == sources.end() ? node.inputs[0] : before->second;
  }
  return sources;
}

std::vector<size_t> invariant_states(const ir::Node& node, const ir::Graph& body,
                                     const Places& places) {
  const auto sources = handed_on(body);
  std::vector<size_t> found;
  for (size_t i = 0; i < places.count; ++i) {
    const std::string& outer = node.inputs[places.node_input + i];
    const std::string& inner = body.inputs[places.body_input + i].name;
    const std::string& last = body.outputs[places.body_output + i].name;
    const auto source = sources.find(last);
    if (!outer.empty() && (source == sources.end() ? last : source->second) == inner)
      found.push_back(i);
  }
  return found;
}

// Takes those of a list away that belong to these states, in rising order, of which the first
// state's is at `begin`.
template <class T>
void erase_states(std::vector<T>& list, size_t begin, const std::vector<size_t>& states) {
  auto state = states.begin();
  size_t kept = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (state != states.end() && begin + *state == i) {
      ++state;
      continue;
    }
    if (kept != i) list[kept] = std::move(list[i]);
    ++kept;
  }
  list.resize(kept);
}

// `names` gets what the node's outputs of these states are called now.
void free_states(ir::Node& node, ir::Attribute& attribute, const Places& places,
                 const std::vector<size_t>& states, NewNames& names) {
  auto body = std::make_shared<ir::Graph>(*attribute.g);
  NewNames inside;
  for (const size_t i : states) {
    const std::string& outer = node.inputs[places.node_input + i];
    inside[body->inputs[places.body_input + i].name] = outer;
    if (i < node.outputs.size() && !node.outputs[i].empty()) names[node.outputs[i]] = outer;
  }
  erase_states(node.outputs, 0, states);
  erase_states(node.inputs, places.node_input, states);
  erase_states(body->inputs, places.body_input, states);
  erase_states(body->outputs, places.body_output, states);
  rename_uses(*body, inside);
  attribute.g = std::move(body);
}

class Hoisting {
 public:
  explicit Hoisting(ir::Graph& graph) : graph_(graph) {}

  bool run() {
    for (const ir::ValueInfo& output : graph_.outputs) kept_.insert(output.name);
    inside_ = defined_inside(graph_);
    NewNames names;
    for (ir::Node& node : graph_.nodes) {
      if (!names.empty()) rename_uses(node, names);
      free(node, names);
    }
    std::erase_if(graph_.nodes, [](const ir::Node& node) { return node.outputs.empty(); });
    return freed_;
  }

 private:
  void free(ir::Node& node, NewNames& names) {
    if (!may_have_states(node)) return;
    const auto body = std::ranges::find_if(
        node.attributes, [](const ir::Attribute& a) { return a.name == "body" && a.g; });
    if (body == node.attributes.end()) return;
    const auto places = states_of(node, *body->g);
    if (!places) return;
    std::vector<size_t> states = invariant_states(node, *body->g, *places);
    std::erase_if(states, [&](size_t i) {
      return inside_.contains(node.inputs[places->node_input + i]) ||
             (i < node.outputs.size() && kept_.contains(node.outputs[i]));
    });
    if (states.empty()) return;
    free_states(node, *body, *places, states, names);
    freed_ = true;
  }

  ir::Graph& graph_;
  bool freed_ = false;
  std::unordered_set<std::string> kept_, inside_;  // outputs; names that bodies give to values
};

}  // namespace

bool hoist_loop_invariants(ir::Graph& graph) {
  return std::ranges::any_of(graph.nodes, may_have_states) && Hoisting(graph).run();
}

}  // namespace sardonyx::passes
