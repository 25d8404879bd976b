// Convolutions that read pictures as they come.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::rewrite {

// A Transpose to channels last of an image of few channels, which only a convolution with channels
// last reads, goes: the convolution puts pixels together while it reads planes (attribute planes).
// Runs behind all rewrites that look at the sizes of a convolution's images.
void read_planes(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::rewrite
