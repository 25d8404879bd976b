// GlobalAveragePool, GlobalMaxPool and GlobalLpPool: reductions over all spatial dimensions.
#include <cmath>
#include <numeric>

#include "base/checked.h"
#include "kernels/pool/pool.h"
#include "kernels/rows/reduce.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace global_pool_unit {
namespace {

using kernels::ReduceOp;
using kernels::ReducePlan;

void infer(InferContext& ctx) {
  const auto& x = ctx.shape(0);
  if (!x) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  if (x->size() < 2)
    ctx.fail("X must have a batch and a channel dimension; its shape is {}", ir::to_string(*x));
  Dims y(x->size(), Dim(1));
  y[0] = (*x)[0], y[1] = (*x)[1];
  ctx.set(0, ctx.element(0), std::move(y));
}

ReducePlan plan_at_bind(const BindContext& bind) {
  const auto x = bind.in_shape(0);
  const int64_t shape[] = {x[0], x[1], count_of(x.subspan(2))}, axes[] = {2};
  return kernels::plan_reduce(shape, axes);
}

// One window over the spatial dimensions, as one axis.
kernels::PoolShape window_at_bind(const BindContext& bind) {
  const auto x = bind.in_shape(0);
  kernels::PoolShape shape;
  shape.planes = x[0] * x[1];
  shape.in[2] = shape.kernel[2] = count_of(x.subspan(2));
  return shape;
}

template <ReduceOp op>
std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  constexpr bool mean = op == ReduceOp::mean;
  const ElementType type = ctx.in_element(0);
  const char* name = mean ? "global_pool.average" : "global_pool.max";
  struct State {
    ReducePlan plan;
    kernels::PoolShape window;
  };
  return make_step<State>(
      name,
      [](BindContext& bind, State& s) {
        s = {plan_at_bind(bind), window_at_bind(bind)};
      },
      [type](RunContext& run, const State& s) {
        // Of no elements there is a mean, but no window.
        if (type != ElementType::float32 || s.window.kernel[2] == 0)
          return kernels::reduce(op, type, s.plan, run.data(0), run.out_data(0), run.pool());
        if (mean)
          kernels::average_pool(type, s.window, run.data(0), run.out_data(0), false, run.pool());
        else
          kernels::max_pool(type, s.window, run.data(0), run.out_data(0), nullptr, false,
                            run.pool());
      });
}

std::unique_ptr<Step> prepare_lp(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  const int64_t p = ctx.attr_int("p", 2);
  if (p < 1) ctx.fail("p must be at least 1; got {}", p);
  if (p <= 2) {
    return make_step<ReducePlan>(
        "global_pool.norm", [](BindContext& bind, ReducePlan& plan) { plan = plan_at_bind(bind); },
        [type, op = p == 1 ? ReduceOp::l1 : ReduceOp::l2](RunContext& run, const ReducePlan& plan) {
          kernels::reduce(op, type, plan, run.data(0), run.out_data(0), run.pool());
        });
  }
  return make_step<kernels::PoolShape>(
      "global_pool.lp",
      [](BindContext& bind, kernels::PoolShape& shape) {
        shape = window_at_bind(bind);
        if (shape.planes > 0) kernels::check_pool_shape(shape);
      },
      [type, p](RunContext& run, const kernels::PoolShape& shape) {
        if (shape.planes > 0)
          kernels::lp_pool(type, shape, run.data(0), run.out_data(0), static_cast<double>(p),
                           run.pool());
      });
}

// Version 1 has p as a float. Where it is no whole number: (sum of |x|^p)^(1/p) in parts.
void upgrade_lp(UpgradeContext& ctx) {
  if (ctx.since() >= 2) return;
  const float p = ctx.old().attr_float("p", 2.0f);
  if (!(p > 0)) ctx.fail(ErrorCode::invalid_model, "p must be above 0; got {}", p);
  ctx.remove_attribute("p");
  if (p == std::floor(p) && p < 1e9f) return ctx.set_attribute("p", static_cast<int64_t>(p));
  const std::string exponent = ctx.scalar_like(p, 0), inverse = ctx.scalar_like(1 / p, 0);
  const std::string x = ctx.node().inputs[0];
  const std::string powers = ctx.before("Pow", {ctx.before("Abs", {x}), exponent});
  // The spatial axes, 2 to rank - 1, whatever the rank is.
  const std::string rank = ctx.before("Size", {ctx.before("Shape", {x})});
  const std::string axes = ctx.before("Range", {ctx.constant(Tensor::scalar<int64_t>(2)), rank,
                                                ctx.constant(Tensor::scalar<int64_t>(1))});
  const std::string sum =
      ctx.before("ReduceSum", {powers, axes},
                 {int_attribute("keepdims", 1), int_attribute("noop_with_empty_axes", 1)});
  ctx.after("Pow", {sum, inverse}, ctx.node().outputs[0]);
  ctx.drop_node();
}

constexpr Operator operators[] = {
    {.name = "GlobalAveragePool", .infer = infer, .prepare = prepare<ReduceOp::mean>},
    {.name = "GlobalLpPool", .infer = infer, .prepare = prepare_lp, .upgrade = upgrade_lp},
    {.name = "GlobalMaxPool", .infer = infer, .prepare = prepare<ReduceOp::max>},
};

}  // namespace
}  // namespace global_pool_unit

std::span<const Operator> global_pool_operators() { return global_pool_unit::operators; }

}  // namespace sardonyx::ops
