// Element-wise operators that run together.
#pragma once

#include "rewrite/graph_index.h"

namespace sardonyx::rewrite {

// Trees of float32 element-wise operators whose values have one shape become one internal Region
// node each, which goes over memory once.
void form_regions(GraphIndex& index);

}  // namespace sardonyx::rewrite
