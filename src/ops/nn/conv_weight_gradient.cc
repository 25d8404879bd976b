// What flows back into the weights of a convolution (ops/internal/gradients.h).
#include "kernels/conv/weight_gradient.h"

#include "ops/internal/checked.h"
#include "ops/internal/gradients.h"
#include "ops/internal/node.h"
#include "ops/operator.h"
#include "ops/shared/conv_params.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace conv_weight_gradient_unit {
namespace {

using internal::ConvWeightGradient;
using kernels::ConvParams;

ConvWeightGradient read_settings(const NodeView& node) {
  const auto settings = internal::from_node<ConvWeightGradient>(node.node());
  if (settings.weights_shape.size() < 3)
    node.fail("weights_shape must have at least three entries; got {}",
              settings.weights_shape.size());
  for (const int64_t size : settings.weights_shape)
    if (size < 0 || size > INT32_MAX)
      node.fail("every entry of weights_shape must be in [0, {}]; got {}", INT32_MAX, size);
  check_window(node, settings.window);
  check_window_rank(node, settings.window, static_cast<int64_t>(settings.weights_shape.size()) - 2);
  check_group(node, settings.group);
  return settings;
}

void infer(InferContext& ctx) {
  const ConvWeightGradient settings = read_settings(ctx);
  const auto& w = settings.weights_shape;
  if (ctx.element(ConvWeightGradient::x) != ctx.element(ConvWeightGradient::dy))
    ctx.fail("X and dY must have one type; they are {} and {}",
             ctx.type(ConvWeightGradient::x).to_string(),
             ctx.type(ConvWeightGradient::dy).to_string());
  for (const int i : {ConvWeightGradient::x, ConvWeightGradient::dy}) {
    const auto& shape = ctx.shape(i);
    if (!shape) continue;
    if (shape->size() != w.size())
      ctx.fail("input {} must have the rank of the weights, {}; its shape is {}", i, w.size(),
               ir::to_string(*shape));
    const Dim channels = i == ConvWeightGradient::x ? Dim(w[1]) * Dim(settings.group) : Dim(w[0]);
    ctx.require_equal((*shape)[1], channels, "the channels must be those of the weights");
  }
  if (ctx.shape(ConvWeightGradient::x) && ctx.shape(ConvWeightGradient::dy))
    ctx.require_equal((*ctx.shape(ConvWeightGradient::x))[0],
                      (*ctx.shape(ConvWeightGradient::dy))[0], "X and dY must have one batch");
  ctx.set(0, ctx.element(ConvWeightGradient::x), Dims(w.begin(), w.end()));
}

ConvParams shape_at_bind(const BindContext& bind, const ConvWeightGradient& settings) {
  const auto x = bind.in_shape(ConvWeightGradient::x), dy = bind.in_shape(ConvWeightGradient::dy),
             w = bind.out_shape(0);
  if (w.size() > ConvParams::max_rank + 2) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("a convolution over {} spatial axes; at most 3 are supported", w.size() - 2));
  }
  ConvParams shape;
  set_weights(shape, w, settings.group);
  if (x.size() != w.size() || dy.size() != w.size() || x[1] != shape.in_channels || dy[1] != w[0] ||
      w[0] % settings.group != 0 || x[0] != dy[0]) {
    throw Error(ErrorCode::run_failed,
                fmt::format("X of shape {} and dY of shape {} do not fit weights of shape {} in {} "
                            "groups",
                            to_string(x), to_string(dy), to_string(w), settings.group));
  }
  shape.batch = x[0];
  for (size_t i = 0; i + 2 < w.size(); ++i) {
    shape.in[i] = x[i + 2], shape.out[i] = dy[i + 2];
    shape.stride[i] = settings.window.stride(i);
    shape.dilation[i] = settings.window.dilation(i);
    shape.pad_begin[i] = settings.window.pad_begin(i);
    shape.pad_end[i] = settings.window.pad_end(i);
    const int64_t most =
        kernels::conv_out_size(shape.in[i], shape.kernel[i], shape.stride[i], shape.dilation[i],
                               shape.pad_begin[i], shape.pad_end[i]);
    if (shape.out[i] > most) {
      throw Error(
          ErrorCode::run_failed,
          fmt::format("dY of shape {} has more than the {} outputs of windows on X of shape "
                      "{}, axis {}",
                      to_string(dy), most, to_string(x), i + 2));
    }
  }
  return shape;
}

struct State {
  ConvParams shape;
  ConvertedArguments wide;
  int64_t scratch = 0;
};

std::string kernel_of(const PrepareContext& ctx, const ConvWeightGradient& settings) {
  if (ctx.in_element(ConvWeightGradient::x) == ElementType::float64)
    return "conv_weight_gradient.double";
  if (settings.weights_shape.size() > ConvParams::max_rank + 2 ||
      settings.weights_shape[0] % settings.group != 0)
    return "conv_weight_gradient";
  ConvParams shape;
  set_weights(shape, settings.weights_shape, settings.group);
  return fmt::format("conv_weight_gradient.{}", kernels::conv_weight_gradient_path(shape));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ConvWeightGradient settings = read_settings(ctx);
  const ElementType type = ctx.in_element(ConvWeightGradient::x);
  if (!computes_in_float(type) && type != ElementType::float64)
    ctx.fail(ErrorCode::unsupported, "no convolution of {}", name_of(type));
  if (type == ElementType::float64) {
    return make_step<ConvParams>(
        kernel_of(ctx, settings),
        [settings](BindContext& bind, ConvParams& shape) { shape = shape_at_bind(bind, settings); },
        [](RunContext& run, const ConvParams& shape) {
          kernels::conv_weight_gradient(shape, run.in<double>(ConvWeightGradient::x),
                                        run.in<double>(ConvWeightGradient::dy), run.out<double>(0),
                                        run.pool());
        });
  }
  return make_step<State>(
      kernel_of(ctx, settings),
      [settings](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.shape = shape_at_bind(bind, settings);
        s.wide.plan(bind, ElementType::float32, layout);
        s.scratch =
            layout.take(kernels::conv_weight_gradient_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const State& s) {
        kernels::conv_weight_gradient(s.shape, s.wide.in<float>(run, ConvWeightGradient::x),
                                      s.wide.in<float>(run, ConvWeightGradient::dy),
                                      s.wide.out<float>(run, 0), scratch_at(run, s.scratch),
                                      run.pool());
        s.wide.finish<float>(run, 0);
      });
}

constexpr Operator operators[] = {{.name = ConvWeightGradient::name,
                                   .domain = internal::domain,
                                   .infer = internal::infer_checked<ConvWeightGradient, infer>,
                                   .prepare = prepare}};

}  // namespace
}  // namespace conv_weight_gradient_unit

std::span<const Operator> conv_weight_gradient_operators() {
  return conv_weight_gradient_unit::operators;
}

}  // namespace sardonyx::ops
