// Rows of any number type seen as rows of the type that arithmetic is done in: float, double or a
// 64-bit integer. A row that already has that type is passed as it is, others by tiles.
// Inside rows/ and pool/ only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/convert/cast.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

template <class C>
constexpr ElementType element_of() {
  if constexpr (std::is_same_v<C, float>) return ElementType::float32;
  if constexpr (std::is_same_v<C, double>) return ElementType::float64;
  if constexpr (std::is_same_v<C, int32_t>) return ElementType::int32;
  if constexpr (std::is_same_v<C, int64_t>) return ElementType::int64;
  return ElementType::uint64;
}

inline constexpr int64_t value_tile = 1024;

inline const uint8_t* element_at(ElementType type, const void* x, int64_t i) {
  return static_cast<const uint8_t*>(x) + i * (bit_width(type) / 8);
}
inline uint8_t* element_at(ElementType type, void* x, int64_t i) {
  return static_cast<uint8_t*>(x) + i * (bit_width(type) / 8);
}

// visit(const C* values, int64_t position, int64_t n) for parts of elements [begin, begin + n),
// positions counted from begin.
template <class C, class Visit>
void visit_values(ElementType type, const void* x, int64_t begin, int64_t n, Visit&& visit) {
  if (type == element_of<C>()) {
    visit(static_cast<const C*>(x) + begin, int64_t{0}, n);
    return;
  }
  alignas(64) C values[value_tile];
  for (int64_t i = 0; i < n; i += value_tile) {
    const int64_t some = std::min(value_tile, n - i);
    cast_row(type, element_of<C>(), element_at(type, x, begin + i), values, some);
    visit(values, i, some);
  }
}

// map(const C* from, C* to, int64_t position, int64_t n), from and to the same place or not.
template <class C, class Map>
void map_values(ElementType type, const void* x, void* y, int64_t begin, int64_t n, Map&& map) {
  if (type == element_of<C>()) {
    map(static_cast<const C*>(x) + begin, static_cast<C*>(y) + begin, int64_t{0}, n);
    return;
  }
  alignas(64) C values[value_tile];
  for (int64_t i = 0; i < n; i += value_tile) {
    const int64_t some = std::min(value_tile, n - i);
    cast_row(type, element_of<C>(), element_at(type, x, begin + i), values, some);
    map(values, values, i, some);
    cast_row(element_of<C>(), type, values, element_at(type, y, begin + i), some);
  }
}

template <class C>
C value_at(ElementType type, const void* x, int64_t i) {
  if (type == element_of<C>()) return static_cast<const C*>(x)[i];
  C value;
  cast_row(type, element_of<C>(), element_at(type, x, i), &value, 1);
  return value;
}

template <class C>
void put_value(ElementType type, void* y, int64_t i, C value) {
  if (type == element_of<C>()) {
    static_cast<C*>(y)[i] = value;
  } else {
    cast_row(element_of<C>(), type, &value, element_at(type, y, i), 1);
  }
}

}  // namespace sardonyx::kernels
