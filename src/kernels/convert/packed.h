// The element types of 6, 4 and 2 bits, which memory holds packed, first element in the low bits.
#pragma once

#include <cstdint>

#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// uint4, int4, float4e2m1, uint2, int2, float6e2m3, float6e3m2.
bool is_packed(ElementType type);

// One byte an element: the value itself for integers (int4 and int2 sign-extended), the bit
// pattern for floats. `n` counts elements, `first` is the element to begin with.
void unpack(ElementType type, const void* x, int64_t first, uint8_t* y, int64_t n);

// Inverse of unpack; takes the low bits of each byte. `first` must begin a byte (a multiple of 2
// for 4-bit types, of 4 for the others); bits after the last element are 0.
void pack(ElementType type, const uint8_t* x, void* y, int64_t first, int64_t n);

}  // namespace sardonyx::kernels
