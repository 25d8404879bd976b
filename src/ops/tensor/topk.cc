// TopK.
#include "kernels/rows/scan.h"
#include "ops/objections.h"
#include "ops/operator.h"
#include "ops/shared/axis.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/declared_int32.h"
#include "ops/shared/element_counts.h"

namespace sardonyx::ops {
namespace topk_unit {
namespace {

void infer(InferContext& ctx) {
  const auto& x = ctx.shape(0);
  if (const auto count = ctx.type(1).element_count())
    ctx.require_equal(*count, Dim(1), "K must be one number");
  want_rank(ctx, 1, 1);
  if (!x) {
    ctx.set(0, ValueType::tensor(ctx.element(0)));
    ctx.set(1, ValueType::tensor(ElementType::int64));
    return;
  }
  const auto axis =
      static_cast<size_t>(ctx.normalized_axis(ctx.attr_int("axis", -1), *ctx.rank(0)));
  Dims y = *x;
  const Dims* k = ctx.elements(1);
  if (k && k->size() == 1) {
    const Dim& wanted = k->front();
    if (const auto number = wanted.value(); number && *number < 0)
      ctx.fail("K must not be negative; got {}", *number);
    ctx.require_at_least((*x)[axis], wanted, "K must be at most the size of the axis");
    y[axis] = wanted;
  } else {
    y[axis] = ctx.unknown((*x)[axis]);
  }
  ctx.set(1, ElementType::int64, y);
  ctx.set(0, ctx.element(0), std::move(y));
}

struct State {
  AxisSplit split;
  int64_t k = 0;
  int64_t positions = -1;  // scratch where nobody wants the indices
  int64_t values = -1;
  int64_t scratch = 0;
};

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  const bool largest = ctx.attr_int("largest", 1) != 0;
  auto step = make_step<State>(
      "topk",
      [type, axis = ctx.attr_int("axis", -1)](BindContext& bind, State& s) {
        ScratchPlanner layout;
        const auto x = bind.in_shape(0);
        const int64_t at = from_front(axis, x.size());
        s.split = split_at(x, at);
        s.k = bind.out_shape(bind.has_output(0) ? 0 : 1)[static_cast<size_t>(at)];
        if (s.k < 0 || s.k > s.split.n) {
          throw Error(
              ErrorCode::run_failed,
              fmt::format("K must be in [0, {}], the size of the axis; got {}", s.split.n, s.k));
        }
        const int64_t count = s.split.outer * s.k * s.split.inner;
        s.values = bind.has_output(0) ? -1 : layout.take(byte_size(type, count));
        s.positions = bind.has_output(1) ? -1 : layout.take(count * 8);
        s.scratch = layout.take(kernels::topk_scratch_bytes(s.split.n, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [type, largest](RunContext& run, const State& s) {
        void* values = s.values < 0 ? run.out_data(0) : scratch_at(run, s.values);
        auto* positions = s.positions < 0
                              ? run.out<int64_t>(1)
                              : reinterpret_cast<int64_t*>(scratch_at(run, s.positions));
        kernels::topk(type, run.data(0), values, positions, s.split.outer, s.split.n, s.split.inner,
                      s.k, largest, scratch_at(run, s.scratch), run.pool());
      });
  step->traits().unread_inputs = {1};
  return step;
}

// Version 1 has k as an attribute; up to 1.1 its indices could be int32.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 10) return;
  const int64_t k = ctx.old().attr_int("k");
  if (k == 0) object(ctx.old(), "k must be above 0 in version 1");
  ctx.remove_attribute("k");
  ctx.set_input(1, ctx.constant_ints({k}, "k"));
  keep_int32(ctx, 1);
}

constexpr Operator operators[] = {
    {.name = "TopK", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 10}};

}  // namespace
}  // namespace topk_unit

std::span<const Operator> topk_operators() { return topk_unit::operators; }

}  // namespace sardonyx::ops
