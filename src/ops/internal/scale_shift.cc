// The internal ScaleShift.
#include "kernels/rows/scale_shift.h"

#include "base/checked.h"
#include "ops/internal/checked.h"
#include "ops/internal/images.h"
#include "ops/internal/node.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace scale_shift_unit {
namespace {

using internal::ScaleShift;

void infer(InferContext& ctx) {
  internal::from_node<ScaleShift>(ctx.node());
  internal::require_rank(ctx, ScaleShift::x, 1);
  ctx.set(0, ctx.type(ScaleShift::x));
  const auto& x = ctx.shape(ScaleShift::x);
  for (const int i : {ScaleShift::factors, ScaleShift::terms})
    if (x) internal::require_shape(ctx, i, {x->back()});
}

struct State {
  int64_t pixels = 0, channels = 0;
};

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  auto step = make_step<State>(
      "scale_shift",
      [](BindContext& bind, State& s) {
        const auto x = bind.in_shape(ScaleShift::x);
        s = {count_of(x.first(x.size() - 1)), x.back()};
      },
      [epilogue = internal::from_node<ScaleShift>(ctx.node()).activation.epilogue()](
          RunContext& run, const State& s) {
        kernels::scale_shift(run.in<float>(ScaleShift::x), run.in<float>(ScaleShift::factors),
                             run.in<float>(ScaleShift::terms), run.out<float>(0), s.pixels,
                             s.channels, epilogue, run.pool());
      });
  step->traits().in_place = {{0, ScaleShift::x}};
  return step;
}

constexpr Operator operators[] = {
    {.name = ScaleShift::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<ScaleShift, infer>,
     .prepare = prepare},
};

}  // namespace
}  // namespace scale_shift_unit

std::span<const Operator> scale_shift_operators() { return scale_shift_unit::operators; }

}  // namespace sardonyx::ops
