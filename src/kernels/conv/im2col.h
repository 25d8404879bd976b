// Gathering the windows of neighbouring output pixels. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/conv/geometry.h"

namespace sardonyx::kernels {

// Neighbouring output pixels of one image, at most the lanes of a vector, and where what their sums
// read is written.
struct PixelSpan {
  int64_t begin = 0;
  int64_t count = 0;
  float* out = nullptr;
};

// For every span: out[k * out_stride + i] = x as seen from pixel begin + i by term
// k = channel * taps + tap, with 0 outside the image and in lanes from count on. `image` is the
// group's first channel. Reads no memory outside the group's channels.
void gather_windows(const ConvGeometry& geometry, const float* image, const PixelSpan* spans,
                    int64_t span_count, int64_t out_stride);

}  // namespace sardonyx::kernels
