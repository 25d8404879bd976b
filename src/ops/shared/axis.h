// A tensor seen as [outer, n, inner] around one axis.
#pragma once

#include <cstdint>
#include <span>

#include "base/checked.h"

namespace sardonyx::ops {

struct AxisSplit {
  int64_t outer = 1, n = 1, inner = 1;
};

// `axis` is in [0, rank); a scalar is [1, 1, 1].
inline AxisSplit split_at(std::span<const int64_t> shape, int64_t axis) {
  if (shape.empty()) return {};
  const auto at = static_cast<size_t>(axis);
  return {count_of(shape.first(at)), shape[at], count_of(shape.subspan(at + 1))};
}

// An axis from an attribute, which inference has found to be in [-rank, rank), against a rank that
// binding knows.
inline int64_t from_front(int64_t axis, size_t rank) {
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

}  // namespace sardonyx::ops
