// What values take of memory.
#pragma once

#include <cstdint>
#include <string>

#include "sardonyx/element_type.h"

namespace sardonyx::ops {

// Bytes that so many elements take; of strings, what stands for each of them, without the text of
// long ones.
inline int64_t memory_of(ElementType type, int64_t count) {
  if (type != ElementType::string) return byte_size(type, count);
  constexpr auto each = static_cast<int64_t>(sizeof(std::string));
  return count > INT64_MAX / each ? INT64_MAX : count * each;
}

}  // namespace sardonyx::ops
