// Weighted sums along and across lines of float32; for resize.cc.
#pragma once

#include <cstdint>
#include <vector>

namespace sardonyx::kernels {

// The longest line that is resized at once, and the floats that must be behind any.
constexpr int64_t resize_line_floats = 8192, resize_line_room = 64;

// Elements of a line as sums of `taps` elements of another.
class LineSums {
 public:
  // `index` and `weight` are [out, taps].
  LineSums(const std::vector<int32_t>& index, const std::vector<double>& weight, int64_t out,
           int64_t taps);

  // Reads resize_line_room floats behind the largest index, whatever they are.
  void run(const float* x, float* y) const;

  static constexpr int64_t lanes = 16, half = lanes / 2;  // outputs of a block, and of its parts
  int64_t out, taps, stride;  // stride: from one tap to the next, a multiple of `lanes`

  // [taps, stride]; behind the last output is the same with weights of zero.
  std::vector<int32_t> index;
  std::vector<float> weight;
  // Of the indices of every half a block.
  std::vector<int32_t> lowest, highest;
};

// y[i] = Σ weight[t] * x[index[t] * step + i], i < n. What has no weight is not read.
void sum_lines(const float* x, int64_t step, const int32_t* index, const double* weight,
               int64_t taps, int64_t n, float* y);

}  // namespace sardonyx::kernels
