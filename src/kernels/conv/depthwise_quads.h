// Depthwise convolution of bytes with channels last by the dot products of AVX-512 (VNNI), four
// taps of a row at a time. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_bytes.h"

namespace sardonyx::kernels {

// Whether this machine does it for such weights: of up to two dimensions, and of 32 lines at most.
// It, the weights' size and their format depend on channels and kernel only.
bool depthwise_quads_applies(const ConvShape& shape);

// Weights [channels, taps] less their zero points, from -255 to 255, and `sums` of each channel.
// Where no channel has a zero point they are bytes, else sums of two bytes; there is room for both.
int64_t depthwise_quads_weights_size(const ConvShape& shape);
void pack_depthwise_quads(const ConvShape& shape, const int16_t* weights, bool has_zeros,
                          int8_t* out, int32_t* sums);

int64_t depthwise_quads_scratch(const ConvShape& shape, int threads);
void depthwise_quads(const ConvShape& shape, const ConvBytes& job, void* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
