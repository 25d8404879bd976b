// Nodes whose values nobody uses.
#pragma once

#include "ir/model.h"

namespace sardonyx::passes {

// Removes such nodes and initializers, and optional outputs at the end of a node's list. Returns
// whether there were nodes.
bool remove_dead_nodes(ir::Graph& graph);

}  // namespace sardonyx::passes
