// Bytes to float32 and back, with one scale and zero point.
#pragma once

#include <cstdint>

#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

struct ByteScale {
  ElementType type = ElementType::uint8;  // or int8
  float scale = 1;
  int32_t zero = 0;
};

// Whether it is of bytes, and the zero point one of them.
constexpr bool is_sound(const ByteScale& how) {
  if (how.type == ElementType::int8) return how.zero >= INT8_MIN && how.zero <= INT8_MAX;
  return how.type == ElementType::uint8 && how.zero >= 0 && how.zero <= UINT8_MAX;
}

// Sums of bytes that are bytes again: `first` and `second` converted to float32, added, perhaps
// raised to 0, and rounded by `y`. Bytes of `second` and of `y` are of one type.
struct ByteSum {
  ByteScale first, second, y;
  bool relu = false;
};

// 1 / scale where multiplying by it comes near enough to dividing, else 0.
float byte_factor(float scale);

// y = saturate(round(x / scale) + zero), ties to even; NaN gives the lowest value.
void floats_to_bytes(const ByteScale& how, const float* x, void* y, int64_t n);
// The least and the largest of x and 0; NaN counts for nothing.
struct FloatRange {
  float low = 0, high = 0;
};
FloatRange range_with_zero(const float* x, int64_t n);

// y = (x - zero) * scale.
void bytes_to_floats(const ByteScale& how, const void* x, float* y, int64_t n);

}  // namespace sardonyx::kernels
