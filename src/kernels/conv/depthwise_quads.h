// Depthwise convolution of bytes with channels last by the dot products of AVX-512 (VNNI), four
// taps of a row at a time. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv_bytes.h"
#include "kernels/conv/geometry.h"

namespace sardonyx::kernels {

// Whether this machine does it for such windows: of up to two dimensions, and of 64 lines at most.
// Signed weights must have no zero points.
bool depthwise_quads_applies(const ConvGeometry& g);

// Signed weights [channels, taps], and `sums` of each channel; as many bytes as
// depthwise_bytes_weights has floats are enough.
void pack_depthwise_quads(const ConvGeometry& g, const int8_t* weights, int8_t* out, int32_t* sums);

int64_t depthwise_quads_scratch(const ConvGeometry& g, int threads);
void depthwise_quads(const ConvGeometry& g, const ConvBytes& job, void* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
