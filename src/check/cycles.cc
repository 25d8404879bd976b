#include "check/cycles.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_set>

#include "ir/walk.h"

namespace sardonyx::check {
namespace {

constexpr size_t unseen = std::numeric_limits<size_t>::max();

// Tarjan's algorithm with a stack of its own.
class Components {
 public:
  explicit Components(const std::vector<std::vector<size_t>>& next)
      : next_(next),
        order_(next.size(), unseen),
        low_(next.size()),
        component_(next.size(), unseen) {}

  std::vector<size_t> find() {
    for (size_t node = 0; node < next_.size(); ++node) {
      if (order_[node] == unseen) visit(node);
    }
    return std::move(component_);
  }

 private:
  struct Step {
    size_t node;
    size_t edge = 0;
  };

  void open(size_t node) {
    order_[node] = low_[node] = counter_++;
    open_.push_back(node);
    steps_.push_back({node});
  }

  void close(size_t node) {
    if (low_[node] == order_[node]) {
      size_t member;
      do {
        member = open_.back();
        open_.pop_back();
        component_[member] = components_;
      } while (member != node);
      ++components_;
    }
    steps_.pop_back();
    if (!steps_.empty()) {
      size_t& low = low_[steps_.back().node];
      low = std::min(low, low_[node]);
    }
  }

  void visit(size_t root) {
    open(root);
    while (!steps_.empty()) {
      Step& step = steps_.back();
      if (step.edge == next_[step.node].size()) {
        close(step.node);
        continue;
      }
      const size_t node = step.node;
      const size_t target = next_[node][step.edge++];
      if (order_[target] == unseen) {
        open(target);
      } else if (component_[target] == unseen) {
        low_[node] = std::min(low_[node], order_[target]);
      }
    }
  }

  const std::vector<std::vector<size_t>>& next_;
  std::vector<size_t> order_, low_, component_, open_;
  std::vector<Step> steps_;
  size_t counter_ = 0, components_ = 0;
};

// The shortest way from `start` back to itself within its component; empty where there is none.
std::vector<size_t> shortest_cycle(const std::vector<std::vector<size_t>>& next,
                                   const std::vector<size_t>& component, size_t start) {
  std::unordered_map<size_t, size_t> before;
  std::deque<size_t> queue = {start};
  while (!queue.empty()) {
    const size_t node = queue.front();
    queue.pop_front();
    for (const size_t target : next[node]) {
      if (component[target] != component[start]) continue;
      if (target == start) {
        std::vector<size_t> path = {node};
        while (path.back() != start) path.push_back(before.at(path.back()));
        std::reverse(path.begin(), path.end());
        return path;
      }
      if (before.emplace(target, node).second) queue.push_back(target);
    }
  }
  return {};
}

}  // namespace

Cycles find_cycles(const std::vector<std::vector<size_t>>& next) {
  Cycles cycles;
  cycles.component = Components(next).find();
  std::vector<bool> done(next.size());
  for (size_t node = 0; node < next.size(); ++node) {
    const size_t component = cycles.component[node];
    if (done[component]) continue;
    done[component] = true;
    std::vector<size_t> path = shortest_cycle(next, cycles.component, node);
    if (!path.empty()) cycles.paths.push_back(std::move(path));
  }
  return cycles;
}

Cycles find_cycles(const std::vector<ir::Node>& nodes, const NameMap<size_t>& producers) {
  std::vector<std::vector<size_t>> next(nodes.size());
  const auto uses = [&](const ir::Node& node, size_t user) {
    for (const std::string& input : node.inputs) {
      const size_t* producer = producers.find(input);
      if (producer != nullptr) next[*producer].push_back(user);
    }
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    uses(nodes[i], i);
    std::unordered_set<const ir::Graph*> seen;  // of graphs that attributes share
    ir::WalkCallbacks callbacks;
    callbacks.enter = [&](const ir::WalkPlace& place) { return seen.insert(place.graph).second; };
    callbacks.node = [&](const ir::WalkPlace&, const ir::Node& inner, size_t) { uses(inner, i); };
    ir::for_each_subgraph(nodes[i], [&](const ir::Graph& graph, const ir::Attribute&, int) {
      ir::walk(graph, callbacks);
    });
  }
  return find_cycles(next);
}

}  // namespace sardonyx::check
