// Internal to kernels/conv/depthwise_int8.cc, which is compiled once for each instruction set.
#pragma once

#include <cstdint>

#include "kernels/conv/depthwise_int8.h"

namespace sardonyx::kernels {

// What is done to bytes that become floats, and to sums that become bytes, of one part of the
// channels.
struct BytesPart {
  BytesPart(const ConvInt8& job, int64_t channels, int64_t index);

  ElementType x_type, y_type;
  int32_t x_zero, zero;
  int64_t channels;  // bytes between pixels
  int64_t count;     // channels of the part that there are
  float scale[depthwise_bytes_part] = {};
  float shift[depthwise_bytes_part] = {};
  float low, high;
  int32_t bias[depthwise_bytes_part] = {};
};

}  // namespace sardonyx::kernels
