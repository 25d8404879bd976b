#include "formats/low_precision.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sardonyx::formats {
namespace {

// How a type uses its codes beyond the plain numbers.
enum class Special { ieee, one_nan, negative_zero_is_nan, none };

struct Format {
  int exponent_bits, mantissa_bits, bias;
  Special special;
};

Format format_of(ElementType type) {
  switch (type) {
    case ElementType::float16: return {5, 10, 15, Special::ieee};
    case ElementType::bfloat16: return {8, 7, 127, Special::ieee};
    case ElementType::float8e5m2: return {5, 2, 15, Special::ieee};
    case ElementType::float8e4m3fn: return {4, 3, 7, Special::one_nan};
    case ElementType::float8e4m3fnuz: return {4, 3, 8, Special::negative_zero_is_nan};
    case ElementType::float8e5m2fnuz: return {5, 2, 16, Special::negative_zero_is_nan};
    case ElementType::float6e2m3: return {2, 3, 1, Special::none};
    case ElementType::float6e3m2: return {3, 2, 3, Special::none};
    default: return {2, 1, 1, Special::none};  // float4e2m1
  }
}

// The code of the largest finite number, without its sign.
uint32_t largest(const Format& f) {
  const uint32_t all = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (f.special == Special::ieee) return all - (1u << f.mantissa_bits);
  return f.special == Special::one_nan ? all - 1 : all;
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

uint32_t encode_e8m0(double value) {
  if (std::isnan(value) || value < 0) return 0xff;
  const double exponent = value == 0 ? -127 : std::nearbyint(std::log2(value));
  return static_cast<uint32_t>(std::clamp(exponent + 127, 0.0, 254.0));
}

uint32_t nan_code(const Format& f) {
  const int bits = f.exponent_bits + f.mantissa_bits;
  switch (f.special) {
    case Special::ieee: return largest(f) + 1 + (1u << (f.mantissa_bits - 1));
    case Special::one_nan: return (1u << bits) - 1;
    case Special::negative_zero_is_nan: return 1u << bits;
    default: return 0;
  }
}

}  // namespace

double decode_low(ElementType type, uint32_t bits) {
  if (type == ElementType::float8e8m0)
    return (bits & 0xff) == 0xff ? not_a_number
                                 : std::ldexp(1.0, static_cast<int>(bits & 0xff) - 127);
  const Format f = format_of(type);
  const int sign_bit = f.exponent_bits + f.mantissa_bits;
  const uint32_t code = bits & ((1u << sign_bit) - 1);
  const bool negative = (bits >> sign_bit & 1) != 0;
  if (f.special == Special::negative_zero_is_nan && negative && code == 0) return not_a_number;
  if (code > largest(f)) {
    const bool infinite = f.special == Special::ieee && code == largest(f) + 1;
    return infinite ? (negative ? -HUGE_VAL : HUGE_VAL) : not_a_number;
  }
  const auto exponent = static_cast<int>(code >> f.mantissa_bits);
  const auto fraction = static_cast<double>(code & ((1u << f.mantissa_bits) - 1));
  const double hidden = exponent == 0 ? 0 : std::ldexp(1.0, f.mantissa_bits);
  const double magnitude =
      std::ldexp(hidden + fraction, std::max(exponent, 1) - f.bias - f.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

uint32_t encode_low(ElementType type, double value) {
  if (type == ElementType::float8e8m0) return encode_e8m0(value);
  const Format f = format_of(type);
  const uint32_t sign = std::signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
  if (std::isnan(value)) return nan_code(f);
  const uint32_t too_large = f.special == Special::ieee ? largest(f) + 1 : largest(f);
  if (std::isinf(value)) return sign | too_large;
  const double magnitude = std::fabs(value);
  int exponent = std::max(magnitude == 0 ? 1 - f.bias : std::ilogb(magnitude), 1 - f.bias);
  // In units of the last place; a carry into the next exponent comes out right by itself.
  const double units = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  if (exponent + f.bias > 1 << f.exponent_bits) return sign | too_large;
  const auto code = static_cast<uint32_t>(units) +
                    (static_cast<uint32_t>(exponent + f.bias - 1) << f.mantissa_bits);
  if (code > largest(f)) return sign | too_large;
  if (f.special == Special::negative_zero_is_nan && code == 0) return 0;
  return sign | code;
}

}  // namespace sardonyx::formats
