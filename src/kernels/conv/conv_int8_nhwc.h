// Convolution of bytes to bytes or floats with channels last, summed exactly in int32: pixels are
// the rows of matrix products, output channels their columns. Also one input channel for each
// output channel.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_int8.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// One group, or as many as input and output channels with at most 256 taps.
bool conv_int8_nhwc_applies(const ConvParams& shape);

// Values for each output channel, filled up to whole panels: weights' sums and zero points, scales.
int64_t conv_int8_nhwc_channels(const ConvParams& shape);

// Size of the packed weights in bytes. It and the format depend on channels, group, kernel and the
// instruction set. `zeros` [out_channels]: zero points of signed weights, for depthwise kernels
// only, where they are taken off; `sums`: of each channel's signed weights, 0 beyond the last.
int64_t conv_int8_nhwc_weights_size(const ConvParams& shape);
void pack_conv_int8_nhwc_weights(const ConvParams& shape, ElementType type, const void* w,
                                 const int32_t* zeros, void* out, int32_t* sums, ThreadPool& pool);

// y as ConvInt8 says, but with channels last; w_zero, scale and shift have conv_int8_nhwc_channels
// values. job.sums must be null.
int64_t conv_int8_nhwc_scratch_bytes(const ConvParams& shape, int threads);
void conv_int8_nhwc(const ConvParams& shape, const ConvInt8& job, void* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
