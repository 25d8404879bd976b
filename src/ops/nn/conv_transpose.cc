// ConvTranspose, as convolutions whose outputs are joined, or, where the shape of W is open, there
// are groups or dilations, as a matrix product that makes columns, and their sum into images. And
// its internal form.
#include <algorithm>

#include "base/checked.h"
#include "kernels/conv/columns.h"
#include "kernels/conv/depthwise_transposed.h"
#include "kernels/conv/transposed.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "ops/internal/checked.h"
#include "ops/internal/products.h"
#include "ops/operator.h"
#include "ops/shared/conv_transpose.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/packed_conv.h"
#include "ops/shared/product.h"
#include "ops/shared/window.h"

namespace sardonyx::ops {
namespace {

using internal::ConvTranspose;
using kernels::ConvParams;

// Early files list batch and channels too: the spatial sizes are the last ones.
int64_t asked_size(const ConvTranspose& conv, size_t axis, size_t spatial) {
  return conv.output_shape[axis + conv.output_shape.size() - spatial];
}

int64_t extra_size(const ConvTranspose& conv, size_t axis) {
  return conv.output_padding.empty() ? 0 : conv.output_padding[axis];
}

bool pads_to_same(const ConvTranspose& conv) {
  return conv.window.auto_pad == Window::AutoPad::same_upper ||
         conv.window.auto_pad == Window::AutoPad::same_lower;
}

void check_rank(const NodeView& node, const ConvTranspose& settings, size_t spatial) {
  check_window_rank(node, settings.window, static_cast<int64_t>(spatial));
  if (!settings.output_padding.empty() && settings.output_padding.size() != spatial) {
    node.fail("'output_padding' must have {} entries, one for each spatial axis; got {}", spatial,
              settings.output_padding.size());
  }
  const size_t sizes = settings.output_shape.size();
  if (sizes != 0 && sizes != spatial && sizes != spatial + 2) {
    node.fail("'output_shape' must have {} entries, one for each spatial axis; got {}", spatial,
              sizes);
  }
}

// Size along one axis before anything is cropped.
Dim full_size(const ConvTranspose& s, size_t i, const Dim& in, const Dim& kernel) {
  return Dim(s.window.stride(i)) * (in - 1) + Dim(extra_size(s, i)) +
         (kernel - 1) * Dim(s.window.dilation(i)) + 1;
}

Dim output_size(const ConvTranspose& s, size_t spatial, size_t i, const Dim& in,
                const Dim& kernel) {
  if (!s.output_shape.empty()) return Dim(asked_size(s, i, spatial));
  if (pads_to_same(s)) return in * Dim(s.window.stride(i));
  const Dim size =
      full_size(s, i, in, kernel) - Dim(s.window.pad_begin(i)) - Dim(s.window.pad_end(i));
  const auto low = size.lower();
  return low && *low >= 0 ? size : max(size, 0);
}

void infer(InferContext& ctx) {
  const ConvTranspose settings = internal::conv_transpose_of(ctx);
  const auto x = channels_first(ctx.shape(ConvTranspose::x), settings.nhwc);
  const auto& w = ctx.shape(ConvTranspose::w);
  if (!x || !w) return ctx.set(0, ValueType::tensor(ctx.element(ConvTranspose::x)));
  if (x->size() < 3 || x->size() != w->size()) {
    ctx.fail("X and W must have the same rank, at least 3; got {} and {}", ir::to_string(*x),
             ir::to_string(*w));
  }
  check_rank(ctx, settings, x->size() - 2);
  object_to_window(ctx, settings.window, &*w);
  ctx.require_equal((*x)[1], (*w)[0], "the channels of X must be those of W");
  const Dim channels = (*w)[1] * Dim(settings.group);
  if (const auto c = (*w)[0].value(); c && *c % settings.group != 0)
    ctx.fail("the {} channels must be divisible by group {}", *c, settings.group);
  if (const auto count = ctx.type(ConvTranspose::bias).element_count())
    ctx.require_equal(*count, channels, "the bias must have one value for each output channel");
  Dims y{(*x)[0], channels};
  for (size_t i = 0; i + 2 < x->size(); ++i) {
    if (!settings.window.kernel.empty())
      ctx.require_equal(Dim(settings.window.kernel[i]), (*w)[i + 2],
                        "kernel_shape must be that of W");
    y.push_back(output_size(settings, x->size() - 2, i, (*x)[i + 2], (*w)[i + 2]));
  }
  ctx.set(0, ctx.element(ConvTranspose::x), in_layout(std::move(y), settings.nhwc));
}

// Sizes of images as N x C x spatial.
Shape images(std::span<const int64_t> sizes, bool nhwc) {
  Shape shape(sizes.begin(), sizes.end());
  if (nhwc) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return shape;
}

// `in` and `out` are those of X and Y; channels too.
ConvParams shape_at_bind(const BindContext& bind, const ConvTranspose& s, bool nhwc = false) {
  const Shape x = images(bind.in_shape(ConvTranspose::x), nhwc),
              y = images(bind.out_shape(0), nhwc);
  const auto w = bind.in_shape(ConvTranspose::w);
  if (x.size() > ConvParams::max_rank + 2) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("a convolution over {} spatial axes; at most 3 are supported", x.size() - 2));
  }
  if (x[1] != w[0] || w[0] % s.group != 0 || y[1] != w[1] * s.group) {
    throw Error(ErrorCode::run_failed,
                fmt::format("X of shape {} does not fit weights of shape {} in {} groups",
                            to_string(x), to_string(w), s.group));
  }
  ConvParams shape;
  shape.nhwc = nhwc;
  shape.batch = x[0], shape.in_channels = x[1], shape.out_channels = y[1], shape.group = s.group;
  shape.rank = static_cast<int>(x.size()) - 2;
  for (size_t i = 0; i + 2 < x.size(); ++i) {
    shape.in[i] = x[i + 2], shape.out[i] = y[i + 2], shape.kernel[i] = w[i + 2];
    shape.stride[i] = s.window.stride(i), shape.dilation[i] = s.window.dilation(i);
    shape.pad_begin[i] = s.window.pad_begin(i);
    if (s.output_shape.empty() && !pads_to_same(s)) continue;
    const int64_t full = shape.stride[i] * (x[i + 2] - 1) + extra_size(s, i) +
                         (w[i + 2] - 1) * shape.dilation[i] + 1;
    const int64_t total = std::max<int64_t>(0, full - y[i + 2]);
    shape.pad_begin[i] =
        s.window.auto_pad == Window::AutoPad::same_upper ? total / 2 : total - total / 2;
  }
  return shape;
}

// Of weights that are computed, if all their sizes are known and a run may pack them.
std::optional<Shape> computed_weights(const PrepareContext& ctx) {
  const auto shape = ctx.in_type(ConvTranspose::w).concrete_shape();
  const bool packs = ctx.constant(ConvTranspose::w) == nullptr && shape && shape->size() >= 3 &&
                     shape->size() <= ConvParams::max_rank + 2 && count_of(*shape) > 0 &&
                     computes_in_float(ctx.in_element(ConvTranspose::x));
  return packs ? shape : std::nullopt;
}

// Whether the input's channels make so many groups, and the output's can be counted then.
bool fits_groups(const ConvTranspose& conv, std::span<const int64_t> w) {
  return conv.group <= w[0] && w[0] % conv.group == 0;
}

std::string_view refuses_weights(const ConvTranspose& conv, const Tensor* w) {
  if (w == nullptr) return "W is not constant";
  if (!computes_in_float(w->element_type())) return "sums of double";
  if (w->rank() < 3 || w->rank() > ConvParams::max_rank + 2 || w->size() == 0)
    return "W has a form of no kernel";
  if (!fits_groups(conv, w->shape())) return "W does not fit the groups";
  return {};
}

// Channels, group, kernel, strides and dilations.
ConvParams shape_of_weights(const ConvTranspose& conv, std::span<const int64_t> w) {
  ConvParams shape;
  shape.rank = static_cast<int>(w.size()) - 2;
  shape.group = conv.group;
  shape.in_channels = w[0];
  shape.out_channels = w[1] * shape.group;
  std::copy(w.begin() + 2, w.end(), shape.kernel.begin());
  const auto take = [&](const std::vector<int64_t>& list, ConvParams::Dims& to) {
    if (list.size() == static_cast<size_t>(shape.rank)) std::ranges::copy(list, to.begin());
  };
  take(conv.window.strides, shape.stride);
  take(conv.window.dilations, shape.dilation);
  return shape;
}

}  // namespace

std::string_view refuses_phases(const ConvTranspose& conv, const Tensor* w) {
  const std::string_view reason = refuses_weights(conv, w);
  return reason.empty() ? kernels::refuses_transposed(shape_of_weights(conv, w->shape())) : reason;
}

std::string_view refuses_depthwise(const ConvTranspose& conv, const Tensor* w) {
  const std::string_view reason = refuses_weights(conv, w);
  return reason.empty() ? kernels::refuses_depthwise_transposed(shape_of_weights(conv, w->shape()))
                        : reason;
}

namespace conv_transpose_unit {
namespace {

// --- As convolutions -----------------------------------------------------------------------------

struct PhasesState {
  ConvParams shape;
  ConvertedArguments wide;
  int64_t packed = 0;  // of computed weights
  int64_t scratch = 0;
};

// The constant weights, packed as `shape` says.
std::shared_ptr<const Pack<Tensor>> pack_weights(PrepareContext& ctx, const ConvParams& shape) {
  const Tensor& w = *ctx.constant(ConvTranspose::w);
  const Tensor factors = weight_factors(ctx, ConvTranspose::factors, shape.out_channels);
  const PackFormat format{.family = PackFamily::conv_transpose,
                          .from = w.element_type(),
                          .to = ElementType::float32,
                          .shape = w.shape(),
                          .nhwc = shape.nhwc,
                          .strides = {shape.stride.begin(), shape.stride.begin() + shape.rank},
                          .parameters = content_of(factors)};
  const int64_t bytes = kernels::transposed_packed_size(shape);
  return ctx.packed<Tensor>(ConvTranspose::w, format, {{ElementType::uint8, bytes}},
                            [w, factors, shape, bytes](ThreadPool& pool) {
                              const Tensor values = as_floats(w, pool);
                              Tensor made(ElementType::uint8, Shape{bytes});
                              kernels::pack_transposed_weights(
                                  shape, values.elements<float>().data(),
                                  factors.size() == 0 ? nullptr : factors.elements<float>().data(),
                                  made.mutable_data(), &pool);
                              return made;
                            });
}

std::unique_ptr<Step> prepare_phases(PrepareContext& ctx, const ConvTranspose& settings) {
  const auto w = ctx.constant(ConvTranspose::w)->shape();
  ConvParams format;
  format.nhwc = settings.nhwc;
  format.rank = static_cast<int>(w.size()) - 2;
  format.in_channels = w[0], format.out_channels = w[1];
  for (size_t i = 0; i < static_cast<size_t>(format.rank); ++i)
    format.kernel[i] = w[i + 2], format.stride[i] = settings.window.stride(i);
  const auto packed = pack_weights(ctx, format);
  auto step = make_step<PhasesState>(
      "conv_transpose.phases",
      [settings, format](BindContext& bind, PhasesState& s) {
        ScratchPlanner layout;
        s.shape = shape_at_bind(bind, settings, format.nhwc);
        for (const int i : {ConvTranspose::x, ConvTranspose::bias})
          s.wide.plan_in(bind, i, ElementType::float32, layout);
        s.wide.plan_out(bind, 0, ElementType::float32, layout);
        s.scratch = layout.take(kernels::transposed_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [packed, epilogue = settings.activation.epilogue()](RunContext& run, const PhasesState& s) {
        kernels::Epilogue with_bias = epilogue;
        with_bias.bias = s.wide.in<float>(run, ConvTranspose::bias);
        kernels::transposed_run(s.shape, s.wide.in<float>(run, ConvTranspose::x),
                                packed->get(run.pool()).data(), s.wide.out<float>(run, 0),
                                with_bias, scratch_at(run, s.scratch), run.pool());
        s.wide.finish<float>(run, 0);
      });
  step->traits().unread_inputs = {ConvTranspose::w, ConvTranspose::factors};
  return step;
}

// Weights that another node computes are packed in each run. Where a convolution's do, so does the
// gradient of its input: both by the small tiles of Winograd.
std::unique_ptr<Step> prepare_computed_phases(const PrepareContext& ctx,
                                              const ConvTranspose& settings) {
  return make_step<PhasesState>(
      "conv_transpose.phases",
      [settings, exact = ctx.services().exact](BindContext& bind, PhasesState& s) {
        ScratchPlanner layout;
        s.shape = shape_at_bind(bind, settings);
        if (!exact && s.shape.rank == 2 && kernels::transposed_winograd_tile(s.shape) != 0)
          s.shape.winograd = 2;
        s.wide.plan(bind, ElementType::float32, layout);
        s.packed = layout.take(kernels::transposed_packed_size(s.shape));
        s.scratch = layout.take(kernels::transposed_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [epilogue = settings.activation.epilogue()](RunContext& run, const PhasesState& s) {
        kernels::Epilogue with_bias = epilogue;
        with_bias.bias = s.wide.in<float>(run, ConvTranspose::bias);
        std::byte* packed = scratch_at(run, s.packed);
        kernels::pack_transposed_weights(s.shape, s.wide.in<float>(run, ConvTranspose::w), nullptr,
                                         packed, &run.pool());
        kernels::transposed_run(s.shape, s.wide.in<float>(run, ConvTranspose::x), packed,
                                s.wide.out<float>(run, 0), with_bias, scratch_at(run, s.scratch),
                                run.pool());
        s.wide.finish<float>(run, 0);
      });
}

// --- Depthwise, channels last --------------------------------------------------------------------

std::unique_ptr<Step> prepare_depthwise(PrepareContext& ctx, const ConvTranspose& settings) {
  const Tensor& w = *ctx.constant(ConvTranspose::w);
  const PackFormat format{.family = PackFamily::conv_transpose_depthwise,
                          .from = w.element_type(),
                          .to = ElementType::float32,
                          .shape = w.shape()};
  const auto packed = ctx.packed<Tensor>(
      ConvTranspose::w, format, {{ElementType::float32, w.size()}}, [w](ThreadPool& pool) {
        const Tensor values = as_floats(w, pool);
        Tensor made(ElementType::float32, Shape{w.size()});
        kernels::pack_depthwise_transposed(w.shape()[0], w.size() / w.shape()[0],
                                           values.elements<float>().data(),
                                           made.mutable_elements<float>().data());
        return made;
      });
  auto step = make_step<PhasesState>(
      "conv_transpose.depthwise_nhwc",
      [settings](BindContext& bind, PhasesState& s) {
        ScratchPlanner layout;
        s.shape = shape_at_bind(bind, settings, true);
        for (const int i : {ConvTranspose::x, ConvTranspose::bias})
          s.wide.plan_in(bind, i, ElementType::float32, layout);
        s.wide.plan_out(bind, 0, ElementType::float32, layout);
        bind.need_scratch(layout.bytes());
      },
      [packed](RunContext& run, const PhasesState& s) {
        kernels::depthwise_transposed(s.shape, s.wide.in<float>(run, ConvTranspose::x),
                                      packed->get(run.pool()).elements<float>().data(),
                                      s.wide.in<float>(run, ConvTranspose::bias),
                                      s.wide.out<float>(run, 0), run.pool());
        s.wide.finish<float>(run, 0);
      });
  step->traits().unread_inputs = {ConvTranspose::w};
  return step;
}

// --- By columns ----------------------------------------------------------------------------------

struct State {
  ConvParams shape;
  ConvertedArguments wide;
  int64_t rows = 0, positions = 0;  // of the columns of one group
  int64_t columns = 0;
  int64_t scratch = 0;
};

void product(int64_t m, int64_t n, int64_t k, const float* w, const float* x, float* columns,
             void* scratch, ThreadPool& pool) {
  kernels::gemm(m, n, k, {w, 1, m}, {x, n, 1}, columns, n, {}, scratch, pool);
}
void product(int64_t m, int64_t n, int64_t k, const double* w, const double* x, double* columns,
             void*, ThreadPool& pool) {
  kernels::matmul_any(ElementType::float64, {}, m, n, k, {w, 1, m}, {x, n, 1}, columns, n, pool);
}

template <class T>
void run_groups(RunContext& run, const State& s) {
  const ConvParams& shape = s.shape;
  const int64_t per_group = shape.in_channels / shape.group,
                out_per_group = shape.out_channels / shape.group;
  int64_t pixels = 1;
  for (int i = 0; i < shape.rank; ++i) pixels *= shape.out[static_cast<size_t>(i)];
  const T* x = s.wide.in<T>(run, ConvTranspose::x);
  const T* w = s.wide.in<T>(run, ConvTranspose::w);
  const T* bias = s.wide.in<T>(run, ConvTranspose::bias);
  T* y = s.wide.out<T>(run, 0);
  T* columns = reinterpret_cast<T*>(scratch_at(run, s.columns));
  for (int64_t n = 0; n < shape.batch; ++n) {
    for (int64_t g = 0; g < shape.group; ++g) {
      product(s.rows, s.positions, per_group, w + g * per_group * s.rows,
              x + (n * shape.in_channels + g * per_group) * s.positions, columns,
              scratch_at(run, s.scratch), run.pool());
      kernels::add_columns(shape, out_per_group, columns, bias ? bias + g * out_per_group : nullptr,
                           out_per_group, y + (n * shape.out_channels + g * out_per_group) * pixels,
                           run.pool());
    }
  }
  s.wide.finish<T>(run, 0);
}

std::unique_ptr<Step> prepare_columns(const ConvTranspose& settings, ElementType compute) {
  return make_step<State>(
      "conv_transpose.columns",
      [settings, compute](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.shape = shape_at_bind(bind, settings);
        s.wide.plan(bind, compute, layout);
        s.rows = count_of(bind.in_shape(ConvTranspose::w).subspan(1));
        s.positions = count_of(bind.in_shape(ConvTranspose::x).subspan(2));
        const auto columns = checked_mul(s.rows, s.positions);
        if (!columns)
          throw Error(ErrorCode::run_failed, "the columns of this convolution exceed 64-bit sizes");
        s.columns = layout.take(byte_size(compute, *columns));
        const int64_t m = s.rows, n = s.positions, k = s.shape.in_channels / s.shape.group;
        s.scratch = layout.take(compute == ElementType::float64
                                    ? 0
                                    : kernels::gemm_scratch_bytes(m, n, k, {nullptr, 1, m},
                                                                  {nullptr, n, 1}, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [compute](RunContext& run, const State& s) {
        if (compute == ElementType::float64) return run_groups<double>(run, s);
        run_groups<float>(run, s);
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(ConvTranspose::x), compute = compute_type(type);
  if (!computes_in_float(type) && type != ElementType::float64)
    ctx.fail(ErrorCode::unsupported, "no convolution of {}", name_of(type));
  const ConvTranspose settings = internal::conv_transpose_of(ctx);
  const std::string_view reason = refuses_phases(settings, ctx.constant(ConvTranspose::w));
  if (reason.empty()) return prepare_phases(ctx, settings);
  if (const auto w = computed_weights(ctx);
      w && fits_groups(settings, *w) && !ir::is_internal(ctx.node()) &&
      kernels::refuses_transposed(shape_of_weights(settings, *w)).empty())
    return prepare_computed_phases(ctx, settings);
  ctx.refuse("conv_transpose.phases", std::string(reason));
  if (settings.nhwc && settings.activation.is_none() && !ctx.has_input(ConvTranspose::factors) &&
      refuses_depthwise(settings, ctx.constant(ConvTranspose::w)).empty())
    return prepare_depthwise(ctx, settings);
  if (ir::is_internal(ctx.node()))
    ctx.fail(ErrorCode::internal, "the fused form must run as convolutions");
  return prepare_columns(settings, compute);
}

constexpr Operator operators[] = {
    {.name = ConvTranspose::name, .infer = infer, .prepare = prepare},
    {.name = ConvTranspose::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<ConvTranspose, infer>,
     .prepare = prepare},
};

}  // namespace
}  // namespace conv_transpose_unit

std::span<const Operator> conv_transpose_operators() { return conv_transpose_unit::operators; }

}  // namespace sardonyx::ops
