// Nodes that hand on what they are given.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::passes {

// Who reads the output of an Identity, of a Dropout that is not training, or of a Cast to the type
// that its input has, reads the input instead, also in graphs inside nodes; such nodes go. Those
// that make an output of the graph stay, but where an Identity makes one of a value of open rank:
// who makes that value makes the output. `scope` knows the graph's values.
bool remove_no_ops(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::passes
