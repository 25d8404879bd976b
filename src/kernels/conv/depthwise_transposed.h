// Transposed convolution with channels last and a kernel for each channel: every pixel of Y is the
// sum of the pixels of X that reach it, each times the weights of all channels at its tap.
//
// In a ConvParams that is given here `in` and `out` are those of X and Y, kernel, stride and
// pad_begin those of the operator; pad_end is not read.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"

namespace sardonyx::kernels {

// Why it does not apply; empty where it does: one channel in and out of each group, no dilation.
std::string_view refuses_depthwise_transposed(const ConvParams& shape);

// [channels, taps] as [taps, channels].
void pack_depthwise_transposed(int64_t channels, int64_t taps, const float* weights, float* packed);

// `bias`, if any, has one value for each channel.
void depthwise_transposed(const ConvParams& shape, const float* x, const float* packed,
                          const float* bias, float* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
