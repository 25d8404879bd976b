// Packed weights of convolutions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/conv/conv.h"
#include "ops/prepare_context.h"

namespace sardonyx::ops {

// The constant weights of input `w` times one factor for each output channel (input `factors`, may
// be absent), packed as `shape` says (channels, group, kernel, strides, dilations, layout and
// algorithm); shared by all steps and sessions that pack them so.
std::shared_ptr<const Pack<Tensor>> pack_conv(PrepareContext& ctx, const kernels::ConvParams& shape,
                                              int w, int factors);

// Factors of that many output channels (input `factors`); empty where the node has none.
Tensor weight_factors(const PrepareContext& ctx, int factors, int64_t channels);
// The bytes of its elements, for what a PackFormat says by content.
std::vector<uint8_t> content_of(const Tensor& tensor);

}  // namespace sardonyx::ops
