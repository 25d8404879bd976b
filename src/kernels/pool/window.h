// One row of a pooling window over one row of the input; inside pool/ only.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

enum class PoolKind : int32_t { max, average };

// For each output k: y[k] = max(y[k], …) or y[k] += … of x[k * stride - pad + j * dilation], j
// below kernel, where that lies in [0, in). NaN wins.
void pool_row(PoolKind kind, int64_t in, int64_t out, int64_t kernel, int64_t stride,
              int64_t dilation, int64_t pad, const float* x, float* y);

// The largest of x[k * stride + taps[t]], t < count, for k < n, NaN before all and the first of
// equals; and where it is, counted from x and with `first` added. Both y and places hold n.
void pool_places(const float* x, int64_t stride, const int32_t* taps, int64_t count, int64_t n,
                 int64_t first, float* y, int64_t* places);

// The largest (NaN before all) or the sum of each of `planes` rows of n floats, which are few.
void pool_planes(PoolKind kind, const float* x, int64_t planes, int64_t n, float* y);

// Output pixels with channels last, side by side in y, whose windows are `step` floats apart:
// y[c] = the largest of taps[i][c], NaN before all, or their sum times `scale`; then the same for
// taps[i] + step, and so on. `count` is at least 1.
void pool_pixels(PoolKind kind, const float* const* taps, int64_t count, int64_t step,
                 int64_t pixels, int64_t channels, float scale, float* y);

// The same for the largest of bytes, which may lie side by side without room behind them.
void max_pixels(const uint8_t* const* taps, int64_t count, int64_t step, int64_t pixels,
                int64_t channels, uint8_t* y);
void max_pixels(const int8_t* const* taps, int64_t count, int64_t step, int64_t pixels,
                int64_t channels, int8_t* y);

}  // namespace sardonyx::kernels
