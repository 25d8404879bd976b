// Sizes that several inputs of an operator have in common: what one of them says holds where
// another's rank is unknown.
#pragma once

#include <initializer_list>
#include <optional>

#include "ops/infer_context.h"

namespace sardonyx::ops {

// The size of dimension `axis` of input i; nullopt where the input is absent or has no such
// dimension that is known.
inline std::optional<Dim> size_of(const InferContext& ctx, int i, size_t axis) {
  const auto& shape = ctx.shape(i);
  return shape && axis < shape->size() ? std::optional((*shape)[axis]) : std::nullopt;
}

// The first that is known.
inline std::optional<Dim> first_size(std::initializer_list<std::optional<Dim>> sizes) {
  for (const auto& size : sizes) {
    if (size) return size;
  }
  return std::nullopt;
}

// `size`, or one of its own where it is not known.
inline Dim size_or_unknown(InferContext& ctx, const std::optional<Dim>& size) {
  return size ? *size : ctx.unknown();
}

// A known size equals the one that all share, where that is known too; see require_equal.
inline void require_shared(InferContext& ctx, const std::optional<Dim>& size,
                           const std::optional<Dim>& shared, std::string_view what) {
  if (size && shared) ctx.require_equal(*size, *shared, what);
}

}  // namespace sardonyx::ops
