// Nodes in topological order.
#include <fmt/format.h>

#include <functional>
#include <queue>

#include "base/name_map.h"
#include "lenient/repairs.h"
#include "lenient/scopes.h"

namespace sardonyx::lenient {
namespace {

// The order in which the nodes may run, the earliest of those that could be next first. Shorter
// than `nodes` where they form a cycle.
std::vector<size_t> topological_order(const std::vector<ir::Node>& nodes) {
  NameMap<size_t> producers;
  producers.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].outputs) {
      if (!output.empty()) producers.emplace(output, i);
    }
  }
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> waits_for(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for_each_use(nodes[i], [&](const std::string& name) {
      const size_t* producer = producers.find(name);
      if (producer == nullptr) return;
      readers[*producer].push_back(i);
      ++waits_for[i];
    });
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const size_t reader : readers[next]) {
      if (--waits_for[reader] == 0) ready.push(reader);
    }
  }
  return order;
}

}  // namespace

void sort_nodes(ir::Model& model, Repairs& repairs) {
  for_each_scope(model, [&](Scope& scope) {
    const std::vector<size_t> order = topological_order(*scope.nodes);
    if (order.size() < scope.nodes->size()) return;  // a cycle, which the checker reports
    size_t first = 0;
    while (first < order.size() && order[first] == first) ++first;
    if (first == order.size()) return;
    const std::string_view rule = scope.graph == nullptr ? "F-07" : scope.holder ? "G-04" : "G-03";
    repairs.push_back(
        repaired(rule, place_of(scope, first),
                 "the nodes are not in topological order: this one reads what a "
                 "later one makes",
                 "they run in an order in which each comes after those that it reads"));
    std::vector<ir::Node> sorted;
    sorted.reserve(order.size());
    for (const size_t index : order) sorted.push_back(std::move((*scope.nodes)[index]));
    *scope.nodes = std::move(sorted);
  });
}

}  // namespace sardonyx::lenient
