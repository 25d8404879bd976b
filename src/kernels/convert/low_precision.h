// The narrow floating types, one element at a time, on their bit patterns.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace sardonyx::kernels {

// What a format does with its topmost patterns.
enum class Specials : int32_t {
  ieee,           // exponent all ones: infinity and NaN
  finite,         // all ones is NaN, no infinity
  unsigned_zero,  // no infinity, no -0: its pattern is the NaN
  none,           // every pattern is a number
};

template <int exponent_bits, int mantissa_bits, int bias, Specials specials>
struct SmallFloat {
  static constexpr int width = 1 + exponent_bits + mantissa_bits;
  static constexpr uint32_t sign_bit = 1u << (width - 1);
  static constexpr uint32_t top = sign_bit - 1;  // the greatest magnitude pattern
  static constexpr uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  static constexpr uint32_t largest = specials == Specials::ieee     ? infinity - 1
                                      : specials == Specials::finite ? top - 1
                                                                     : top;

  static float decode(uint32_t bits) {
    const uint32_t magnitude = bits & top;
    const bool negative = (bits & sign_bit) != 0;
    if constexpr (specials == Specials::unsigned_zero) {
      if (bits == sign_bit) return std::bit_cast<float>(0x7fc00000u);
    }
    uint32_t f;
    if ((specials == Specials::ieee && magnitude > infinity) ||
        (specials == Specials::finite && magnitude == top)) {
      f = 0x7fc00000u;
    } else if (specials == Specials::ieee && magnitude == infinity) {
      f = 0x7f800000u;
    } else if (magnitude < (1u << mantissa_bits)) {  // zero and subnormal
      constexpr float unit = std::bit_cast<float>(uint32_t(128 - bias - mantissa_bits) << 23);
      f = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * unit);
    } else {
      f = (magnitude << (23 - mantissa_bits)) + (uint32_t(127 - bias) << 23);
    }
    return std::bit_cast<float>(f | (negative ? 0x80000000u : 0u));
  }

  // Nearest, ties to even. What is too large becomes the largest number if `saturate`, else
  // infinity or NaN, whichever the format has.
  static uint32_t encode(float value, bool saturate) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (f >> 31) << (width - 1);
    const uint32_t magnitude = f & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return not_a_number(sign);
    constexpr int shift = 23 - mantissa_bits;
    constexpr uint32_t min_normal = uint32_t(128 - bias) << 23;
    uint32_t code;
    if (magnitude < min_normal) {
      // Adding a number whose unit is the format's smallest step rounds to that step.
      constexpr uint32_t magic = uint32_t(151 - bias - mantissa_bits) << 23;
      const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(magic);
      code = std::bit_cast<uint32_t>(sum) - magic;
    } else {
      const uint32_t rounded = magnitude + ((magnitude >> shift) & 1u) + ((1u << (shift - 1)) - 1);
      code = (rounded >> shift) - (uint32_t(127 - bias) << mantissa_bits);
    }
    if (code > largest) {
      if (saturate || specials == Specials::none) {
        code = largest;
      } else if (specials == Specials::ieee) {
        code = infinity;
      } else {
        return not_a_number(sign);
      }
    }
    if (specials == Specials::unsigned_zero && code == 0) return 0;
    return code | sign;
  }

 private:
  static constexpr uint32_t not_a_number(uint32_t sign) {
    switch (specials) {
      case Specials::ieee: return sign | infinity | (1u << (mantissa_bits - 1));
      case Specials::finite: return sign | top;
      case Specials::unsigned_zero: return sign_bit;
      default: return sign_bit;  // no NaN: negative zero, as ml_dtypes has it
    }
  }
};

using Float16 = SmallFloat<5, 10, 15, Specials::ieee>;
using Float8e4m3fn = SmallFloat<4, 3, 7, Specials::finite>;
using Float8e4m3fnuz = SmallFloat<4, 3, 8, Specials::unsigned_zero>;
using Float8e5m2 = SmallFloat<5, 2, 15, Specials::ieee>;
using Float8e5m2fnuz = SmallFloat<5, 2, 16, Specials::unsigned_zero>;
using Float6e2m3 = SmallFloat<2, 3, 1, Specials::none>;
using Float6e3m2 = SmallFloat<3, 2, 3, Specials::none>;
using Float4e2m1 = SmallFloat<2, 1, 1, Specials::none>;

inline float half_to_float(uint16_t bits) { return Float16::decode(bits); }
inline uint16_t float_to_half(float value) {
  return static_cast<uint16_t>(Float16::encode(value, false));
}

inline float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
inline uint16_t float_to_bfloat16(float value) {
  const uint32_t f = std::bit_cast<uint32_t>(value);
  if ((f & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((f >> 16) | 0x40u);
  return static_cast<uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
}

// 2^(bits - 127); 255 is NaN.
inline float e8m0_to_float(uint8_t bits) {
  if (bits == 255) return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23);
}

// `up`: to the next power of two; `nearest`: the nearest one, ties up; neither: down. Numbers the
// format has no power for saturate, or become NaN. Negative numbers and NaN give NaN.
inline uint8_t float_to_e8m0(float value, bool saturate, bool up, bool nearest) {
  if (std::isnan(value) || value < 0) return 255;
  const uint32_t f = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
  if (f < 0x00400000u) return saturate ? 0 : 255;  // below 2^-127, zero among them
  if (f == 0x7f800000u) return saturate ? 254 : 255;
  // Subnormal floats from 2^-127 on have one bit less of fraction below the leading one.
  const uint32_t exponent = f >> 23;
  const uint32_t half = exponent == 0 ? 0x00200000u : 0x00400000u;
  const uint32_t fraction = f & (2 * half - 1);
  const uint32_t code = exponent + ((up && fraction != 0) || (nearest && fraction >= half));
  if (code == 255) return saturate ? 254 : 255;
  return static_cast<uint8_t>(code);
}

// The float next to `value` that keeps a trace of what was cut off, so that rounding it again to
// fewer bits gives what rounding `value` itself would.
inline float round_to_odd(double value) {
  const float near = static_cast<float>(value);
  if (static_cast<double>(near) == value || std::isnan(value)) return near;
  uint32_t bits = std::bit_cast<uint32_t>(near);
  if (std::fabs(static_cast<double>(near)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace sardonyx::kernels
