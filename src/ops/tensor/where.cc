// Where: elements of one tensor or another.
#include <algorithm>

#include "kernels/elementwise/binary.h"
#include "ops/shared/fixed_point.h"
#include "ops/shared/held_count.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace where_unit {
namespace {

// Input i's elements spread over the output's shape; nullopt where they are not known.
std::optional<Dims> spread(InferContext& ctx, int i, const Shape& out, int64_t count) {
  const auto shape = known_shape(ctx, i);
  if (!shape) return std::nullopt;
  Dims elements(static_cast<size_t>(count));
  copy_known(kernels::plan_expand(*shape, out), *ctx.elements(i), elements);
  return elements;
}

void pass_known(InferContext& ctx, const Dims& shape) {
  const auto out = small_shape(shape);
  if (!out) return;
  const int64_t count = *product(shape).value();
  const auto condition = spread(ctx, 0, *out, count), x = spread(ctx, 1, *out, count),
             y = spread(ctx, 2, *out, count);
  if (!x && !y) return;
  Dims chosen;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const bool decided = condition && (*condition)[i].is_constant();
    const bool same = x && y && (*x)[i] == (*y)[i];
    const auto& from = same || (decided && !((*condition)[i] == 0)) ? x : y;
    if ((decided || same) && from) {
      chosen.push_back((*from)[i]);
    } else if (has_float_elements(ctx.element(1))) {
      return;  // what may be any float has no name
    } else if (auto either =
                   x && y ? either_element(ctx, (*x)[i], (*y)[i]) : ctx.unknown_element()) {
      chosen.push_back(std::move(*either));
    } else {
      return;
    }
  }
  ctx.set_elements(0, std::move(chosen));
}

void infer(InferContext& ctx) {
  const ElementType type =
      ctx.element(1) != ElementType::undefined ? ctx.element(1) : ctx.element(2);
  if (!ctx.shape(0) || !ctx.shape(1) || !ctx.shape(2)) {
    ctx.set(0, ValueType::tensor(type));
    return;
  }
  const auto shape = ctx.broadcast(ctx.broadcast(*ctx.shape(0), *ctx.shape(1)), *ctx.shape(2));
  ctx.set(0, type, shape);
  pass_known(ctx, shape);
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  struct State {
    kernels::BroadcastPlan plan;
  };
  const kernels::Cell cell = kernels::cell_of(ctx.in_element(1));
  return make_step<State>(
      "where",
      [](BindContext& bind, State& state) {
        state.plan = kernels::plan_broadcast(
            bind.out_shape(0), {bind.in_shape(0), bind.in_shape(1), bind.in_shape(2)});
      },
      [cell](RunContext& run, const State& state) {
        kernels::where(cell, state.plan, run.in<bool>(0), run.data(1), run.data(2), run.out_data(0),
                       run.pool());
      });
}

constexpr Operator operators[] = {{.name = "Where", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace where_unit

std::span<const Operator> where_operators() { return where_unit::operators; }

}  // namespace sardonyx::ops
