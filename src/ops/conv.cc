// Conv, and its fused form (domain "sardonyx"): inputs X, W, B?, residual like Y?.
#include <algorithm>

#include "base/checked.h"
#include "ir/tensor.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_any.h"
#include "ops/families/product.h"
#include "ops/families/wide.h"
#include "ops/families/window.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

using kernels::ConvShape;

int64_t read_group(const NodeView& node) {
  const int64_t group = node.attr_int("group", 1);
  if (group < 1) node.fail("group must be at least 1; got {}", group);
  return group;
}

void check_channels(InferContext& ctx, const std::vector<Dim>& x, const std::vector<Dim>& w, int64_t group) {
  ctx.require_equal(x[1], w[1] * Dim(group), "the channels of X must be those of W times group");
  if (const auto m = w[0].value(); m && *m % group != 0) {
    ctx.fail("the {} output channels must be divisible by group {}", *m, group);
  }
  if (ctx.has_input(2) && ctx.shape(2)) {
    if (*ctx.rank(2) != 1) ctx.fail("the bias must have one dimension; its shape is {}", ir::to_string(*ctx.shape(2)));
    ctx.require_equal((*ctx.shape(2))[0], w[0], "the bias must have one value for each output channel");
  }
}

void infer(InferContext& ctx) {
  const Window window = read_window(ctx, true);
  const int64_t group = read_group(ctx);
  const auto& x = ctx.shape(0);
  const auto& w = ctx.shape(1);
  const auto rank = x ? ctx.rank(0) : ctx.rank(1);
  if (!rank) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  if (*rank < 3) ctx.fail("X and W must have a batch (or output channel), a channel and at least one spatial dimension; the rank is {}", *rank);
  if (x && w && x->size() != w->size()) ctx.fail("X and W must have the same rank; got {} and {}", ir::to_string(*x), ir::to_string(*w));
  check_window_rank(ctx, window, *rank - 2);
  std::vector<Dim> y{x ? (*x)[0] : ctx.unknown(), w ? (*w)[0] : ctx.unknown()};
  if (x && w) check_channels(ctx, *x, *w, group);
  for (size_t i = 0; i + 2 < static_cast<size_t>(*rank); ++i) {
    if (w && !window.kernel.empty()) ctx.require_equal(Dim(window.kernel[i]), (*w)[i + 2], "kernel_shape must be that of W");
    if (!x || (!w && window.kernel.empty())) {
      y.push_back(ctx.unknown());
    } else {
      y.push_back(window_output(window, i, (*x)[i + 2], w ? (*w)[i + 2] : Dim(window.kernel[i])));
    }
  }
  ctx.set(0, ctx.element(0), std::move(y));
}

// Channels, group and kernel: all that the packed weights depend on.
void set_weights(ConvShape& shape, std::span<const int64_t> w, int64_t group) {
  shape.group = group;
  shape.out_channels = w[0];
  shape.in_channels = w[1] * group;
  shape.rank = static_cast<int>(w.size()) - 2;
  std::copy(w.begin() + 2, w.end(), shape.kernel.begin());
}

struct State {
  ConvShape shape;
  WideArguments wide;
  int64_t packed = -1;
  int64_t scratch = 0;
};

ConvShape shape_at_bind(const BindContext& bind, const Window& window, int64_t group) {
  const auto x = bind.in_shape(0), w = bind.in_shape(1), y = bind.out_shape(0);
  if (x.size() > ConvShape::max_rank + 2) {
    throw Error(ErrorCode::unsupported, fmt::format("a convolution over {} spatial axes; at most 3 are supported", x.size() - 2));
  }
  ConvShape shape;
  set_weights(shape, w, group);
  shape.batch = x[0];
  if (x[1] != shape.in_channels || w[0] % group != 0) {
    throw Error(ErrorCode::run_failed, fmt::format("X of shape {} does not fit weights of shape {} in {} groups", to_string(x), to_string(w), group));
  }
  for (size_t i = 0; i + 2 < x.size(); ++i) {
    const WindowAxis axis = window_axis(window, i, x[i + 2], y[i + 2], w[i + 2]);
    shape.in[i] = axis.in, shape.out[i] = axis.out;
    shape.stride[i] = axis.stride, shape.dilation[i] = axis.dilation;
    shape.pad_begin[i] = axis.pad_begin, shape.pad_end[i] = axis.pad_end;
  }
  return shape;
}

kernels::Epilogue at_run(const RunContext& run, const State& s, kernels::Epilogue epilogue) {
  epilogue.bias = s.wide.in<float>(run, 2);
  epilogue.residual = s.wide.in<float>(run, 3);
  return epilogue;
}

void plan_data(const BindContext& bind, State& s, ScratchLayout& layout) {
  for (const int i : {0, 2, 3}) s.wide.plan_in(bind, i, ElementType::float32, layout);
  s.wide.plan_out(bind, 0, ElementType::float32, layout);
}

std::unique_ptr<Step> prepare_packed(PrepareContext& ctx, const Window& window, int64_t group) {
  const Tensor& w = *ctx.constant(1);
  ConvShape weights;
  set_weights(weights, w.shape(), group);
  const std::string format = fmt::format("conv {} {} group {}", to_string(w.shape()), name_of(w.element_type()), group);
  const auto packed = ctx.packed<Tensor>(1, format, [&] {
    const Tensor values = float_constant(ctx, 1);
    auto made = std::make_shared<Tensor>(ElementType::uint8, Shape{kernels::conv_packed_size(weights)});
    kernels::pack_conv_weights(weights, static_cast<const float*>(values.data()), made->mutable_data(), ctx.services().pool);
    return std::shared_ptr<const Tensor>(std::move(made));
  });
  auto step = make_step<State>(
      "conv.packed",
      [window, group](BindContext& bind, State& s) {
        ScratchLayout layout;
        s.shape = shape_at_bind(bind, window, group);
        plan_data(bind, s, layout);
        s.scratch = layout.take(kernels::conv_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [packed, epilogue = read_epilogue(ctx)](RunContext& run, const State& s) {
        kernels::conv_run(s.shape, s.wide.in<float>(run, 0), packed->data(), s.wide.out<float>(run, 0), at_run(run, s, epilogue),
                          scratch_at(run, s.scratch), run.pool());
        s.wide.finish<float>(run, 0);
      });
  step->traits().unread_inputs = {1};
  return step;
}

// Weights that another node computes are packed in each run.
std::unique_ptr<Step> prepare_variable(PrepareContext& ctx, const Window& window, int64_t group) {
  return make_step<State>(
      "conv.variable_weights",
      [window, group](BindContext& bind, State& s) {
        ScratchLayout layout;
        s.shape = shape_at_bind(bind, window, group);
        plan_data(bind, s, layout);
        s.wide.plan_in(bind, 1, ElementType::float32, layout);
        s.packed = layout.take(kernels::conv_packed_size(s.shape));
        s.scratch = layout.take(kernels::conv_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [epilogue = read_epilogue(ctx)](RunContext& run, const State& s) {
        std::byte* packed = scratch_at(run, s.packed);
        kernels::pack_conv_weights(s.shape, s.wide.in<float>(run, 1), packed, &run.pool());
        kernels::conv_run(s.shape, s.wide.in<float>(run, 0), packed, s.wide.out<float>(run, 0), at_run(run, s, epilogue),
                          scratch_at(run, s.scratch), run.pool());
        s.wide.finish<float>(run, 0);
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Window window = read_window(ctx, true);
  const int64_t group = read_group(ctx);
  const ElementType type = ctx.in_element(0);
  if (type == ElementType::float64) {
    if (read_epilogue(ctx).activation != kernels::Activation::none || ctx.has_input(3)) ctx.fail(ErrorCode::unsupported, "no fused convolution of double");
    return make_step<ConvShape>(
        "conv.double", [window, group](BindContext& bind, ConvShape& shape) { shape = shape_at_bind(bind, window, group); },
        [](RunContext& run, const ConvShape& shape) {
          kernels::conv_double(shape, run.in<double>(0), run.in<double>(1), run.has_input(2) ? run.in<double>(2) : nullptr,
                               run.out<double>(0), run.pool());
        });
  }
  if (!computes_in_float(type)) ctx.fail(ErrorCode::unsupported, "no convolution of {}", name_of(type));
  const Tensor* w = ctx.constant(1);
  const bool packs = w != nullptr && w->rank() >= 3 && w->rank() <= ConvShape::max_rank + 2 && w->shape()[0] % group == 0;
  if (!packs) ctx.refuse("conv.packed", "W is not constant");
  auto step = packs ? prepare_packed(ctx, window, group) : prepare_variable(ctx, window, group);
  if (ctx.has_input(3) && type == ElementType::float32) step->traits().in_place = {{0, 3}};
  return step;
}

constexpr Operator operators[] = {
    {.name = "Conv", .infer = infer, .prepare = prepare},
    {.name = "Conv", .domain = "sardonyx", .infer = infer, .prepare = prepare},
};

}  // namespace

std::span<const Operator> conv_operators() { return operators; }

}  // namespace sardonyx::ops
