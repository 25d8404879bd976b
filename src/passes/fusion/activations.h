// Activations decomposed in arithmetic.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// x * 0.5 * (1 + erf(x / sqrt(2))), multiplied in any order, becomes Gelu; x * sigmoid(x) Swish.
void fuse_activations(GraphIndex& index);

}  // namespace sardonyx::passes
