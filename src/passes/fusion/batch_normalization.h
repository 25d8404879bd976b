// BatchNormalization by constant statistics.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// Behind a convolution with constant weights it becomes a factor and a bias of the fused form of
// Conv or ConvTranspose, which applies the factor while it packs the weights; on rows it becomes
// the internal ScaleShift.
void fold_batch_normalizations(GraphIndex& index);

}  // namespace sardonyx::passes
