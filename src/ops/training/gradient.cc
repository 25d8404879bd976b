// Gradient, which autodiff/gradient.cc replaces by the nodes that compute it, and the internal
// SumLike.
#include "kernels/rows/reduce.h"

#include "ops/internal/checked.h"
#include "ops/internal/checks.h"
#include "ops/internal/node.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace gradient_unit {
namespace {

using internal::SumLike;
using kernels::ReducePlan;

// The type of each value that is derived for.
void infer_gradient(InferContext& ctx) {
  const auto xs = ctx.attr_strings("xs").value_or(std::vector<std::string>());
  if (static_cast<size_t>(ctx.output_count()) > xs.size() ||
      static_cast<size_t>(ctx.input_count()) < xs.size()) {
    ctx.fail("there must be an input for each of the {} names in xs and at most as many outputs",
             xs.size());
  }
  for (int i = 0; i < ctx.output_count(); ++i) ctx.set(i, ctx.type(i));
}

void infer_sum(InferContext& ctx) {
  internal::from_node<SumLike>(ctx.node());
  const ValueType &x = ctx.type(SumLike::x), &like = ctx.type(SumLike::like);
  if (x.element != like.element && !is_integer(like.element))
    ctx.fail("both inputs must have one type; they are {} and {}", x.to_string(), like.to_string());
  ValueType y = like;
  y.element = x.element;
  ctx.set(0, std::move(y));
}

struct State {
  ReducePlan plan;
};

void plan_sum(BindContext& bind, State& s) {
  const auto from = bind.in_shape(SumLike::x), to = bind.in_shape(SumLike::like);
  std::vector<int64_t> axes;
  bool fits = to.size() <= from.size() && from.size() <= ReducePlan::max_rank;
  for (size_t i = 0; fits && i < from.size(); ++i) {
    const size_t left = from.size() - to.size();
    const int64_t size = i < left ? 1 : to[i - left];
    if (size != from[i]) axes.push_back(static_cast<int64_t>(i));
    fits = size == from[i] || size == 1;
  }
  if (!fits) {
    throw Error(ErrorCode::run_failed, fmt::format("a value of shape {} does not broadcast to {}",
                                                   to_string(to), to_string(from)));
  }
  s.plan = kernels::plan_reduce(from, axes);
}

std::unique_ptr<Step> prepare_sum(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(SumLike::x);
  if (!kernels::supports(kernels::ReduceOp::sum, type))
    ctx.fail(ErrorCode::unsupported, "no sum of {}", name_of(type));
  auto step = make_step<State>("sum_like", plan_sum, [type](RunContext& run, const State& s) {
    kernels::reduce(kernels::ReduceOp::sum, type, s.plan, run.data(SumLike::x), run.out_data(0),
                    run.pool());
  });
  step->traits().unread_inputs = {SumLike::like};
  return step;
}

constexpr Operator operators[] = {
    {.name = "Gradient", .domain = "ai.onnx.preview.training", .infer = infer_gradient},
    {.name = SumLike::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<SumLike, infer_sum>,
     .prepare = prepare_sum},
};

}  // namespace
}  // namespace gradient_unit

std::span<const Operator> gradient_operators() { return gradient_unit::operators; }

}  // namespace sardonyx::ops
