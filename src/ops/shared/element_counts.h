// Inputs that hold a certain number of elements, which a run checks where it is not known before.
#pragma once

#include "ops/infer_context.h"
#include "ops/objections.h"

namespace sardonyx::ops {

// Input i, where it is given, holds `count` elements, in whatever shape.
inline void require_elements(InferContext& ctx, int i, size_t count) {
  if (!ctx.has_input(i)) return;
  const auto found = ctx.type(i).element_count();
  if (found && *found != static_cast<int64_t>(count)) {
    ctx.require_equal(*found, Dim(static_cast<int64_t>(count)),
                      fmt::format("{} must hold {}", ctx.input_name(i),
                                  count == 1 ? "one element" : fmt::format("{} elements", count)));
  }
}

// The standard wants input i to be of this rank; runs take the elements in any shape.
inline void want_rank(const InferContext& ctx, int i, int64_t rank) {
  const auto found = ctx.rank(i);
  if (found && *found != rank)
    object(ctx, "{} must be of rank {}; it is of rank {}", ctx.input_name(i), rank, *found);
}

inline void require_one(InferContext& ctx, int i) { require_elements(ctx, i, 1); }

}  // namespace sardonyx::ops
