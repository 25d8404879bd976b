// Keys and values that a generation's graphs hand from step to step.
#pragma once

#include <span>

#include "ops/shared/iteration.h"

namespace sardonyx::ops::generation {

// `tensor` with `rows[i]` of its rows as row i, along `axis` (0 or 1): the tensor itself where that
// is what it has. Throws Error where memory or a row is missing.
Tensor pick_rows(const RunEnvironment& environment, const Tensor& tensor, size_t axis,
                 std::span<const int32_t> rows);

// Row i of the batch as `each` rows; the tensor itself where that is one.
Tensor repeat_rows(const RunEnvironment& environment, const Tensor& tensor, size_t axis,
                   int64_t each);

// Fails where what a graph gave has another type, or another shape; -1: any size.
void require_shape(const Value& value, ElementType type, std::span<const int64_t> shape,
                   std::string_view name);

}  // namespace sardonyx::ops::generation
