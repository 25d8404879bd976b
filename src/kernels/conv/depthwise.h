// Convolution of one input plane with one kernel. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/conv/geometry.h"

namespace sardonyx::kernels {

// Rows [begin, end) of one output plane, counting the rows of all depths:
// out[row * out_stride + column] = min(max(alpha * sum + bias, low), high).
struct DepthwiseJob {
  const ConvGeometry* geometry = nullptr;
  const float* plane = nullptr;    // all of the input plane
  const float* weights = nullptr;  // taps
  int64_t begin = 0, end = 0;
  float* out = nullptr;  // row `begin`
  int64_t out_stride = 0;
  float alpha = 1, bias = 0;
  float low = 0, high = 0;
};

// Kernels 3x3, 5x5 and 7x7, strides 1 and 2, no dilation, one depth.
void depthwise_rows(const DepthwiseJob& job);
void depthwise_any(const DepthwiseJob& job);

// Output rows that depthwise_rows takes at once.
constexpr int64_t depthwise_row_step = 4;

}  // namespace sardonyx::kernels
