// Where a step's updates of the state stand: as soon as their gradients are there.
#pragma once

#include "ir/model.h"

namespace sardonyx::train {

// Of optimizer nodes (Adagrad, Adam, Momentum) that update several tensors, one for each tensor.
void split_updates(ir::Graph& graph);

// Moves nodes that make nothing but outputs of the graph, and are the last to read a value, right
// behind the node that makes it, with the few others that they need: that value needs no memory any
// longer.
void hoist_updates(ir::Graph& graph);

}  // namespace sardonyx::train
