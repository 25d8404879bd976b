// CumSum and CumProd.
#include "kernels/rows/scan.h"
#include "ops/families/axis.h"
#include "ops/families/element_counts.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

void infer(InferContext& ctx) {
  require_one(ctx, 1);
  ctx.set(0, ctx.type(0));
  if (const auto count = ctx.type(1).element_count())
    ctx.require_equal(*count, Dim(1), "axis must be one number");
  const auto axis = ctx.integers(1);
  if (axis && axis->size() == 1 && ctx.rank(0)) ctx.normalized_axis(axis->front(), *ctx.rank(0));
}

template <kernels::ScanOp op>
std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  const bool exclusive = ctx.attr_int("exclusive", 0) != 0,
             reverse = ctx.attr_int("reverse", 0) != 0;
  return make_step(
      op == kernels::ScanOp::sum ? "cumulative_sum" : "cumulative_product", [=](RunContext& run) {
        const auto shape = run.in_shape(0);
        const auto rank = static_cast<int64_t>(shape.size());
        int64_t axis =
            run.in_type(1) == ElementType::int64 ? *run.in<int64_t>(1) : *run.in<int32_t>(1);
        if (axis < -rank || axis >= rank) {
          throw Error(ErrorCode::run_failed,
                      fmt::format("axis must be in [{}, {}]; got {}", -rank, rank - 1, axis));
        }
        const AxisSplit s = split_at(shape, from_front(axis, shape.size()));
        kernels::cumulate(op, type, run.data(0), run.out_data(0), s.outer, s.n, s.inner, exclusive,
                          reverse, run.pool());
      });
}

constexpr Operator operators[] = {
    {.name = "CumProd", .infer = infer, .prepare = prepare<kernels::ScanOp::product>},
    {.name = "CumSum", .infer = infer, .prepare = prepare<kernels::ScanOp::sum>},
};

}  // namespace

std::span<const Operator> cumulate_operators() { return operators; }

}  // namespace sardonyx::ops
