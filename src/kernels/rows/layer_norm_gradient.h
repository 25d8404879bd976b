// The gradient of a normalisation row by row.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// The gradients of x and scale in y = (x - mean) / sqrt(variance + epsilon) * scale, mean and
// variance being those of each of `rows` rows of n. dx and dscale are optional outputs: null where
// they are not wanted; dx may be dy.
template <class T>  // float or double
struct LayerNormGradient {
  int64_t rows, n;
  double epsilon;
  const T *x, *scale, *dy;
  T *dx, *dscale;
  // Where element j of row r finds its scale, row_at[r] + at[j], among `scales`; null where that is
  // j in every row.
  const int64_t *row_at = nullptr, *at = nullptr;
  int64_t scales = 0;
};

// Elements of T that it needs as scratch memory.
int64_t layer_norm_gradient_scratch(int64_t rows, int64_t n);

void layer_norm_gradient(const LayerNormGradient<float>& job, float* scratch, ThreadPool& pool);
void layer_norm_gradient(const LayerNormGradient<double>& job, double* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
