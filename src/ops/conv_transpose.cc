// ConvTranspose, as convolutions whose outputs are put together, or, where the shape of W is open,
// there are groups or dilations, as a matrix product that makes columns, and their sum into images.
// And its fused form (domain "sardonyx", for what runs as convolutions; see
// ops/families/conv_transpose.h): inputs X, W, B?, nothing, and a constant factor for the weights
// of each output channel?; attribute nhwc: X and Y are N x spatial x C. With channels
// last, and nothing fused, depthwise ones have a form as well.
#include <algorithm>

#include "base/checked.h"
#include "kernels/conv/columns.h"
#include "kernels/conv/depthwise_transposed.h"
#include "kernels/conv/transposed.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "ops/families/conv_transpose.h"
#include "ops/families/converted_arguments.h"
#include "ops/families/packed_conv.h"
#include "ops/families/product.h"
#include "ops/families/window.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

using kernels::ConvParams;

struct Settings {
  Window window;
  int64_t group = 1;
  std::vector<int64_t> output_padding, output_shape;

  // Early files list batch and channels too: the spatial sizes are the last ones.
  int64_t asked(size_t axis, size_t spatial) const {
    return output_shape[axis + output_shape.size() - spatial];
  }
  int64_t extra(size_t axis) const { return output_padding.empty() ? 0 : output_padding[axis]; }
  bool same() const {
    return window.auto_pad == Window::AutoPad::same_upper ||
           window.auto_pad == Window::AutoPad::same_lower;
  }
};

Settings read_settings(const NodeView& node) {
  Settings settings;
  settings.window = read_window(node, WindowKind::convolution);
  settings.group = node.attr_int("group", 1);
  if (settings.group < 1) node.fail("group must be at least 1; got {}", settings.group);
  settings.output_padding = node.attr_ints("output_padding").value_or(std::vector<int64_t>());
  settings.output_shape = node.attr_ints("output_shape").value_or(std::vector<int64_t>());
  for (const int64_t value : settings.output_padding) {
    if (value < 0 || value > INT32_MAX)
      node.fail("every entry of 'output_padding' must be in [0, {}]; got {}", INT32_MAX, value);
  }
  for (const int64_t value : settings.output_shape) {
    if (value < 0 || value > INT32_MAX)
      node.fail("every entry of 'output_shape' must be in [0, {}]; got {}", INT32_MAX, value);
  }
  return settings;
}

void check_rank(const NodeView& node, const Settings& settings, size_t spatial) {
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
Dim full_size(const Settings& s, size_t i, const Dim& in, const Dim& kernel) {
  return Dim(s.window.stride(i)) * (in - 1) + Dim(s.extra(i)) +
         (kernel - 1) * Dim(s.window.dilation(i)) + 1;
}

Dim output_size(const Settings& s, size_t spatial, size_t i, const Dim& in, const Dim& kernel) {
  if (!s.output_shape.empty()) return Dim(s.asked(i, spatial));
  if (s.same()) return in * Dim(s.window.stride(i));
  const Dim size =
      full_size(s, i, in, kernel) - Dim(s.window.pad_begin(i)) - Dim(s.window.pad_end(i));
  const auto low = size.lower();
  return low && *low >= 0 ? size : max(size, 0);
}

void infer(InferContext& ctx) {
  const Settings settings = read_settings(ctx);
  const auto x = channels_first(ctx, ctx.shape(0));
  const auto& w = ctx.shape(1);
  if (!x || !w) return ctx.set(0, ValueType::tensor(ctx.element(0)));
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
  if (const auto count = ctx.type(2).element_count())
    ctx.require_equal(*count, channels, "the bias must have one value for each output channel");
  Dims y{(*x)[0], channels};
  for (size_t i = 0; i + 2 < x->size(); ++i) {
    if (!settings.window.kernel.empty())
      ctx.require_equal(Dim(settings.window.kernel[i]), (*w)[i + 2],
                        "kernel_shape must be that of W");
    y.push_back(output_size(settings, x->size() - 2, i, (*x)[i + 2], (*w)[i + 2]));
  }
  ctx.set(0, ctx.element(0), in_layout(ctx, std::move(y)));
}

// Sizes of images as N x C x spatial.
Shape images(std::span<const int64_t> sizes, bool nhwc) {
  Shape shape(sizes.begin(), sizes.end());
  if (nhwc) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return shape;
}

// `in` and `out` are those of X and Y; channels too.
ConvParams shape_at_bind(const BindContext& bind, const Settings& s, bool nhwc = false) {
  const Shape x = images(bind.in_shape(0), nhwc), y = images(bind.out_shape(0), nhwc);
  const auto w = bind.in_shape(1);
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
    if (s.output_shape.empty() && !s.same()) continue;
    const int64_t full =
        shape.stride[i] * (x[i + 2] - 1) + s.extra(i) + (w[i + 2] - 1) * shape.dilation[i] + 1;
    const int64_t total = std::max<int64_t>(0, full - y[i + 2]);
    shape.pad_begin[i] =
        s.window.auto_pad == Window::AutoPad::same_upper ? total / 2 : total - total / 2;
  }
  return shape;
}

// Of weights that are computed, if all their sizes are known and a run may pack them.
std::optional<Shape> computed_weights(const PrepareContext& ctx) {
  const auto shape = ctx.in_type(1).concrete_shape();
  const bool packs = ctx.constant(1) == nullptr && shape && shape->size() >= 3 &&
                     shape->size() <= ConvParams::max_rank + 2 && count_of(*shape) > 0 &&
                     computes_in_float(ctx.in_element(0));
  return packs ? shape : std::nullopt;
}

std::string_view refuses_weights(const Tensor* w) {
  if (w == nullptr) return "W is not constant";
  if (!computes_in_float(w->element_type())) return "sums of double";
  if (w->rank() < 3 || w->rank() > ConvParams::max_rank + 2 || w->size() == 0)
    return "W has a form of no kernel";
  return {};
}

// Channels, group, kernel, strides and dilations.
ConvParams shape_of_weights(const NodeView& node, std::span<const int64_t> w) {
  ConvParams shape;
  shape.rank = static_cast<int>(w.size()) - 2;
  shape.group = node.attr_int("group", 1);
  shape.in_channels = w[0];
  shape.out_channels = w[1] * shape.group;
  std::copy(w.begin() + 2, w.end(), shape.kernel.begin());
  const auto take = [&](std::string_view name, ConvParams::Dims& to) {
    const auto list = node.attr_ints(name);
    if (list && list->size() == static_cast<size_t>(shape.rank))
      std::ranges::copy(*list, to.begin());
  };
  take("strides", shape.stride);
  take("dilations", shape.dilation);
  return shape;
}

}  // namespace

std::string_view refuses_phases(const NodeView& node, const Tensor* w) {
  const std::string_view reason = refuses_weights(w);
  return reason.empty() ? kernels::refuses_transposed(shape_of_weights(node, w->shape())) : reason;
}

std::string_view refuses_depthwise(const NodeView& node, const Tensor* w) {
  const std::string_view reason = refuses_weights(w);
  return reason.empty() ? kernels::refuses_depthwise_transposed(shape_of_weights(node, w->shape()))
                        : reason;
}

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
  const Tensor& w = *ctx.constant(1);
  const Tensor factors = weight_factors(ctx, 4, shape.out_channels);
  std::string format =
      fmt::format("transposed {} {}", to_string(w.shape()), name_of(w.element_type()));
  for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i)
    format += fmt::format(" {}", shape.stride[i]);
  format += (shape.nhwc ? " last" : "") + factor_mark(factors);
  const int64_t bytes = kernels::transposed_packed_size(shape);
  return ctx.packed<Tensor>(1, format, bytes, [w, factors, shape, bytes](ThreadPool& pool) {
    const Tensor values = as_floats(w, pool);
    Tensor made(ElementType::uint8, Shape{bytes});
    kernels::pack_transposed_weights(
        shape, values.elements<float>().data(),
        factors.size() == 0 ? nullptr : factors.elements<float>().data(), made.mutable_data(),
        &pool);
    return made;
  });
}

std::unique_ptr<Step> prepare_phases(PrepareContext& ctx, const Settings& settings) {
  const auto w = ctx.constant(1)->shape();
  ConvParams format;
  format.nhwc = is_nhwc_form(ctx);
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
        for (const int i : {0, 2}) s.wide.plan_in(bind, i, ElementType::float32, layout);
        s.wide.plan_out(bind, 0, ElementType::float32, layout);
        s.scratch = layout.take(kernels::transposed_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [packed, epilogue = read_epilogue(ctx)](RunContext& run, const PhasesState& s) {
        kernels::Epilogue with_bias = epilogue;
        with_bias.bias = s.wide.in<float>(run, 2);
        kernels::transposed_run(s.shape, s.wide.in<float>(run, 0), packed->get(run.pool()).data(),
                                s.wide.out<float>(run, 0), with_bias, scratch_at(run, s.scratch),
                                run.pool());
        s.wide.finish<float>(run, 0);
      });
  step->traits().unread_inputs = {1, 4};
  return step;
}

// Weights that another node computes are packed in each run.
std::unique_ptr<Step> prepare_computed_phases(const PrepareContext& ctx, const Settings& settings) {
  return make_step<PhasesState>(
      "conv_transpose.phases",
      [settings](BindContext& bind, PhasesState& s) {
        ScratchPlanner layout;
        s.shape = shape_at_bind(bind, settings);
        s.wide.plan(bind, ElementType::float32, layout);
        s.packed = layout.take(kernels::transposed_packed_size(s.shape));
        s.scratch = layout.take(kernels::transposed_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [epilogue = read_epilogue(ctx)](RunContext& run, const PhasesState& s) {
        kernels::Epilogue with_bias = epilogue;
        with_bias.bias = s.wide.in<float>(run, 2);
        std::byte* packed = scratch_at(run, s.packed);
        kernels::pack_transposed_weights(s.shape, s.wide.in<float>(run, 1), nullptr, packed,
                                         &run.pool());
        kernels::transposed_run(s.shape, s.wide.in<float>(run, 0), packed,
                                s.wide.out<float>(run, 0), with_bias, scratch_at(run, s.scratch),
                                run.pool());
        s.wide.finish<float>(run, 0);
      });
}

// --- Depthwise, channels last --------------------------------------------------------------------

std::unique_ptr<Step> prepare_depthwise(PrepareContext& ctx, const Settings& settings) {
  const Tensor& w = *ctx.constant(1);
  const int64_t bytes = w.size() * static_cast<int64_t>(sizeof(float));
  const auto packed = ctx.packed<Tensor>(
      1, fmt::format("transposed depthwise {} {}", to_string(w.shape()), name_of(w.element_type())),
      bytes, [w](ThreadPool& pool) {
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
        for (const int i : {0, 2}) s.wide.plan_in(bind, i, ElementType::float32, layout);
        s.wide.plan_out(bind, 0, ElementType::float32, layout);
        bind.need_scratch(layout.bytes());
      },
      [packed](RunContext& run, const PhasesState& s) {
        kernels::depthwise_transposed(
            s.shape, s.wide.in<float>(run, 0), packed->get(run.pool()).elements<float>().data(),
            s.wide.in<float>(run, 2), s.wide.out<float>(run, 0), run.pool());
        s.wide.finish<float>(run, 0);
      });
  step->traits().unread_inputs = {1};
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
  const T* x = s.wide.in<T>(run, 0);
  const T* w = s.wide.in<T>(run, 1);
  const T* bias = s.wide.in<T>(run, 2);
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

std::unique_ptr<Step> prepare_columns(const Settings& settings, ElementType compute) {
  return make_step<State>(
      "conv_transpose.columns",
      [settings, compute](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.shape = shape_at_bind(bind, settings);
        s.wide.plan(bind, compute, layout);
        s.rows = count_of(bind.in_shape(1).subspan(1));
        s.positions = count_of(bind.in_shape(0).subspan(2));
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
  const ElementType type = ctx.in_element(0), compute = compute_type(type);
  if (!computes_in_float(type) && type != ElementType::float64)
    ctx.fail(ErrorCode::unsupported, "no convolution of {}", name_of(type));
  const Settings settings = read_settings(ctx);
  const std::string_view reason = refuses_phases(ctx, ctx.constant(1));
  if (reason.empty()) return prepare_phases(ctx, settings);
  if (const auto w = computed_weights(ctx);
      w && ctx.node().domain.empty() &&
      kernels::refuses_transposed(shape_of_weights(ctx, *w)).empty())
    return prepare_computed_phases(ctx, settings);
  ctx.refuse("conv_transpose.phases", std::string(reason));
  if (is_nhwc_form(ctx) && refuses_depthwise(ctx, ctx.constant(1)).empty())
    return prepare_depthwise(ctx, settings);
  if (!ctx.node().domain.empty())
    ctx.fail(ErrorCode::internal, "the fused form must run as convolutions");
  return prepare_columns(settings, compute);
}

constexpr Operator operators[] = {
    {.name = "ConvTranspose", .infer = infer, .prepare = prepare},
    {.name = "ConvTranspose", .domain = "sardonyx", .infer = infer, .prepare = prepare},
};

}  // namespace

std::span<const Operator> conv_transpose_operators() { return operators; }

}  // namespace sardonyx::ops
