// Elements below 8 bits: packed in the engine, one a byte in ml_dtypes' arrays.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sardonyx/element_type.h"

namespace sardonyx::python {

inline bool is_packed(ElementType type) {
  const int bits = bit_width(type);
  return bits > 0 && bits < 8;
}

// `packed` has room for byte_size(type, count).
void pack(ElementType type, const uint8_t* elements, int64_t count, uint8_t* packed);
// Negative integers come with the sign in all bits of their byte.
void unpack(ElementType type, const uint8_t* packed, int64_t count, uint8_t* elements);

}  // namespace sardonyx::python
