// Exponents of Pow as rewrites and kernels want them.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// A constant exponent of one integer becomes a float32 where the base is one.
void make_exponents_floats(GraphIndex& index);

}  // namespace sardonyx::passes
