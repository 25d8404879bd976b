// Element-wise operators that run together.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// Trees of float32 element-wise operators whose values have one shape become one internal
// FusedElementwise node each, which goes over memory once.
void fuse_elementwise(GraphIndex& index);

}  // namespace sardonyx::passes
