// A convolution's sizes, brought to three dimensions. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/conv/conv.h"

namespace sardonyx::kernels {

// Depth, height, width; dimensions that are not there have size 1. Dimensions that the kernel does
// not look across are joined, so that a pointwise convolution has one long row.
struct ConvGeometry {
  explicit ConvGeometry(const ConvShape& shape);

  int64_t batch, group;
  int64_t group_in, group_out;  // channels in one group
  ConvShape::Dims in, kernel, stride, dilation, pad, out;
  int64_t in_pixels, out_pixels;  // of one channel
  int64_t taps;
  int64_t terms;  // of each sum: group_in * taps
  bool channels_last;

  // Floats from the input pixel of kernel position 0 to that of `tap` (in d, h, w).
  int64_t tap_offset(int64_t d, int64_t h, int64_t w) const {
    return (d * dilation[0] * in[1] + h * dilation[1]) * in[2] + w * dilation[2];
  }
};

}  // namespace sardonyx::kernels
