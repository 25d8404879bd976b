// Channels dealt out anew between grouped convolutions.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::rewrite {

// Reshape, Transpose and Reshape that turn the channels of images with channels last become a way
// in which the grouped convolution before them writes its image, or, where it cannot, one in which
// the pointwise convolution behind them reads it; depthwise convolutions between them get their
// channels' weights in the image's order. Runs on the graph that lay_out leaves;
// `scope` knows its values.
void absorb_shuffles(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::rewrite
