// Weighted sums along and across lines of float32, and lines of pixels, each so many elements in a
// row; for resize.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/counted.h"

namespace sardonyx::kernels {

// The longest line that is resized at once, and the floats that must be behind any.
constexpr int64_t resize_line_floats = 8192, resize_line_room = 64;

// Elements of a line as sums of `taps` elements of another.
class LineSums {
 public:
  // `index` and `weight` are [out, taps].
  LineSums(std::span<const int32_t> index, std::span<const double> weight, int64_t out,
           int64_t taps);

  // Reads resize_line_room floats behind the largest index, whatever they are.
  void run(const float* x, float* y) const;

  static constexpr int64_t lanes = 16, half = lanes / 2;  // outputs of a block, and of its parts
  int64_t out, taps, stride;  // stride: from one tap to the next, a multiple of `lanes`

  // [taps, stride]; behind the last output is the same with weights of zero.
  CountedVector<int32_t> index;
  CountedVector<float> weight;
  // Of the indices of every half a block.
  CountedVector<int32_t> lowest, highest;
};

// y[i] = Σ weight[t] * x[index[t] * step + i], i < n. What has no weight is not read.
void sum_lines(const float* x, int64_t step, const int32_t* index, const double* weight,
               int64_t taps, int64_t n, float* y);

// Pixels of a line one after the other: y has pixel index[0] of x, then pixel index[1] and so on,
// each `bytes` long.
void pick_pixels(const void* x, std::span<const int32_t> index, int64_t bytes, void* y);

// One term of a sum of pixels: how many floats behind the first one it begins, and its factor.
struct PixelTerm {
  int64_t at;
  double weight;
};

// y[o * n + i] = Σ over a in `across` and t of a.weight * weight[o, t] * x[a.at + index[o, t] * n +
// i], i < n: pixels of n floats, `taps` of a line for each. index and weight are [pixels, taps].
// What has no weight is not read. The weights of a pixel are multiplied in double.
void sum_pixels(const float* x, std::span<const PixelTerm> across, std::span<const int32_t> index,
                const double* weight, int64_t taps, int64_t n, float* y);
// The most terms of one pixel.
constexpr int64_t max_pixel_terms = 16;

}  // namespace sardonyx::kernels
