// What to do where a value has another element type than is wanted.
#pragma once

#include <string>

#include "sardonyx/element_type.h"

namespace sardonyx::infer {

// "; convert it, as with array.astype(np.float32)"; empty where numbers of one type can't simply
// become those of the other.
std::string conversion_advice(ElementType given, ElementType wanted);

}  // namespace sardonyx::infer
