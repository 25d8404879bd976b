// Conv, and its fused form (domain "sardonyx"): inputs X, W, B?, residual like Y?, and a constant
// factor for the weights of each output channel?, and factors of X's channels for each image?
// (pointwise only), of X's shape with spatial axes of 1; outputs Y and the means of its images?
// (depthwise only), shaped likewise; attribute nhwc: X, Y and the residual are N x spatial
// x C; attribute input_shuffle n (pointwise, channels last): the channels are those of X seen as
// [n, C / n], transposed; attribute shuffles_output: the channels of Y are the first of each group,
// then the second of each, and so on; attribute nchw_input (float32, constant weights): X is N x C
// x spatial all the same.
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_double.h"
#include "kernels/move/strided.h"
#include "ops/families/conv_params.h"
#include "ops/families/converted_arguments.h"
#include "ops/families/packed_conv.h"
#include "ops/families/product.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

using kernels::ConvParams;

void infer(InferContext& ctx) {
  auto shape = conv_output(ctx, 0, 1, 2);
  if (!shape) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  if (ctx.has_output(1)) {
    Dims means(shape->size(), Dim(1));
    means.front() = shape->front(), means.back() = shape->back();
    ctx.set(1, ctx.element(0), std::move(means));
  }
  ctx.set(0, ctx.element(0), std::move(*shape));
}

struct State {
  ConvParams shape;
  ConvertedArguments wide;
  kernels::StridedCopy turn;  // of X, where the kernel cannot read nchw_input
  int64_t transposed = -1;
  int64_t packed = -1;
  int64_t scratch = 0;
};

kernels::Epilogue at_run(const RunContext& run, const State& s, kernels::Epilogue epilogue) {
  epilogue.bias = s.wide.in<float>(run, 2);
  epilogue.residual = s.wide.in<float>(run, 3);
  return epilogue;
}

// Where the kernel does not read nchw_input, it is given pixels.
void plan_planes(const BindContext& bind, State& s, ScratchPlanner& layout) {
  s.transposed = -1;
  if (!s.shape.nchw_input || kernels::takes_nchw_input(s.shape)) return;
  const auto x = bind.in_shape(0);
  std::vector<int64_t> perm{0};
  for (size_t i = 2; i < x.size(); ++i) perm.push_back(static_cast<int64_t>(i));
  perm.push_back(1);
  s.shape.nchw_input = false;
  s.turn = kernels::plan_transpose(x, perm);
  s.transposed = layout.take(bind.in_size(0) * static_cast<int64_t>(sizeof(float)));
}

const float* image_at_run(RunContext& run, const State& s) {
  const float* x = s.wide.in<float>(run, 0);
  if (s.transposed < 0) return x;
  auto* pixels = reinterpret_cast<float*>(scratch_at(run, s.transposed));
  kernels::copy_strided(kernels::cell_of(ElementType::float32), s.turn, x, pixels, run.pool());
  return pixels;
}

void plan_data(const BindContext& bind, State& s, ScratchPlanner& layout) {
  for (const int i : {0, 2, 3}) s.wide.plan_in(bind, i, ElementType::float32, layout);
  s.wide.plan_out(bind, 0, ElementType::float32, layout);
}

// The weights' shape with the images' sizes as far as they are known, to choose by.
ConvParams expected_shape(const PrepareContext& ctx, const Window& window, ConvParams shape) {
  constexpr int64_t usual_size = 28;  // where the model leaves it open
  const auto x = channels_first(ctx, ctx.in_type(0).shape);
  shape.batch = x && (*x)[0].is_constant() ? *(*x)[0].value() : 1;
  for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i) {
    const auto known =
        x && x->size() == static_cast<size_t>(shape.rank) + 2 ? (*x)[i + 2].value() : std::nullopt;
    shape.in[i] = known ? *known : usual_size;
    const auto out = window_output(window, i, Dim(shape.in[i]), Dim(shape.kernel[i])).value();
    shape.out[i] = out ? std::max<int64_t>(*out, 0) : 0;
    const WindowAxis axis = window_axis(window, i, shape.in[i], shape.out[i], shape.kernel[i]);
    shape.pad_begin[i] = axis.pad_begin, shape.pad_end[i] = axis.pad_end;
  }
  return shape;
}

// Decides between the ways to compute it, and names the refused ones.
std::string choose(PrepareContext& ctx, const Window& window, ConvParams& weights) {
  ConvParams shape = expected_shape(ctx, window, weights);
  if (!ctx.services().exact && shape.rank == 2)
    weights.winograd = shape.winograd = kernels::winograd_tile(shape);
  const kernels::ConvChoice choice = kernels::choose_conv(shape);
  for (const auto& [path, reason] : choice.refusals()) {
    ctx.refuse(fmt::format("conv.{}", kernels::name_of(path)), std::string(reason));
  }
  return fmt::format("conv.{}", kernels::name_of(choice.path));
}

std::unique_ptr<Step> prepare_packed(PrepareContext& ctx, const Window& window,
                                     const ConvParams& format_of) {
  const Tensor& w = *ctx.constant(1);
  ConvParams weights = format_of;
  set_weights(weights, w.shape(), weights.group);
  weights.coarse = !ctx.services().exact && packed_type(w.element_type()) != ElementType::float32;
  for (size_t i = 0; i < static_cast<size_t>(weights.rank); ++i) {
    weights.stride[i] = window.stride(i);
    weights.dilation[i] = window.dilation(i);
  }
  const std::string kernel = choose(ctx, window, weights);
  const auto packed = pack_conv(ctx, weights, 1, 4);
  auto step = make_step<State>(
      kernel,
      [window, weights](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.shape = conv_shape_at_bind(bind, window, weights, 0, 1);
        s.shape.input_factors = bind.has_input(5);
        s.shape.means = bind.has_output(1);
        if ((s.shape.input_factors && !kernels::takes_input_factors(s.shape)) ||
            (s.shape.means && !kernels::gives_means(s.shape)))
          throw Error(ErrorCode::internal, "factors and means do not suit this convolution");
        plan_data(bind, s, layout);
        plan_planes(bind, s, layout);
        s.scratch = layout.take(kernels::conv_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [packed, epilogue = read_epilogue(ctx)](RunContext& run, const State& s) {
        const kernels::ConvExtras extras{run.has_input(5) ? run.in<float>(5) : nullptr,
                                         run.has_output(1) ? run.out<float>(1) : nullptr};
        kernels::conv_run(s.shape, image_at_run(run, s), packed->get(run.pool()).data(),
                          s.wide.out<float>(run, 0), at_run(run, s, epilogue),
                          scratch_at(run, s.scratch), run.pool(), extras);
        s.wide.finish<float>(run, 0);
      });
  step->traits().unread_inputs = {1, 4};
  return step;
}

// Weights that another node computes are packed in each run.
std::unique_ptr<Step> prepare_variable(PrepareContext& ctx, const Window& window,
                                       const ConvParams& format) {
  return make_step<State>(
      "conv.variable_weights",
      [window, format](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.shape = conv_shape_at_bind(bind, window, format, 0, 1);
        plan_data(bind, s, layout);
        s.wide.plan_in(bind, 1, ElementType::float32, layout);
        s.packed = layout.take(kernels::conv_packed_size(s.shape));
        s.scratch = layout.take(kernels::conv_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [epilogue = read_epilogue(ctx)](RunContext& run, const State& s) {
        std::byte* packed = scratch_at(run, s.packed);
        kernels::pack_conv_weights(s.shape, s.wide.in<float>(run, 1), nullptr, packed, &run.pool());
        kernels::conv_run(s.shape, s.wide.in<float>(run, 0), packed, s.wide.out<float>(run, 0),
                          at_run(run, s, epilogue), scratch_at(run, s.scratch), run.pool());
        s.wide.finish<float>(run, 0);
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Window window = read_window(ctx, WindowKind::convolution);
  ConvParams format;
  format.group = read_group(ctx);
  format.nhwc = is_nhwc_form(ctx);
  format.nchw_input = has_nchw_input(ctx);
  format.shuffle = ctx.attr_int("input_shuffle", 1);
  format.shuffles_output = ctx.attr_int("shuffles_output", 0) != 0;
  const ElementType type = ctx.in_element(0);
  if (type == ElementType::float64) {
    if (read_epilogue(ctx).activation != kernels::Activation::none || ctx.has_input(3) ||
        format.nhwc)
      ctx.fail(ErrorCode::unsupported, "no fused convolution of double");
    return make_step<ConvParams>(
        "conv.double",
        [window, format](BindContext& bind, ConvParams& shape) {
          shape = conv_shape_at_bind(bind, window, format, 0, 1);
        },
        [](RunContext& run, const ConvParams& shape) {
          kernels::conv_double(shape, run.in<double>(0), run.in<double>(1),
                               run.has_input(2) ? run.in<double>(2) : nullptr, run.out<double>(0),
                               run.pool());
        });
  }
  if (!computes_in_float(type))
    ctx.fail(ErrorCode::unsupported, "no convolution of {}", name_of(type));
  const Tensor* w = ctx.constant(1);
  const bool packs = w != nullptr && w->rank() >= 3 && w->rank() <= ConvParams::max_rank + 2 &&
                     w->shape()[0] % format.group == 0;
  if (!packs)
    ctx.refuse("conv.packed", w == nullptr ? "W is not constant" : "W has a form of no kernel");
  if ((ctx.has_input(5) || ctx.has_output(1)) && (!packs || type != ElementType::float32))
    ctx.fail(ErrorCode::internal, "factors and means need constant weights and float32");
  if (format.nchw_input && (!packs || type != ElementType::float32))
    ctx.fail(ErrorCode::internal, "nchw_input need constant weights and float32");
  if (!packs && ctx.has_input(4)) ctx.fail(ErrorCode::internal, "factors need constant weights");
  auto step = packs ? prepare_packed(ctx, window, format) : prepare_variable(ctx, window, format);
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
