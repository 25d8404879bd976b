// Expanding, depthwise and projecting convolutions as one step that goes through tiles of rows of
// lines.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// Forms a FusedConvChain of a depthwise convolution and its neighbours, where what is between them
// is used nowhere else and tiles of rows are expected to pay. Runs on the graph that
// convert_to_nhwc leaves; `scope` knows its values.
void fuse_inverted_residuals(GraphIndex& index);

}  // namespace sardonyx::passes
