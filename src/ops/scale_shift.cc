// ScaleShift (internal, domain "sardonyx"): X times a factor plus a term for each channel, channels
// innermost, then an activation: inputs X, factors, terms.
#include "kernels/rows/scale_shift.h"

#include "base/checked.h"
#include "ops/families/product.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

void infer(InferContext& ctx) {
  ctx.set(0, ctx.type(0));
  const auto& x = ctx.shape(0);
  for (int i = 1; i < 3 && x && !x->empty(); ++i) {
    if (ctx.rank(i) == 1) {
      ctx.require_equal((*ctx.shape(i))[0], x->back(), "there is one value for each channel");
    }
  }
}

struct State {
  int64_t pixels = 0, channels = 0;
};

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  auto step = make_step<State>(
      "scale_shift",
      [](BindContext& bind, State& s) {
        const auto x = bind.in_shape(0);
        s = {count_of(x.first(x.size() - 1)), x.back()};
      },
      [epilogue = read_epilogue(ctx)](RunContext& run, const State& s) {
        kernels::scale_shift(run.in<float>(0), run.in<float>(1), run.in<float>(2),
                             run.out<float>(0), s.pixels, s.channels, epilogue, run.pool());
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

constexpr Operator operators[] = {
    {.name = "ScaleShift", .domain = "sardonyx", .infer = infer, .prepare = prepare},
};

}  // namespace

std::span<const Operator> scale_shift_operators() { return operators; }

}  // namespace sardonyx::ops
