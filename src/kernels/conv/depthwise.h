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
  float* phases = nullptr;  // PhaseBlock::floats, where that pays
};

// Columns of output that depthwise_any computes from one line of input laid out by phases: pixel
// phase + i * stride of it stands at [phase][i].
struct PhaseBlock {
  explicit PhaseBlock(const ConvGeometry& g);

  // Not for strides beyond any kernel's, nor where few taps share what is laid out.
  static bool pays(const ConvGeometry& g);
  int64_t sum_floats() const { return columns; }
  int64_t floats() const { return sum_floats() + phases * phase_floats; }

  int64_t phases;        // that the kernel looks at
  int64_t columns;       // whole vectors
  int64_t reach;         // floats of a phase beyond the columns
  int64_t phase_floats;  // from phase to phase
};

// Kernels 3x3, 5x5 and 7x7, strides 1 and 2, no dilation, one depth.
void depthwise_rows(const DepthwiseJob& job);
void depthwise_any(const DepthwiseJob& job);

// Output rows that depthwise_rows takes at once.
constexpr int64_t depthwise_row_step = 4;

}  // namespace sardonyx::kernels
