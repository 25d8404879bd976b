// Nodes in topological order.
#include <fmt/format.h>

#include "ir/topological_order.h"
#include "lenient/repairs.h"
#include "lenient/scopes.h"

namespace sardonyx::lenient {
void sort_nodes(ir::Model& model, Repairs& repairs) {
  for_each_scope(model, [&](Scope& scope) {
    const std::vector<size_t> order =
        ir::topological_order(*scope.nodes, [&](size_t index, const auto& use) {
          for_each_use((*scope.nodes)[index], [&](const std::string& name) { use(name); });
        });
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
