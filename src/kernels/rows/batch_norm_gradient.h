// The gradient of a BatchNormalization that normalises with the moments of its batch.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// x, dy and dx are [n, channels, inner], the others [channels]. dx, dscale and dbias are optional
// outputs: null where they are not wanted; dx may be dy. What y = (x - mean) / sqrt(variance +
// epsilon) * scale + bias gives back to x, scale and bias, mean and variance being those of x.
template <class T>  // float or double
struct BatchNormGradient {
  int64_t n, channels, inner;
  double epsilon;
  const T *x, *scale, *dy;
  T *dx, *dscale, *dbias;
};

void batch_norm_gradient(const BatchNormGradient<float>& job, ThreadPool& pool);
void batch_norm_gradient(const BatchNormGradient<double>& job, ThreadPool& pool);

}  // namespace sardonyx::kernels
