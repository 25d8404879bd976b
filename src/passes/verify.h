// What must hold of a graph after every pass.
#pragma once

#include <optional>
#include <string>

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::passes {

// Every value is made once and before it is used, by graphs inside nodes too; every output is made;
// every node is of an operator that there is. `entered` knows what the graph does not make itself:
// its inputs and initializers, and values from around it. Returns what does not hold, or nothing.
std::optional<std::string> find_broken(const ir::Graph& graph, const infer::Scope& entered);

}  // namespace sardonyx::passes
