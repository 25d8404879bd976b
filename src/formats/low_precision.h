// One number of a floating type below 32 bits, bit by bit: for text and JSON, not for speed.
// Internal to formats.
#pragma once

#include <cstdint>

#include "sardonyx/element_type.h"

namespace sardonyx::formats {

// The value of the lowest bits of `bits`; `type` is float16, bfloat16, a float8, float6 or
// float4e2m1.
double decode_low(ElementType type, uint32_t bits);

// The nearest number of `type`, ties to even. What is too large becomes infinity where the type
// has one and its largest number where it has none; NaN becomes its NaN, or 0 where it has none.
uint32_t encode_low(ElementType type, double value);

}  // namespace sardonyx::formats
