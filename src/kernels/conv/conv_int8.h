// Convolution of bytes to bytes or floats, summed exactly in int32, four input channels at a time.
#pragma once

#include <cstdint>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "kernels/convert/byte_scale.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// Bytes of packed weights: signed, four channels side by side, and one row of ones for each group.
int64_t conv_int8_weights_size(const ConvParams& shape);
// `sums` [out_channels]: of each channel's signed weights.
void pack_conv_int8_weights(const ConvParams& shape, ElementType type, const void* w, int8_t* out,
                            int32_t* sums, ThreadPool& pool);

// y = saturate(round((sum of (x - x_zero) (w - w_zero) + bias) * scale) + zero); where y_type is
// float32, y = (sum of (x - x_zero) (w - w_zero)) * scale + shift, within [low, high]; where `sums`
// is given, sums = sum of (x - x_zero) (w - w_zero). With an `addend`, bytes laid out as y is (it
// may be y), the bytes so made, of sum.first's type and zero point, are the first of `sum` and the
// addend the second: only with channels last and one group.
struct ConvInt8 {
  ElementType x_type = ElementType::uint8;
  const void* x = nullptr;
  int32_t x_zero = 0;
  const int8_t* weights = nullptr;  // packed
  const int32_t* weight_sums = nullptr;
  const int32_t* w_zero = nullptr;  // of each output channel, for signed weights; null: 0
  const int32_t* bias = nullptr;    // of each output channel; may be null
  const float* scale = nullptr;     // of each output channel
  const float* shift = nullptr;     // of each output channel, for float32; may be null
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  ElementType y_type = ElementType::uint8;
  int32_t zero = 0;
  void* y = nullptr;
  int32_t* sums = nullptr;
  const void* addend = nullptr;
  ByteSum sum;
};

// Taps of a kernel that a group of one input channel may have.
inline constexpr int64_t conv_int8_max_taps = 512;
int64_t conv_int8_scratch_bytes(const ConvParams& shape, int threads);
void conv_int8(const ConvParams& shape, const ConvInt8& job, void* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
