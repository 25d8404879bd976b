// Packed weights of convolutions.
#pragma once

#include <memory>

#include "kernels/conv/conv.h"
#include "ops/prepare_context.h"

namespace sardonyx::ops {

// The constant weights of input `w` times one factor for each output channel (input `factors`, may
// be absent), packed as `shape` says (channels, group, kernel, layout and algorithm); shared by all
// steps and sessions that pack them so.
std::shared_ptr<const Pack<Tensor>> pack_conv(PrepareContext& ctx, const kernels::ConvShape& shape,
                                              int w, int factors);

}  // namespace sardonyx::ops
