// Depthwise convolution of bytes with channels last. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv_bytes.h"
#include "kernels/conv/geometry.h"

namespace sardonyx::kernels {

// Taps of a window whose sums floats hold exactly, in any order: so many products below 2^16.
constexpr int64_t most_depthwise_bytes_taps = 256;

// The lines of the input become floats, a few at a time, and run through the kernels of floats;
// their sums become bytes. job.weights holds floats [taps, channels], their zero points taken off.
void depthwise_bytes(const ConvGeometry& g, const ConvBytes& job, void* scratch, ThreadPool& pool);
int64_t depthwise_bytes_scratch(const ConvGeometry& g, int threads);

}  // namespace sardonyx::kernels
