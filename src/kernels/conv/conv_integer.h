// Convolution of 8-bit integers, summed exactly in int32.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// Weights as int16 with their zero points (one, or one for each output channel; null: 0) taken off.
int64_t conv_integer_weights_size(const ConvParams& shape);  // int16 elements
void pack_conv_integer_weights(const ConvParams& shape, ElementType type, const void* w,
                               const int32_t* zero, bool zero_each, int16_t* packed,
                               ThreadPool& pool);

// y = saturate(round((sum + bias) * scale) + zero), y of type int8 or uint8; bias may be null.
struct ConvRequantize {
  ElementType type = ElementType::uint8;
  const float* scale = nullptr;
  bool scale_each = false;  // one for each output channel
  int32_t zero = 0;
  const int32_t* bias = nullptr;
  void* y = nullptr;
};

int64_t conv_integer_scratch_bytes(const ConvParams& shape, int threads);

// Sums of (x - x_zero) * w over the positions inside x: into `sums`, or through `how` where it is
// given.
void conv_integer(const ConvParams& shape, ElementType x_type, const void* x, int32_t x_zero,
                  const int16_t* weights, int32_t* sums, const ConvRequantize* how, void* scratch,
                  ThreadPool& pool);

}  // namespace sardonyx::kernels
