// Conv, and its internal form.
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_double.h"
#include "kernels/move/strided.h"
#include "ops/internal/checked.h"
#include "ops/internal/node.h"
#include "ops/internal/products.h"
#include "ops/operator.h"
#include "ops/shared/conv_params.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/guessed_sizes.h"
#include "ops/shared/packed_conv.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace conv_unit {
namespace {

using internal::Conv;
using kernels::ConvParams;

void infer(InferContext& ctx) {
  const Conv conv = internal::conv_of(ctx);
  auto shape = conv_output(ctx, conv.window, conv.group, {Conv::x, Conv::w, Conv::bias},
                           {conv.nhwc && !conv.nchw_input, conv.nhwc});
  if (!shape) return ctx.set(Conv::y, ValueType::tensor(ctx.element(Conv::x)));
  if (ctx.has_output(Conv::means)) {
    Dims means(shape->size(), Dim(1));
    means.front() = shape->front(), means.back() = shape->back();
    ctx.set(Conv::means, ctx.element(Conv::x), std::move(means));
  }
  if (ir::is_internal(ctx.node())) {
    internal::require_shape(ctx, Conv::residual, *shape);
    if (const auto& x = ctx.shape(Conv::x)) {
      Dims factors(x->size(), Dim(1));
      factors.front() = x->front(), factors.back() = x->back();
      internal::require_shape(ctx, Conv::input_factors, factors);
    }
  }
  ctx.set(Conv::y, ctx.element(Conv::x), std::move(*shape));
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
  epilogue.bias = s.wide.in<float>(run, Conv::bias);
  epilogue.residual = s.wide.in<float>(run, Conv::residual);
  return epilogue;
}

// Where the kernel does not read nchw_input, it is given pixels.
void plan_planes(const BindContext& bind, State& s, ScratchPlanner& layout) {
  s.transposed = -1;
  if (!s.shape.nchw_input || kernels::takes_nchw_input(s.shape)) return;
  const auto x = bind.in_shape(Conv::x);
  std::vector<int64_t> perm{0};
  for (size_t i = 2; i < x.size(); ++i) perm.push_back(static_cast<int64_t>(i));
  perm.push_back(1);
  s.shape.nchw_input = false;
  s.turn = kernels::plan_transpose(x, perm);
  s.transposed = layout.take(bind.in_size(Conv::x) * static_cast<int64_t>(sizeof(float)));
}

const float* image_at_run(RunContext& run, const State& s) {
  const float* x = s.wide.in<float>(run, Conv::x);
  if (s.transposed < 0) return x;
  auto* pixels = reinterpret_cast<float*>(scratch_at(run, s.transposed));
  kernels::copy_strided(kernels::cell_of(ElementType::float32), s.turn, x, pixels, run.pool());
  return pixels;
}

void plan_data(const BindContext& bind, State& s, ScratchPlanner& layout) {
  for (const int i : {Conv::x, Conv::bias, Conv::residual})
    s.wide.plan_in(bind, i, ElementType::float32, layout);
  s.wide.plan_out(bind, Conv::y, ElementType::float32, layout);
}

// The weights' shape with the images' sizes as far as they are known, to choose by.
ConvParams expected_shape(const PrepareContext& ctx, const Window& window, ConvParams shape) {
  const auto x = channels_first(ctx.in_type(Conv::x).shape, shape.nhwc && !shape.nchw_input);
  shape.batch = x && (*x)[0].is_constant() ? *(*x)[0].value() : guessed_batch;
  for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i) {
    const auto known =
        x && x->size() == static_cast<size_t>(shape.rank) + 2 ? (*x)[i + 2].value() : std::nullopt;
    shape.in[i] = known ? *known : guessed_image_size;
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

// What an internal node asks of its kernel beyond a convolution, which passes ask only of kernels
// that do it.
void require_known(const ConvParams& shape) {
  const bool fits_layout = shape.nhwc ? kernels::has_weights(shape) : !shape.nchw_input;
  if (!fits_layout || !kernels::takes_shuffles(shape) ||
      (shape.input_factors && !kernels::takes_input_factors(shape)) ||
      (shape.means && !kernels::gives_means(shape)))
    throw Error(ErrorCode::internal,
                "factors, means, shuffles or the layout do not suit this convolution");
}

std::unique_ptr<Step> prepare_packed(PrepareContext& ctx, const Conv& conv,
                                     const ConvParams& format) {
  const Tensor& w = *ctx.constant(Conv::w);
  const Window& window = conv.window;
  ConvParams weights = format;
  set_weights(weights, w.shape(), weights.group);
  weights.coarse = !ctx.services().exact && packed_type(w.element_type()) != ElementType::float32;
  for (size_t i = 0; i < static_cast<size_t>(weights.rank); ++i) {
    weights.stride[i] = window.stride(i);
    weights.dilation[i] = window.dilation(i);
  }
  const std::string kernel = choose(ctx, window, weights);
  const auto packed = pack_conv(ctx, weights, Conv::w, Conv::factors);
  auto step = make_step<State>(
      kernel,
      [window, weights](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.shape = conv_shape_at_bind(bind, window, weights, Conv::x, Conv::w);
        s.shape.input_factors = bind.has_input(Conv::input_factors);
        s.shape.means = bind.has_output(Conv::means);
        require_known(s.shape);
        plan_data(bind, s, layout);
        plan_planes(bind, s, layout);
        s.scratch = layout.take(kernels::conv_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [packed, epilogue = conv.epilogue()](RunContext& run, const State& s) {
        const kernels::ConvExtras extras{
            run.has_input(Conv::input_factors) ? run.in<float>(Conv::input_factors) : nullptr,
            run.has_output(Conv::means) ? run.out<float>(Conv::means) : nullptr};
        kernels::conv_run(s.shape, image_at_run(run, s), packed->get(run.pool()).data(),
                          s.wide.out<float>(run, Conv::y), at_run(run, s, epilogue),
                          scratch_at(run, s.scratch), run.pool(), extras);
        s.wide.finish<float>(run, Conv::y);
      });
  step->traits().unread_inputs = {Conv::w, Conv::factors};
  return step;
}

// Of weights that another node computes, or that learn: rounding of the larger tiles would add up
// from step to step.
int small_winograd(const ConvParams& shape) { return kernels::winograd_tile(shape) != 0 ? 2 : 0; }

// Weights that another node computes are packed in each run.
std::unique_ptr<Step> prepare_variable(const PrepareContext& ctx, const Conv& conv,
                                       const ConvParams& format) {
  return make_step<State>(
      "conv.variable_weights",
      [window = conv.window, format, exact = ctx.services().exact](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.shape = conv_shape_at_bind(bind, window, format, Conv::x, Conv::w);
        require_known(s.shape);
        if (!exact && s.shape.rank == 2) s.shape.winograd = small_winograd(s.shape);
        plan_data(bind, s, layout);
        s.wide.plan_in(bind, Conv::w, ElementType::float32, layout);
        s.packed = layout.take(kernels::conv_packed_size(s.shape));
        s.scratch = layout.take(kernels::conv_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [epilogue = conv.epilogue()](RunContext& run, const State& s) {
        std::byte* packed = scratch_at(run, s.packed);
        kernels::pack_conv_weights(s.shape, s.wide.in<float>(run, Conv::w), nullptr, packed,
                                   &run.pool());
        kernels::conv_run(s.shape, s.wide.in<float>(run, Conv::x), packed,
                          s.wide.out<float>(run, Conv::y), at_run(run, s, epilogue),
                          scratch_at(run, s.scratch), run.pool());
        s.wide.finish<float>(run, Conv::y);
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Conv conv = internal::conv_of(ctx);
  ConvParams format;
  format.group = conv.group;
  format.nhwc = conv.nhwc;
  format.nchw_input = conv.nchw_input;
  format.shuffle = conv.input_shuffle;
  format.shuffles_output = conv.shuffles_output;
  const ElementType type = ctx.in_element(Conv::x);
  if (type == ElementType::float64) {
    if (ir::is_internal(ctx.node()))
      ctx.fail(ErrorCode::unsupported, "no fused convolution of double");
    return make_step<ConvParams>(
        "conv.double",
        [window = conv.window, format](BindContext& bind, ConvParams& shape) {
          shape = conv_shape_at_bind(bind, window, format, Conv::x, Conv::w);
        },
        [](RunContext& run, const ConvParams& shape) {
          kernels::conv_double(shape, run.in<double>(Conv::x), run.in<double>(Conv::w),
                               run.has_input(Conv::bias) ? run.in<double>(Conv::bias) : nullptr,
                               run.out<double>(Conv::y), run.pool());
        });
  }
  if (!computes_in_float(type))
    ctx.fail(ErrorCode::unsupported, "no convolution of {}", name_of(type));
  const Tensor* w = ctx.constant(Conv::w);
  const bool packs = w != nullptr && w->rank() >= 3 && w->rank() <= ConvParams::max_rank + 2 &&
                     w->shape()[0] % format.group == 0;
  if (!packs)
    ctx.refuse("conv.packed", w == nullptr ? "W is not constant" : "W has a form of no kernel");
  if ((ctx.has_input(Conv::input_factors) || ctx.has_output(Conv::means)) &&
      (!packs || type != ElementType::float32))
    ctx.fail(ErrorCode::internal, "factors and means need constant weights and float32");
  if (format.nchw_input && (!packs || type != ElementType::float32))
    ctx.fail(ErrorCode::internal, "nchw_input need constant weights and float32");
  if (!packs && ctx.has_input(Conv::factors))
    ctx.fail(ErrorCode::internal, "factors need constant weights");
  auto step = packs ? prepare_packed(ctx, conv, format) : prepare_variable(ctx, conv, format);
  if (ctx.has_input(Conv::residual) && type == ElementType::float32)
    step->traits().in_place = {{Conv::y, Conv::residual}};
  return step;
}

constexpr Operator operators[] = {
    {.name = Conv::name, .infer = infer, .prepare = prepare},
    {.name = Conv::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<Conv, infer>,
     .prepare = prepare},
};

}  // namespace
}  // namespace conv_unit

std::span<const Operator> conv_operators() { return conv_unit::operators; }

}  // namespace sardonyx::ops
