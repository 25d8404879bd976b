// Converting a stretch of a narrow floating type from and to float32; inside convert/ only.
#pragma once

#include <cstdint>

#include "kernels/convert/cast.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

void half_to_floats(const uint16_t* x, float* y, int64_t n);
void floats_to_half(const float* x, uint16_t* y, int64_t n);
void bfloat16_to_floats(const uint16_t* x, float* y, int64_t n);
void floats_to_bfloat16(const float* x, uint16_t* y, int64_t n);
// The float8 types, float8e8m0, float6* and float4e2m1 as one pattern a byte.
void float8_to_floats(ElementType type, const uint8_t* x, float* y, int64_t n);
void floats_to_float8(ElementType type, const float* x, uint8_t* y, int64_t n,
                      const CastOptions& options);

}  // namespace sardonyx::kernels
