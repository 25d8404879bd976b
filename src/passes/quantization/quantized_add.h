// Sums of bytes at the end of quantised convolutions.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// A FusedElementwise that adds the bytes of a convolution with channels last to others, perhaps
// raises the sum to 0, and makes bytes of it becomes part of that convolution, where nothing else
// reads the convolution's bytes. Runs on the graph that convert_to_nhwc leaves; `scope` knows its
// constants.
void fuse_quantized_adds(GraphIndex& index);

}  // namespace sardonyx::passes
