// Rotary position embedding.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

struct RotaryShape {
  int64_t batch = 0, heads = 0, length = 0, head_size = 0;
  int64_t head_stride = 0, row_stride = 0;  // of x and y, in elements; a batch is dense
  int64_t rotated =
      0;  // first elements of each head that are transposed; even (an odd one is left out)
  int64_t cache_rows = 0;    // of the tables where positions are given
  bool interleaved = false;  // pairs are neighbours, else the two halves
};

// The angle of row (b, i) is in row positions[b, i] of the tables (checked: throws Error,
// run_failed) or, without positions, in row b * length + i. Rows of the tables have rotated / 2
// values. y may be x.
void rotary_embedding(const RotaryShape& shape, const float* x, const float* cosine,
                      const float* sine, const int64_t* positions, float* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
