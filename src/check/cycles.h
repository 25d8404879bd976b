// Cycles among the nodes of a graph.
#pragma once

#include <cstddef>
#include <vector>

#include "base/name_map.h"
#include "ir/model.h"

namespace sardonyx::check {

struct Cycles {
  std::vector<size_t> component;           // of each node: its strongly connected component
  std::vector<std::vector<size_t>> paths;  // one cycle of each component that has one
};

// `producers` says which node computes a name. What a node's nested graphs use counts as used by
// the node.
Cycles find_cycles(const std::vector<ir::Node>& nodes, const NameMap<size_t>& producers);

// The same on any graph: `next[i]` are the successors of i.
Cycles find_cycles(const std::vector<std::vector<size_t>>& next);

}  // namespace sardonyx::check
