// Softmax, LogSoftmax and Hardmax.
#include "kernels/rows/softmax.h"

#include "ops/objections.h"
#include "ops/operator.h"
#include "ops/shared/axis.h"

namespace sardonyx::ops {
namespace softmax_unit {
namespace {

void infer(InferContext& ctx) {
  if (const auto rank = ctx.rank(0)) {
    if (*rank == 0) object(ctx, "the input must have at least one dimension; it is a scalar");
    const int64_t axis = ctx.attr_int("axis", -1);
    if (*rank > 0 || (axis != 0 && axis != -1)) ctx.normalized_axis(axis, *rank);
  }
  ctx.set(0, ctx.type(0));
}

using Kernel = void (*)(ElementType, const void*, void*, int64_t, int64_t, int64_t, ThreadPool&);

template <Kernel kernel>
std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  const bool in_place = kernel != kernels::hardmax;
  auto step = make_step<AxisSplit>(
      kernel == kernels::softmax       ? "softmax"
      : kernel == kernels::log_softmax ? "log_softmax"
                                       : "hardmax",
      [axis = ctx.attr_int("axis", -1)](BindContext& bind, AxisSplit& split) {
        const auto shape = bind.in_shape(0);
        split = split_at(shape, from_front(axis, shape.size()));
      },
      [type](RunContext& run, const AxisSplit& s) {
        kernel(type, run.data(0), run.out_data(0), s.outer, s.n, s.inner, run.pool());
      });
  if (in_place) step->traits().in_place = {{0, 0}};
  return step;
}

// Up to version 12 the operator works on everything from `axis` (default 1) on as one row.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 13) return;
  const int64_t axis = ctx.old().attr_int("axis", 1);
  const auto rank = ctx.rank(0);
  if (ctx.since() == 11 && rank && axis == *rank)
    object(ctx.old(), "axis must be in [{}, {}] in version 11; got {}", -*rank, *rank - 1, axis);
  if (rank && (axis == *rank - 1 || axis == -1)) return ctx.set_attribute("axis", axis);
  if (axis == -1) return ctx.set_attribute("axis", axis);
  const std::string x = ctx.node().inputs[0];
  ctx.set_input(0, ctx.before("Flatten", {x}, {int_attribute("axis", axis)}));
  ctx.set_attribute("axis", int64_t{-1});
  const std::string shape = ctx.before("Shape", {x});
  std::string result;
  const std::string flat = ctx.detach_output(0, &result);
  ctx.after("Reshape", {flat, shape}, result, {int_attribute("allowzero", 1)});
}

constexpr Operator operators[] = {
    {.name = "Hardmax",
     .infer = infer,
     .prepare = prepare<kernels::hardmax>,
     .upgrade = upgrade,
     .same_since = 13},
    {.name = "LogSoftmax",
     .infer = infer,
     .prepare = prepare<kernels::log_softmax>,
     .upgrade = upgrade,
     .same_since = 13},
    {.name = "Softmax",
     .infer = infer,
     .prepare = prepare<kernels::softmax>,
     .upgrade = upgrade,
     .same_since = 13},
};

}  // namespace
}  // namespace softmax_unit

std::span<const Operator> softmax_operators() { return softmax_unit::operators; }

}  // namespace sardonyx::ops
