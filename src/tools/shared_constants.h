// Constants that inlining repeats, kept once.
#pragma once

#include "ir/model.h"

namespace sardonyx {

// Constant nodes that hold the same tensor, as the calls of a function leave them, read one
// initializer of the graph instead, those in nested graphs too. Small tensors stay where they are.
void share_constants(ir::Graph& graph);

}  // namespace sardonyx
