// Channels interleaved anew between grouped convolutions.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// Reshape, Transpose and Reshape that turn the channels of images with channels last become a way
// in which the grouped convolution before them writes its image, or, where it cannot, one in which
// the pointwise convolution behind them reads it; depthwise convolutions between them get their
// channels' weights in the image's order. Runs on the graph that convert_to_nhwc leaves;
// `scope` knows its values.
void fuse_channel_shuffles(GraphIndex& index);

}  // namespace sardonyx::passes
