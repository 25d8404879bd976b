// What element types the inputs of internal operators may have: said beside the inputs' names, and
// held against a node before it is inferred (ops/internal/checked.h).
#pragma once

#include <cstdint>

namespace sardonyx::ops::internal {

enum class Takes : uint8_t {
  anything,        // tensors of any element
  first,           // what the first input has; of those computed in float32, any
  first_or_truth,  // that, or booleans
  floats,          // float16, bfloat16, float32, float64
  float32,
  float32_or_64,
  bytes,  // uint8, int8
  float32_or_bytes,
  int32,
  int64,
  int32_or_64,
};

}  // namespace sardonyx::ops::internal
