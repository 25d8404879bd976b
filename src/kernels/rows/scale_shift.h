// A factor and a term for each channel, channels innermost.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/gemm/epilogue.h"

namespace sardonyx::kernels {

// y[i][c] = activation(x[i][c] * factor[c] + term[c]) for i < pixels; y may be x. p0 and p1 are the
// activation's parameters.
void scale_shift(const float* x, const float* factor, const float* term, float* y, int64_t pixels,
                 int64_t channels, const Epilogue& activation, ThreadPool& pool);

}  // namespace sardonyx::kernels
