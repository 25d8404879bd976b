// The order in which the nodes of a graph can run.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace sardonyx::ir {

// Indices of nodes such that each comes after those that make what it reads, the earliest of those
// that could be next first. Shorter than `nodes` where they form a cycle. for_each_use(index, use)
// calls use(name) for all that a node and the graphs in it read; names that no node makes do not
// matter.
std::vector<size_t> topological_order(
    const std::vector<Node>& nodes,
    const std::function<void(size_t index, const std::function<void(std::string_view)>& use)>&
        for_each_use);

}  // namespace sardonyx::ir
