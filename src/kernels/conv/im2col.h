// Gathering the windows of neighbouring output pixels. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/conv/geometry.h"

namespace sardonyx::kernels {

// Writes, for the output pixels [begin, begin + count) of one image and group (count at most the
// lanes of a vector), what each term of their sums reads:
//   out[k * out_stride + i] = x at pixel begin + i, term k = channel * taps + tap,
// with 0 outside the image and in lanes from count on. `image` is the group's first channel. Reads
// no memory outside the group's channels.
void gather_windows(const ConvGeometry& geometry, const float* image, int64_t begin, int64_t count,
                    float* out, int64_t out_stride);

}  // namespace sardonyx::kernels
