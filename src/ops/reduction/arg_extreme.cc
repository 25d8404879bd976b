// ArgMax and ArgMin.
#include "kernels/rows/arg_extreme.h"
#include "ops/objections.h"
#include "ops/operator.h"
#include "ops/shared/axis.h"
#include "ops/shared/declared_int32.h"

namespace sardonyx::ops {
namespace arg_extreme_unit {
namespace {

void infer(InferContext& ctx) {
  const auto& x = ctx.shape(0);
  if (!x) return ctx.set(0, ValueType::tensor(ElementType::int64));
  const int64_t wanted = ctx.attr_int("axis", 0);
  if (x->empty() && ctx.has_attribute("axis"))
    object(ctx, "axis must not be given for a scalar; got {}", wanted);
  const auto axis = static_cast<size_t>(
      x->empty() && (wanted == 0 || wanted == -1) ? 0 : ctx.normalized_axis(wanted, *ctx.rank(0)));
  Dims y = *x;
  if (!y.empty()) {
    if (ctx.attr_int("keepdims", 1) != 0) {
      y[axis] = Dim(1);
    } else {
      y.erase(y.begin() + static_cast<int64_t>(axis));
    }
  }
  ctx.set(0, ElementType::int64, std::move(y));
}

template <bool largest>
std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  const bool last = ctx.attr_int("select_last_index", 0) != 0;
  return make_step<AxisSplit>(
      largest ? "arg_max" : "arg_min",
      [axis = ctx.attr_int("axis", 0)](BindContext& bind, AxisSplit& s) {
        s = split_at(bind.in_shape(0), from_front(axis, bind.in_shape(0).size()));
      },
      [type, last](RunContext& run, const AxisSplit& s) {
        kernels::arg_extreme(largest, last, type, run.data(0), run.out<int64_t>(0), s.outer, s.n,
                             s.inner, run.pool());
      });
}

// In release 1.0 the positions were int32.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() < 11) keep_int32(ctx, 0);
}

constexpr Operator operators[] = {
    {.name = "ArgMax",
     .infer = infer,
     .prepare = prepare<true>,
     .upgrade = upgrade,
     .same_since = 11},
    {.name = "ArgMin",
     .infer = infer,
     .prepare = prepare<false>,
     .upgrade = upgrade,
     .same_since = 11},
};

}  // namespace
}  // namespace arg_extreme_unit

std::span<const Operator> arg_extreme_operators() { return arg_extreme_unit::operators; }

}  // namespace sardonyx::ops
