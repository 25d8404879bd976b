// Range: numbers from a start to a limit.
#include <algorithm>

#include "ir/tensor.h"
#include "kernels/move/arrange.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace range_unit {
namespace {

// The only element of a known integer input.
std::optional<Dim> number(const InferContext& ctx, int i) {
  const auto* elements = ctx.elements(i);
  return elements && elements->size() == 1 ? std::optional(elements->front()) : std::nullopt;
}

// The length as an expression where the step is a number.
std::optional<Dim> length(const Dim& start, const Dim& limit, const Dim& delta) {
  const auto step = delta.value();
  if (!step || *step == 0 || *step == INT64_MIN) return std::nullopt;
  const Dim span = *step > 0 ? limit - start : start - limit;
  return ceil_div(max(span, 0), *step > 0 ? *step : -*step);
}

void infer(InferContext& ctx) {
  const ElementType type = ctx.element(0);
  const Tensor *start = ctx.constant(0), *limit = ctx.constant(1), *delta = ctx.constant(2);
  const auto first = number(ctx, 0), last = number(ctx, 1), by = number(ctx, 2);
  std::optional<Dim> count;
  if (start && limit && delta) {
    for (const Tensor* one : {start, limit, delta}) {
      if (one->size() != 1)
        ctx.fail("start, limit and delta must be scalars; found one of shape {}",
                 to_string(one->shape()));
    }
    count = Dim(kernels::range_count(type, start->data(), limit->data(), delta->data()));
  } else if (first && last && by) {
    count = length(*first, *last, *by);
  }
  ctx.set(0, type, {count ? *count : ctx.unknown()});
  if (!count || !first || !by || !count->is_constant() || *count->value() > max_known_elements)
    return;
  Dims elements;
  for (int64_t i = 0; i < *count->value(); ++i) elements.push_back(*first + Dim(i) * *by);
  ctx.set_elements(0, std::move(elements));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  auto step = make_step("range", [type = ctx.in_element(0)](RunContext& run) {
    kernels::range(type, run.data(0), run.data(2), run.out_data(0), run.out_size(0));
  });
  step->traits().unread_inputs = {1};
  return step;
}

constexpr Operator operators[] = {{.name = "Range", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace range_unit

std::span<const Operator> range_operators() { return range_unit::operators; }

}  // namespace sardonyx::ops
