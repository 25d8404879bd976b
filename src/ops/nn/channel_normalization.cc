// InstanceNormalization, GroupNormalization, LRN, LpNormalization, MeanVarianceNormalization, and
// the internal forms of the first three.
#include <algorithm>

#include "base/checked.h"
#include "kernels/move/strided.h"
#include "kernels/rows/normalize.h"
#include "kernels/rows/pixel_norm.h"
#include "ops/internal/checked.h"
#include "ops/internal/images.h"
#include "ops/internal/node.h"
#include "ops/operator.h"
#include "ops/shared/axis.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace channel_normalization_unit {
namespace {

using internal::GroupNormalization;
using internal::InstanceNormalization;
using internal::LRN;

// X is [N, C, ...]; parameters `first` and on have one value for each channel.
void infer_channels(InferContext& ctx, int parameters) {
  ctx.set(0, ctx.type(0));
  const auto& x = ctx.shape(0);
  if (!x) return;
  if (x->size() < 2)
    ctx.fail("X must have a batch and a channel dimension; its shape is {}", ir::to_string(*x));
  for (int i = 1; i <= parameters; ++i) {
    const auto& shape = ctx.shape(i);
    if (!shape) continue;
    if (shape->size() != 1)
      ctx.fail("{} must have one dimension; its shape is {}", ctx.input_name(i),
               ir::to_string(*shape));
    ctx.require_equal((*shape)[0], (*x)[1], "scale and bias must have one value for each channel");
  }
}

struct Channels {
  int64_t n = 0, channels = 0, inner = 0;
};
void bind_channels(BindContext& bind, Channels& s) {
  const auto x = bind.in_shape(0);
  s = {x[0], x[1], count_of(x.subspan(2))};
}

void infer_instance(InferContext& ctx) { infer_channels(ctx, 2); }

std::unique_ptr<Step> prepare_instance(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  const double epsilon = internal::instance_normalization_of(ctx).epsilon;
  auto step = make_step<Channels>(
      "instance_normalization", bind_channels, [type, epsilon](RunContext& run, const Channels& s) {
        kernels::group_norm(type, run.data(0), run.data(1), run.data(2), run.out_data(0), s.n,
                            s.channels, s.inner, s.channels, epsilon, run.pool());
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

void infer_group(InferContext& ctx) {
  infer_channels(ctx, 2);
  const int64_t groups = internal::group_normalization_of(ctx).num_groups;
  if (!ctx.shape(0)) return;
  if (const auto channels = (*ctx.shape(0))[1].value(); channels && *channels % groups != 0) {
    ctx.fail("the {} channels must be divisible by num_groups {}", *channels, groups);
  }
}

std::unique_ptr<Step> prepare_group(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  const GroupNormalization norm = internal::group_normalization_of(ctx);
  const double epsilon = norm.epsilon;
  const int64_t groups = norm.num_groups;
  auto step = make_step<Channels>(
      "group_normalization",
      [groups](BindContext& bind, Channels& s) {
        bind_channels(bind, s);
        if (s.channels % groups != 0) {
          throw Error(ErrorCode::run_failed,
                      fmt::format("the {} channels must be divisible by num_groups {}", s.channels,
                                  groups));
        }
      },
      [type, epsilon, groups](RunContext& run, const Channels& s) {
        kernels::group_norm(type, run.data(0), run.data(1), run.data(2), run.out_data(0), s.n,
                            s.channels, s.inner, groups, epsilon, run.pool());
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

// Version 18 has one scale and bias for each group: they become one for each channel.
void upgrade_group(UpgradeContext& ctx) {
  if (ctx.since() >= 21) return;
  const std::string x = ctx.node().inputs.at(0);
  const std::string channels =
      ctx.before("Shape", {x}, {int_attribute("start", 1), int_attribute("end", 2)});
  const std::string each = ctx.before(
      "Div", {channels, ctx.constant_ints({internal::group_normalization_of(ctx.old()).num_groups},
                                          "num_groups")});
  const std::string wide =
      ctx.before("Concat", {ctx.constant_ints({1}), each}, {int_attribute("axis", 0)});
  for (size_t i = 1; i < 3; ++i) {
    const std::string column =
        ctx.before("Reshape", {ctx.node().inputs.at(i), ctx.constant_ints({-1, 1}, "shape")});
    ctx.set_input(i, ctx.before("Reshape", {ctx.before("Expand", {column, wide}),
                                            ctx.constant_ints({-1}, "shape")}));
  }
}

void infer_lrn(InferContext& ctx) { infer_channels(ctx, 0); }

std::unique_ptr<Step> prepare_lrn(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  return make_step<Channels>(
      "lrn", bind_channels,
      [type, lrn = internal::lrn_of(ctx)](RunContext& run, const Channels& s) {
        kernels::lrn(type, run.data(0), run.out_data(0), s.n, s.channels, s.inner, lrn.size,
                     lrn.alpha, lrn.beta, lrn.bias, run.pool());
      });
}

// --- Channels last -------------------------------------------------------------------------------

template <class Op>
Op op_of(const NodeView& node) {
  if constexpr (std::is_same_v<Op, GroupNormalization>)
    return internal::group_normalization_of(node);
  else if constexpr (std::is_same_v<Op, LRN>)
    return internal::lrn_of(node);
  else
    return internal::instance_normalization_of(node);
}

template <class Op>
void infer_nhwc(InferContext& ctx) {
  op_of<Op>(ctx);
  internal::require_rank(ctx, 0, 2);
  ctx.set(0, ctx.type(0));
  const auto& x = ctx.shape(0);
  for (int i = 1; i < static_cast<int>(Op::inputs.size()) && x; ++i) {
    const auto& shape = ctx.shape(i);
    if (!shape) continue;
    if (shape->size() != 1) ctx.fail("scale and bias must have one dimension");
    ctx.require_equal(shape->front(), x->back(),
                      "scale and bias must have one value for each channel");
  }
}

// `groups`: of channels; 0: each is one.
template <class Op>
std::unique_ptr<Step> prepare_nhwc(const Op& op, std::string kernel, int64_t groups) {
  const double epsilon = op.epsilon;
  auto step = make_step<Channels>(
      std::move(kernel),
      [groups](BindContext& bind, Channels& s) {
        const auto x = bind.in_shape(Op::x);
        s = {x.front(), x.back(), count_of(x.subspan(1, x.size() - 2))};
        if (groups > 0 && s.channels % groups != 0)
          throw Error(ErrorCode::run_failed, "the channels must be divisible by num_groups");
        if (bind.in_size(Op::scale) != s.channels || bind.in_size(Op::bias) != s.channels)
          throw Error(ErrorCode::run_failed, "scale and bias must have one value for each channel");
        bind.need_scratch(kernels::pixel_norm_floats(s.inner, s.channels) *
                          static_cast<int64_t>(sizeof(float)));
      },
      [groups, epsilon, epilogue = op.activation.epilogue()](RunContext& run, const Channels& s) {
        kernels::pixel_norm(run.in<float>(Op::x), run.in<float>(Op::scale), run.in<float>(Op::bias),
                            run.out<float>(0), s.n, s.inner, s.channels,
                            groups > 0 ? groups : s.channels, epsilon, epilogue,
                            static_cast<float*>(run.scratch()), run.pool());
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

std::unique_ptr<Step> prepare_instance_nhwc(PrepareContext& ctx) {
  return prepare_nhwc(internal::from_node<InstanceNormalization>(ctx.node()),
                      "instance_normalization.nhwc", 0);
}
std::unique_ptr<Step> prepare_group_nhwc(PrepareContext& ctx) {
  const auto norm = internal::from_node<GroupNormalization>(ctx.node());
  return prepare_nhwc(norm, "group_normalization.nhwc", norm.num_groups);
}

std::unique_ptr<Step> prepare_lrn_nhwc(PrepareContext& ctx) {
  return make_step<Channels>(
      "lrn.nhwc",
      [](BindContext& bind, Channels& s) {
        const auto x = bind.in_shape(0);
        s = {count_of(x.first(x.size() - 1)), x.back(), 1};
      },
      [lrn = internal::from_node<LRN>(ctx.node())](RunContext& run, const Channels& s) {
        kernels::lrn(ElementType::float32, run.data(0), run.out_data(0), s.n, s.channels, s.inner,
                     lrn.size, lrn.alpha, lrn.beta, lrn.bias, run.pool());
      });
}

void infer_lp(InferContext& ctx) {
  if (const auto rank = ctx.rank(0)) ctx.normalized_axis(ctx.attr_int("axis", -1), *rank);
  ctx.set(0, ctx.type(0));
}

std::unique_ptr<Step> prepare_lp(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  const int64_t p = ctx.attr_int("p", 2);
  if (p != 1 && p != 2) ctx.fail("p must be 1 or 2; got {}", p);
  auto step = make_step<AxisSplit>(
      "lp_normalization",
      [axis = ctx.attr_int("axis", -1)](BindContext& bind, AxisSplit& s) {
        s = split_at(bind.in_shape(0), from_front(axis, bind.in_shape(0).size()));
      },
      [type, p](RunContext& run, const AxisSplit& s) {
        kernels::lp_norm(type, run.data(0), run.out_data(0), s.outer, s.n, s.inner,
                         static_cast<int>(p), run.pool());
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

std::vector<int64_t> read_axes(const NodeView& node) {
  return node.attr_ints("axes").value_or(std::vector<int64_t>{0, 2, 3});
}

void infer_mean_variance(InferContext& ctx) {
  ctx.set(0, ctx.type(0));
  if (const auto rank = ctx.rank(0)) {
    for (const int64_t axis : read_axes(ctx))
      ctx.normalized_axis(axis, *rank, "every entry of 'axes'");
  }
}

// The axes that are normalised together, brought last: kept first, then reduced.
struct MeanVariance {
  kernels::StridedCopy gather, scatter;
  int64_t rows = 1, n = 1;
  int64_t scratch = -1;  // -1: they are last already
};

void bind_mean_variance(BindContext& bind, MeanVariance& s, const std::vector<int64_t>& axes) {
  const auto x = bind.in_shape(0);
  std::vector<int64_t> kept, reduced;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool in = std::any_of(axes.begin(), axes.end(), [&](int64_t a) {
      return from_front(a, x.size()) == static_cast<int64_t>(i);
    });
    (in ? reduced : kept).push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> order = kept, shape, inverse(x.size());
  order.insert(order.end(), reduced.begin(), reduced.end());
  s.rows = s.n = 1;
  for (const int64_t i : kept) s.rows *= x[static_cast<size_t>(i)];
  for (const int64_t i : reduced) s.n *= x[static_cast<size_t>(i)];
  for (size_t i = 0; i < order.size(); ++i) {
    shape.push_back(x[static_cast<size_t>(order[i])]);
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  s.gather = kernels::plan_transpose(x, order);
  s.scatter = kernels::plan_transpose(shape, inverse);
  ScratchPlanner layout;
  s.scratch = s.gather.is_plain() ? -1 : layout.take(byte_size(bind.in_type(0), bind.in_size(0)));
  bind.need_scratch(layout.bytes());
}

// (x - mean) / (deviation + 1e-9).
std::unique_ptr<Step> prepare_mean_variance(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  return make_step<MeanVariance>(
      "mean_variance_normalization",
      [axes = read_axes(ctx)](BindContext& bind, MeanVariance& s) {
        bind_mean_variance(bind, s, axes);
      },
      [type](RunContext& run, const MeanVariance& s) {
        const auto normalize = [&](const void* x, void* y) {
          kernels::layer_norm(type, x, nullptr, nullptr, y, ElementType::float32, nullptr, nullptr,
                              s.rows, s.n, 0, run.pool(), {}, 1e-9);
        };
        if (s.scratch < 0) return normalize(run.data(0), run.out_data(0));
        const kernels::Cell cell = kernels::cell_of(type);
        std::byte* transposed = scratch_at(run, s.scratch);
        kernels::copy_strided(cell, s.gather, run.data(0), transposed, run.pool());
        normalize(transposed, transposed);
        kernels::copy_strided(cell, s.scatter, transposed, run.out_data(0), run.pool());
      });
}

void upgrade_instance(UpgradeContext& ctx) {
  if (ctx.since() < 6) ctx.remove_attribute("consumed_inputs");
}

// The experimental first version has no formula; as ONNX Runtime reads it, the batch is pooled.
void upgrade_mean_variance(UpgradeContext& ctx) {
  if (ctx.since() >= 9) return;
  const bool across = ctx.old().attr_int("across_channels") != 0;
  const bool divides = ctx.old().attr_int("normalize_variance") != 0;
  const std::vector<int64_t> axes =
      across ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{0, 2, 3};
  ctx.remove_attribute("across_channels");
  ctx.remove_attribute("normalize_variance");
  if (divides) {
    ctx.set_attribute("axes", axes);
    return;
  }
  const std::string mean =
      ctx.before("ReduceMean", {ctx.node().inputs[0], ctx.constant_ints(axes)});
  ctx.after("Sub", {ctx.node().inputs[0], mean}, ctx.node().outputs[0]);
  ctx.drop_node();
}

constexpr Operator operators[] = {
    {.name = GroupNormalization::name,
     .infer = infer_group,
     .prepare = prepare_group,
     .upgrade = upgrade_group,
     .same_since = 21},
    {.name = InstanceNormalization::name,
     .infer = infer_instance,
     .prepare = prepare_instance,
     .upgrade = upgrade_instance,
     .same_since = 6},
    {.name = GroupNormalization::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<GroupNormalization, infer_nhwc<GroupNormalization>>,
     .prepare = prepare_group_nhwc},
    {.name = InstanceNormalization::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<InstanceNormalization, infer_nhwc<InstanceNormalization>>,
     .prepare = prepare_instance_nhwc},
    {.name = LRN::name, .infer = infer_lrn, .prepare = prepare_lrn},
    {.name = LRN::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<LRN, infer_nhwc<LRN>>,
     .prepare = prepare_lrn_nhwc},
    {.name = "LpNormalization", .infer = infer_lp, .prepare = prepare_lp},
    {.name = "MeanVarianceNormalization",
     .infer = infer_mean_variance,
     .prepare = prepare_mean_variance,
     .upgrade = upgrade_mean_variance,
     .same_since = 9},
};

}  // namespace
}  // namespace channel_normalization_unit

std::span<const Operator> channel_normalization_operators() {
  return channel_normalization_unit::operators;
}

}  // namespace sardonyx::ops
