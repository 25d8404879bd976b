// Convolutions outside float32: double, and 8-bit integers summed in int32.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// `bias` (one value an output channel) may be null.
void conv_double(const ConvShape& shape, const double* x, const double* w, const double* bias,
                 double* y, ThreadPool& pool);

// y = sum of (x - x_zero) * (w - w_zero[output channel]) over the positions inside x, wrapping.
// x_type and w_type are int8 or uint8; w_zero has out_channels values, or is null for 0. Padding
// counts as x_zero, that is as nothing.
void conv_integer(const ConvShape& shape, ElementType x_type, const void* x, int32_t x_zero,
                  ElementType w_type, const void* w, const int32_t* w_zero, int32_t* y,
                  ThreadPool& pool);

}  // namespace sardonyx::kernels
