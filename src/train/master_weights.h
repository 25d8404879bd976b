// Weights of float32 behind a network of half precision: they take updates that half precision
// would round away.
#pragma once

#include <vector>

#include "ir/model.h"
#include "train/draft.h"

namespace sardonyx::train {

// Each parameter, of type `half`, becomes one of float32, "W_master", which a Cast gives the old
// type and name.
void add_master_weights(ir::Graph& graph, std::vector<Parameter>& parameters, ElementType half,
                        NamePool& names);

// The way back, for inference alone: initializers of half precision instead.
void narrow_master_weights(ir::Graph& graph);

}  // namespace sardonyx::train
