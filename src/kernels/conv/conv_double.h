// Convolution of float64.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"

namespace sardonyx::kernels {

// `bias` (one value an output channel) may be null.
void conv_double(const ConvParams& shape, const double* x, const double* w, const double* bias,
                 double* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
