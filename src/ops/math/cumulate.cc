// CumSum and CumProd.
#include "kernels/rows/scan.h"
#include "ops/operator.h"
#include "ops/shared/axis.h"
#include "ops/shared/element_counts.h"

namespace sardonyx::ops {
namespace cumulate_unit {
namespace {

// The elements of a row, each with all before it.
void pass_known(InferContext& ctx, kernels::ScanOp op) {
  const auto* elements = ctx.elements(0);
  if (elements == nullptr || ctx.rank(0) != 1) return;
  if (op != kernels::ScanOp::sum && is_floating(ctx.element(0))) return;  // they are in units
  const bool exclusive = ctx.attr_int("exclusive", 0) != 0,
             reverse = ctx.attr_int("reverse", 0) != 0;
  Dims out(elements->size());
  Dim total(op == kernels::ScanOp::sum ? 0 : 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = reverse ? out.size() - 1 - i : i;
    const Dim& element = (*elements)[at];
    const Dim next = op == kernels::ScanOp::sum ? total + element : total * element;
    out[at] = exclusive ? total : next;
    total = next;
  }
  ctx.set_elements(0, std::move(out));
}

template <kernels::ScanOp op>
void infer(InferContext& ctx) {
  require_one(ctx, 1);
  ctx.set(0, ctx.type(0));
  if (const auto count = ctx.type(1).element_count())
    ctx.require_equal(*count, Dim(1), "axis must be one number");
  const auto axis = ctx.integers(1);
  if (axis && axis->size() == 1 && ctx.rank(0)) ctx.normalized_axis(axis->front(), *ctx.rank(0));
  if (axis) pass_known(ctx, op);  // else the run has to look at it
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
    {.name = "CumProd",
     .infer = infer<kernels::ScanOp::product>,
     .prepare = prepare<kernels::ScanOp::product>},
    {.name = "CumSum",
     .infer = infer<kernels::ScanOp::sum>,
     .prepare = prepare<kernels::ScanOp::sum>},
};

}  // namespace
}  // namespace cumulate_unit

std::span<const Operator> cumulate_operators() { return cumulate_unit::operators; }

}  // namespace sardonyx::ops
