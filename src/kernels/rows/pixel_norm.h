// Normalisation over groups of channels, channels innermost.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/gemm/epilogue.h"

namespace sardonyx::kernels {

// x is [n, pixels, channels] of float32; each of `groups` groups of channels of each image is
// normalised alone, as group_norm does with channels first; scale and bias are [channels]. Then the
// activation. y may be x. `scratch` has pixel_norm_floats floats. The same bits on any number of
// threads.
void pixel_norm(const float* x, const float* scale, const float* bias, float* y, int64_t n,
                int64_t pixels, int64_t channels, int64_t groups, double epsilon,
                const Epilogue& activation, float* scratch, ThreadPool& pool);
int64_t pixel_norm_floats(int64_t pixels, int64_t channels);

}  // namespace sardonyx::kernels
