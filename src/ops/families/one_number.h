// Inputs that are one number in a tensor.
#pragma once

#include "ops/infer_context.h"

namespace sardonyx::ops {

// Input i, where it is given, holds one element, in whatever shape.
inline void require_one(InferContext& ctx, int i) {
  if (!ctx.has_input(i)) return;
  if (const auto count = ctx.type(i).element_count())
    ctx.require_equal(*count, Dim(1), fmt::format("{} must hold one element", ctx.input_name(i)));
}

}  // namespace sardonyx::ops
