// Sizes that a model computes as floats: what ValueFacts::elements says of float32 and float64
// tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ops/infer_context.h"

namespace sardonyx::ops {

// The elements of such a tensor are known as multiples of 1/float_unit, so that `h * 0.5` is an
// expression, floor() of it is floor(h/2), and what only moves elements need not know their type.
// Sizes and their products are taken to be numbers that the type holds exactly: only
// symbolic_values inference follows expressions through floats.
inline constexpr int64_t float_unit = int64_t{1} << 16;
inline constexpr int64_t max_known_floats = 16;

inline bool has_float_elements(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float64;
}

// Null where the tensor is of another type, too large, or holds what is no multiple of the unit.
std::shared_ptr<const Dims> float_elements(const Tensor& tensor);

// The tensor that elements in units stand for, which must all be numbers.
Tensor float_tensor(ElementType type, const Dims& elements, Shape shape);

// The elements of a small constant float input i, as far as inference may compute with them;
// nullopt where it is not one.
std::optional<std::vector<double>> known_floats(const InferContext& ctx, int i);

// Makes output 0 a constant of its element type and shape, which must be set and be numbers. A
// result of one operation in double precision, rounded, is what the type's own arithmetic gives.
void set_floats(InferContext& ctx, const std::vector<double>& values);

}  // namespace sardonyx::ops
