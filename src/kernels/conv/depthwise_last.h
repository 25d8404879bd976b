// Depthwise convolution with channels last. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/conv/geometry.h"

namespace sardonyx::kernels {

// One line of output pixels: out[column * channels + c] = min(max(alpha * sum + bias[c], low),
// high).
struct DepthwiseLastJob {
  const ConvGeometry* geometry = nullptr;
  const float* image = nullptr;    // all of one input image
  const float* weights = nullptr;  // taps x channels
  int64_t depth = 0, row = 0;      // of the output
  float* out = nullptr;            // the line's first pixel
  const float* bias = nullptr;     // channels values, or null
  float alpha = 1, beta = 1;       // beta scales the bias
  float low = 0, high = 0;
};

void depthwise_last_line(const DepthwiseLastJob& job);

}  // namespace sardonyx::kernels
