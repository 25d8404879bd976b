// Internal to formats.
#pragma once

#include "sardonyx/element_type.h"

namespace sardonyx::formats {

inline bool is_complex(ElementType type) {
  return type == ElementType::complex64 || type == ElementType::complex128;
}

}  // namespace sardonyx::formats
