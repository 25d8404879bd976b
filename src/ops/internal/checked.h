// Inference of internal operators behind what their structs say of their inputs. Optimised graphs
// may come from files, so that nothing of a node is sure beyond what problem_of tells.
#pragma once

#include <span>
#include <string_view>

#include "ops/infer_context.h"
#include "ops/internal/takes.h"

namespace sardonyx::ops::internal {

// Fails where an input is no tensor, or one of an element type that its operator does not take; the
// last of `takes` is that of all further inputs.
void require_inputs(const InferContext& ctx, std::span<const Takes> takes);

template <class Op, void (*infer)(InferContext&)>
void infer_checked(InferContext& ctx) {
  require_inputs(ctx, Op::takes);
  infer(ctx);
}

// Fails where input i is there and has another shape.
void require_shape(InferContext& ctx, int i, const Dims& wanted);
// Where it is not of so many elements.
void require_count(InferContext& ctx, int i, const Dim& wanted);
// Where both are known and of different element types.
void require_same_element(const InferContext& ctx, int i, int as);
// Where its rank is known and below `least`.
void require_rank(const InferContext& ctx, int i, int64_t least);

}  // namespace sardonyx::ops::internal
