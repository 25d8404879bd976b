// MaxPool, AveragePool and LpPool; the internal forms of MaxPool (of bytes too) and of AveragePool
// of float32; and what flows back through MaxPool (ops/internal/gradients.h).
#include "kernels/pool/pool.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "ops/internal/checked.h"
#include "ops/internal/gradients.h"
#include "ops/internal/images.h"
#include "ops/internal/node.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/window.h"

namespace sardonyx::ops {
namespace pool_unit {
namespace {

using internal::AveragePool;
using internal::MaxPool;
using kernels::PoolShape;

void infer_pool(InferContext& ctx, const Window& window, bool nhwc) {
  const auto x = channels_first(ctx.shape(0), nhwc);
  const bool indices = ctx.has_output(1);
  if (!x) {
    const auto rank = static_cast<int64_t>(window.kernel.size()) + 2;
    const auto type = [&](ElementType element) {
      return window.kernel.empty() ? ValueType::tensor(element)
                                   : ValueType::tensor(element, ctx.unknown_shape(rank));
    };
    ctx.set(0, type(ctx.element(0)));
    if (indices) ctx.set(1, type(ElementType::int64));
    return;
  }
  if (x->size() < 3)
    ctx.fail("X must have a batch, a channel and at least one spatial dimension; its shape is {}",
             ir::to_string(*x));
  if (window.kernel.empty())
    ctx.fail("attribute 'kernel_shape' is required and absent; add it to the node");
  check_window_rank(ctx, window, *ctx.rank(0) - 2);
  Dims y{(*x)[0], (*x)[1]};
  for (size_t i = 0; i + 2 < x->size(); ++i)
    y.push_back(window_output(window, i, (*x)[i + 2], Dim(window.kernel[i])));
  if (indices) ctx.set(1, ElementType::int64, y);
  ctx.set(0, ctx.element(0), in_layout(std::move(y), nhwc));
}

void infer(InferContext& ctx) { infer_pool(ctx, read_window(ctx, WindowKind::pool), false); }

template <class Op>
void infer_nhwc(InferContext& ctx) {
  if constexpr (std::is_same_v<Op, MaxPool>)
    infer_pool(ctx, internal::max_pool_of(ctx).window, true);
  else
    infer_pool(ctx, internal::average_pool_of(ctx).window, true);
}

// `first` is the first spatial axis: 2, or 1 with channels last.
PoolShape shape_of(std::span<const int64_t> x, std::span<const int64_t> y, const Window& window,
                   size_t first) {
  if (x.size() > PoolShape::axes + 2) {
    throw Error(ErrorCode::unsupported,
                fmt::format("a pool over {} spatial axes; at most 3 are supported", x.size() - 2));
  }
  PoolShape shape;
  shape.planes = first == 2 ? x[0] * x[1] : x[0];
  if (count_of(y) == 0) {
    shape.planes = 0;  // nothing to do
    return shape;
  }
  const size_t rank = x.size() - 2;
  for (size_t i = 0; i < rank; ++i) {
    const size_t to = PoolShape::axes - rank + i;
    const WindowAxis axis = window_axis(window, i, x[i + first], y[i + first], window.kernel[i]);
    shape.in[to] = axis.in, shape.out[to] = axis.out, shape.kernel[to] = axis.kernel;
    shape.stride[to] = axis.stride, shape.dilation[to] = axis.dilation;
    shape.pad_before[to] = axis.pad_begin, shape.pad_after[to] = axis.pad_end;
  }
  kernels::check_pool_shape(shape);
  return shape;
}

PoolShape shape_at_bind(const BindContext& bind, const Window& window, size_t first = 2) {
  return shape_of(bind.in_shape(0), bind.out_shape(0), window, first);
}

template <class Run>
std::unique_ptr<Step> pool_step(PrepareContext& ctx, std::string name, Run run) {
  const ElementType type = ctx.in_element(0);
  return make_step<PoolShape>(
      std::move(name),
      [window = read_window(ctx, WindowKind::pool)](BindContext& bind, PoolShape& shape) {
        shape = shape_at_bind(bind, window);
      },
      [type, run](RunContext& context, const PoolShape& shape) {
        if (shape.planes > 0) run(context, type, shape);
      });
}

std::unique_ptr<Step> prepare_max(PrepareContext& ctx) {
  const bool column_major = ctx.attr_int("storage_order", 0) != 0;
  return pool_step(ctx, "pool.max",
                   [column_major](RunContext& run, ElementType type, const PoolShape& shape) {
                     int64_t* indices = run.has_output(1) ? run.out<int64_t>(1) : nullptr;
                     kernels::max_pool(type, shape, run.data(0), run.out_data(0), indices,
                                       column_major, run.pool());
                   });
}

std::unique_ptr<Step> prepare_average(PrepareContext& ctx) {
  const bool include_pad = internal::average_pool_of(ctx).count_include_pad;
  return pool_step(ctx, "pool.average",
                   [include_pad](RunContext& run, ElementType type, const PoolShape& shape) {
                     kernels::average_pool(type, shape, run.data(0), run.out_data(0), include_pad,
                                           run.pool());
                   });
}

struct NhwcState {
  PoolShape shape;
  int64_t channels = 0;
};

template <class Run>
std::unique_ptr<Step> nhwc_step(const Window& window, std::string name, Run run) {
  return make_step<NhwcState>(
      std::move(name),
      [window](BindContext& bind, NhwcState& s) {
        s.shape = shape_at_bind(bind, window, 1);
        s.channels = bind.in_shape(0).back();
      },
      [run](RunContext& context, const NhwcState& s) {
        if (s.shape.planes > 0) run(context, s);
      });
}

std::unique_ptr<Step> prepare_max_nhwc(PrepareContext& ctx) {
  const auto pool = internal::from_node<MaxPool>(ctx.node());
  return nhwc_step(pool.window, "pool.max_nhwc", [](RunContext& run, const NhwcState& s) {
    kernels::max_pool_nhwc(run.in_type(0), s.shape, s.channels, run.data(0), run.out_data(0),
                           run.pool());
  });
}

std::unique_ptr<Step> prepare_average_nhwc(PrepareContext& ctx) {
  const auto pool = internal::from_node<AveragePool>(ctx.node());
  return nhwc_step(pool.window, "pool.average_nhwc",
                   [include_pad = pool.count_include_pad](RunContext& run, const NhwcState& s) {
                     kernels::average_pool_nhwc(s.shape, s.channels, run.in<float>(0),
                                                run.out<float>(0), include_pad, run.pool());
                   });
}

int64_t read_p(const NodeView& node) {
  const int64_t p = node.attr_int("p", 2);
  if (p < 1) node.fail("p must be at least 1; got {}", p);
  return p;
}

std::unique_ptr<Step> prepare_lp(PrepareContext& ctx) {
  const auto p = static_cast<double>(read_p(ctx));
  return pool_step(ctx, "pool.lp", [p](RunContext& run, ElementType type, const PoolShape& shape) {
    kernels::lp_pool(type, shape, run.data(0), run.out_data(0), p, run.pool());
  });
}

// Version 1 has p as a float. Where it is no whole number: (mean of |x|^p * window size)^(1/p).
void upgrade_lp(UpgradeContext& ctx) {
  if (ctx.since() >= 2) return;
  const float p = ctx.old().attr_float("p", 2.0f);
  if (!(p > 0)) ctx.fail(ErrorCode::invalid_model, "p must be above 0; got {}", p);
  ctx.remove_attribute("p");
  if (p == std::floor(p) && p < 1e9f) return ctx.set_attribute("p", static_cast<int64_t>(p));
  const auto kernel = ctx.old().attr_ints("kernel_shape");
  if (!kernel)
    ctx.fail(ErrorCode::invalid_model,
             "attribute 'kernel_shape' is required and absent; add it to the node");
  float window = 1;
  for (const int64_t size : *kernel) window *= static_cast<float>(size);
  const std::string exponent = ctx.scalar_like(p, 0), inverse = ctx.scalar_like(1 / p, 0),
                    count = ctx.scalar_like(window, 0);
  const std::string powers =
      ctx.before("Pow", {ctx.before("Abs", {ctx.node().inputs[0]}), exponent});
  ctx.set_attribute("count_include_pad", int64_t{1});
  const std::string mean = ctx.before("AveragePool", {powers}, ctx.node().attributes);
  ctx.after("Pow", {ctx.before("Mul", {mean, count}), inverse}, ctx.node().outputs[0]);
  ctx.drop_node();
}

// --- What flows back -----------------------------------------------------------------------------

using Gradient = internal::MaxPoolGradient;

void infer_gradient(InferContext& ctx) {
  const Window window = internal::from_node<Gradient>(ctx.node()).window;
  check_window(ctx, window);
  check_window_rank(ctx, window, static_cast<int64_t>(window.kernel.size()));
  ctx.set(0, ctx.type(Gradient::x));
}

struct GradientState {
  PoolShape shape;
  ConvertedArguments wide;
};

// The shape of what MaxPool makes of `x`, which dY must have.
bool fits(std::span<const int64_t> x, std::span<const int64_t> dy, const Window& window) {
  if (x.size() != dy.size() || x.size() != window.kernel.size() + 2) return false;
  if (x[0] != dy[0] || x[1] != dy[1]) return false;
  for (size_t i = 0; i + 2 < x.size(); ++i) {
    if (!(window_output(window, i, Dim(x[i + 2]), Dim(window.kernel[i])) == Dim(dy[i + 2])))
      return false;
  }
  return true;
}

template <class T>
std::unique_ptr<Step> make_gradient(const Window& window) {
  return make_step<GradientState>(
      "pool.max_gradient",
      [window](BindContext& bind, GradientState& s) {
        const auto x = bind.in_shape(Gradient::x), dy = bind.in_shape(Gradient::dy);
        if (!fits(x, dy, window)) {
          throw Error(ErrorCode::run_failed,
                      fmt::format("X of shape {} and dY of shape {} do not fit", to_string(x),
                                  to_string(dy)));
        }
        s.shape = shape_of(x, dy, window, 2);
        ScratchPlanner layout;
        s.wide.plan(bind, element_type_of<T>::value, layout);
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const GradientState& s) {
        T* dx = s.wide.out<T>(run, 0);
        if (s.shape.planes == 0)
          std::fill_n(dx, run.out_size(0), T{0});
        else
          kernels::max_pool_gradient(s.shape, s.wide.in<T>(run, Gradient::x),
                                     s.wide.in<T>(run, Gradient::dy), dx, run.pool());
        s.wide.finish<T>(run, 0);
      });
}

std::unique_ptr<Step> prepare_gradient(PrepareContext& ctx) {
  const Window window = internal::from_node<Gradient>(ctx.node()).window;
  const bool wide = compute_type(ctx.in_element(Gradient::x)) == ElementType::float64;
  return wide ? make_gradient<double>(window) : make_gradient<float>(window);
}

constexpr Operator operators[] = {
    {.name = AveragePool::name, .infer = infer, .prepare = prepare_average},
    {.name = AveragePool::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<AveragePool, infer_nhwc<AveragePool>>,
     .prepare = prepare_average_nhwc},
    {.name = MaxPool::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<MaxPool, infer_nhwc<MaxPool>>,
     .prepare = prepare_max_nhwc},
    {.name = "LpPool", .infer = infer, .prepare = prepare_lp, .upgrade = upgrade_lp},
    {.name = MaxPool::name, .infer = infer, .prepare = prepare_max},
    {.name = Gradient::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<Gradient, infer_gradient>,
     .prepare = prepare_gradient},
};

}  // namespace
}  // namespace pool_unit

std::span<const Operator> pool_operators() { return pool_unit::operators; }

}  // namespace sardonyx::ops
