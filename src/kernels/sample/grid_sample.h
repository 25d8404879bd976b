// GridSample: reading a tensor at positions between its elements.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

enum class SampleMode : int32_t { nearest, linear, cubic };
enum class SamplePadding : int32_t { zeros, border, reflection };

struct GridShape {
  static constexpr int max_rank = 4;
  int64_t batch = 0, channels = 0;
  int rank = 2;               // spatial dimensions
  int64_t in[max_rank] = {};  // of x
  int64_t points = 0;         // positions in each batch
  SampleMode mode = SampleMode::linear;
  SamplePadding padding = SamplePadding::zeros;
  bool align_corners = false;
};

// x [batch, channels, in...], grid [batch, points, rank] (innermost dimension first, -1 to 1 across
// x), y [batch, channels, points]. T is float or double. Positions that are no numbers read index
// 0. V is T, a complex number, uint64_t or std::string: the last two take the mode nearest only, as
// they aren't summed; outside, with padding by zeros, strings are empty.
template <class V, class T>
void grid_sample(const GridShape& shape, const V* x, const T* grid, V* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
