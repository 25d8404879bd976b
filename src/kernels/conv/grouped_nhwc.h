// Convolution of small groups with channels last. Internal to kernels/conv.
#pragma once

#include "kernels/conv/depthwise_nhwc.h"

namespace sardonyx::kernels {

// One line of output pixels, all channels. Groups have as many output channels
// as input channels: 2, 4, 8 or 16, at most a vector of them, of which all channels are a multiple.
// Weights are [channels / lanes, taps, group_in, lanes]. Only where vectors have 8 or 16 lanes.
void grouped_nhwc_line(const DepthwiseNhwcJob& job);

}  // namespace sardonyx::kernels
