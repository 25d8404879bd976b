// Depthwise convolution of bytes with channels last. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv_int8.h"
#include "kernels/conv/geometry.h"
#include "kernels/gemm/blocking.h"

namespace sardonyx::kernels {

// Taps of a window whose sums floats hold exactly, in any order: so many products below 2^16.
constexpr int64_t max_depthwise_bytes_taps = 256;

// Channels are computed so many at a time. Weights are floats, their zero points taken off:
// [parts of channels, taps, channels of a part], with zeros where there is no channel.
constexpr int64_t depthwise_bytes_part = 16;
inline int64_t depthwise_bytes_weights(const ConvGeometry& g) {
  return round_up(g.group, depthwise_bytes_part) * g.taps;
}

// A few lines of the input at a time become floats, in memory that stays near, and run through the
// kernels of floats; their sums become bytes.
void depthwise_bytes(const ConvGeometry& g, const ConvInt8& job, void* scratch, ThreadPool& pool);
int64_t depthwise_bytes_scratch(const ConvGeometry& g, int threads);

}  // namespace sardonyx::kernels
