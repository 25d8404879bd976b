// Dealing out channels: rows between groups one after the other and groups side by side. Internal
// to kernels/conv.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// to[c * groups + g] = from[g * each + c] in each of `rows` rows; groups is 2, 4 or 8. Nothing
// beyond is read or written.
void interleave_rows(const float* from, int64_t from_stride, int64_t rows, int64_t groups,
                     int64_t each, float* to, int64_t to_stride);

}  // namespace sardonyx::kernels
