#include "train/updates.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autodiff/history.h"
#include "autodiff/walk.h"
#include "ir/walk.h"
#include "train/graph_builder.h"

namespace sardonyx::train {
namespace {

// How many tensors an optimizer reads and makes for each that it updates; 0: it is none.
struct Lists {
  size_t inputs = 0, outputs = 0;
};
Lists lists_of(const ir::Node& node) {
  if (node.domain != preview_domain) return {};
  if (node.op_type == "Adagrad" || node.op_type == "Momentum") return {3, 2};
  if (node.op_type == "Adam") return {4, 3};
  return {};
}

constexpr size_t leading = 2;  // the rate and the number of updates

// A node for each tensor; none where the lists don't fit together, which the plan will tell.
std::vector<ir::Node> split(const ir::Node& node) {
  const auto [inputs, outputs] = lists_of(node);
  if (inputs == 0 || node.inputs.size() <= leading) return {};
  const size_t count = (node.inputs.size() - leading) / inputs;
  if (count < 2 || leading + count * inputs != node.inputs.size() ||
      count * outputs != node.outputs.size())
    return {};
  std::vector<ir::Node> made;
  for (size_t i = 0; i < count; ++i) {
    ir::Node one = node;
    one.inputs.resize(leading);
    one.outputs.clear();
    for (size_t list = 0; list < inputs; ++list)
      one.inputs.push_back(node.inputs[leading + list * count + i]);
    for (size_t list = 0; list < outputs; ++list)
      one.outputs.push_back(node.outputs[list * count + i]);
    made.push_back(std::move(one));
  }
  return made;
}

}  // namespace

void split_updates(ir::Graph& graph) {
  std::vector<ir::Node> nodes;
  for (ir::Node& node : graph.nodes) {
    std::vector<ir::Node> parts = split(node);
    if (parts.empty()) parts.push_back(std::move(node));
    std::ranges::move(parts, std::back_inserter(nodes));
  }
  graph.nodes = std::move(nodes);
}

namespace {

class Hoisting {
 public:
  explicit Hoisting(ir::Graph& graph) : graph_(graph), places_(graph.nodes.size()) {
    for (const ir::ValueInfo& output : graph.outputs) outputs_.insert(output.name);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      places_[i] = i;
      for (const std::string& output : graph.nodes[i].outputs) makers_[output] = i;
      autodiff::for_each_read(graph.nodes[i],
                              [&](const std::string& name) { last_readers_[name] = i; });
    }
  }

  void run() {
    std::vector<std::pair<std::vector<size_t>, size_t>> updates;  // where they might go; the node
    for (size_t i = 0; i < places_.size(); ++i) {
      if (std::vector<size_t> targets = targets_of(i); !targets.empty())
        updates.emplace_back(std::move(targets), i);
    }
    std::ranges::sort(updates);
    for (const auto& [targets, i] : updates) {
      for (const size_t target : targets) {
        if (move_behind(target, i)) break;
      }
    }
    if (behind_.empty()) return;
    std::vector<ir::Node> nodes;
    nodes.reserve(places_.size());
    for (size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] == i) nodes.push_back(std::move(graph_.nodes[i]));
      for (const size_t next : behind_[i]) nodes.push_back(std::move(graph_.nodes[next]));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  // Of a node that makes nothing but outputs: those that make a value which no node reads after it,
  // in their order.
  std::vector<size_t> targets_of(size_t i) const {
    const ir::Node& node = graph_.nodes[i];
    const auto is_output = [&](const std::string& name) {
      return name.empty() || outputs_.contains(name);
    };
    if (node.outputs.empty() || !std::ranges::all_of(node.outputs, is_output)) return {};
    std::vector<size_t> targets;
    autodiff::for_each_read(node, [&](const std::string& name) {
      const auto maker = makers_.find(name);
      if (maker != makers_.end() && last_readers_.at(name) == i && !outputs_.contains(name))
        targets.push_back(maker->second);
    });
    std::ranges::sort(targets);
    return targets;
  }

  bool move_behind(size_t target, size_t i) {
    std::vector<size_t> needed;
    if (!collect(i, target, needed)) return false;
    std::ranges::sort(needed);
    for (const size_t node : needed) {
      if (places_[node] != node) std::erase(behind_[places_[node]], node);  // of another update
      places_[node] = target;
      behind_[target].push_back(node);
    }
    return true;
  }

  // The node and the few that must move with it: those it needs that stand behind the target. False
  // where they can't: what draws, draws in the order of the nodes.
  bool collect(size_t i, size_t target, std::vector<size_t>& needed) const {
    constexpr size_t most = 16;
    if (places_[i] <= target || std::ranges::find(needed, i) != needed.end()) return true;
    const ir::Node& node = graph_.nodes[i];
    if (needed.size() == most || ir::has_graphs(node) || autodiff::draws_anew(node)) return false;
    needed.push_back(i);
    bool fits = true;
    autodiff::for_each_read(node, [&](const std::string& name) {
      const auto maker = makers_.find(name);
      if (maker != makers_.end()) fits = fits && collect(maker->second, target, needed);
    });
    return fits;
  }

  ir::Graph& graph_;
  std::unordered_set<std::string_view> outputs_;
  std::unordered_map<std::string, size_t> makers_, last_readers_;
  std::vector<size_t> places_;  // behind which node each one stands; itself: stays
  std::map<size_t, std::vector<size_t>> behind_;  // by place
};

}  // namespace

void hoist_updates(ir::Graph& graph) { Hoisting(graph).run(); }

}  // namespace sardonyx::train
