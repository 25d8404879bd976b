// Depthwise convolution of bytes with channels last by the dot products of AVX-512 (VNNI), four
// taps of a row at a time. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_int8.h"

namespace sardonyx::kernels {

// Whether this machine does it for such weights: of up to two dimensions, and of 32 lines at most.
// It, the weights' size and their format depend on channels and kernel only.
bool depthwise_vnni_applies(const ConvParams& shape);

// Weights [channels, taps] less their zero points, from -255 to 255, and `sums` of each channel.
// `zeros`: those zero points, of signed weights; null: all are 0. Then weights are bytes, else sums
// of two bytes; there is room for both.
int64_t depthwise_vnni_weights_size(const ConvParams& shape);
void pack_depthwise_vnni(const ConvParams& shape, const int16_t* weights, const int32_t* zeros,
                         int8_t* out, int32_t* sums);

int64_t depthwise_vnni_scratch(const ConvParams& shape, int threads);
void depthwise_vnni(const ConvParams& shape, const ConvInt8& job, void* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
