// Convolutions that read images as they come.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// A Transpose to channels last of an image of few channels, which only a convolution with channels
// last reads, goes: the convolution puts pixels together while it reads planes (attribute planes).
// Runs behind all rewrites that look at the sizes of a convolution's images.
void read_nchw_inputs(GraphIndex& index);

}  // namespace sardonyx::passes
