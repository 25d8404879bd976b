// DFT and STFT.
#include "kernels/signal/fourier.h"

#include <algorithm>

#include "base/checked.h"
#include "ops/operator.h"
#include "ops/shared/axis.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/element_counts.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace fourier_unit {
namespace {

using kernels::FourierShape;
using kernels::FrameShape;

// A scalar integer input (or one with a single element).
std::optional<Dim> scalar(InferContext& ctx, int i) {
  if (const auto count = ctx.type(i).element_count())
    ctx.require_equal(*count, Dim(1), "lengths, steps and axes must be one number each");
  const Dims* elements = ctx.elements(i);
  return elements && elements->size() == 1 ? std::optional(elements->front()) : std::nullopt;
}

void require_positive(const NodeView& node, const Dim& value, std::string_view what) {
  if (const auto number = value.value(); number && *number < 1)
    node.fail("{} must be at least 1; got {}", what, *number);
}

void infer_dft(InferContext& ctx) {
  require_one(ctx, 1);
  require_one(ctx, 2);
  const bool inverse = ctx.attr_int("inverse", 0) != 0, onesided = ctx.attr_int("onesided", 0) != 0;
  const auto& x = ctx.shape(0);
  if (!x) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  const int64_t rank = *ctx.rank(0);
  if (rank < 2)
    ctx.fail(
        "the input must have a signal dimension and a last one of 1 or 2 parts; its shape is {}",
        ir::to_string(*x));
  if (const auto parts = x->back().value()) {
    if (*parts != 1 && *parts != 2)
      ctx.fail("the last dimension must be 1 (real) or 2 (complex); got {}", *parts);
    if (onesided && !inverse && *parts == 2)
      object(ctx, "a one-sided transform takes real input; the last dimension is 2");
    if (onesided && inverse && *parts != 2)
      ctx.fail("a one-sided inverse transform takes complex input; the last dimension is {}",
               *parts);
  }
  Dims y = *x;
  y.back() = Dim(inverse && onesided ? 1 : 2);
  std::optional<int64_t> axis = rank - 2;
  if (ctx.has_input(2)) {
    const auto given = scalar(ctx, 2);
    axis = given ? given->value() : std::nullopt;
    if (axis) axis = ctx.normalized_axis(*axis, rank);
    if (axis == rank - 1)
      ctx.fail("axis must not be the last dimension, which holds real and imaginary parts");
  }
  // Whatever the axis is, it keeps its size.
  if (!axis && !onesided && !ctx.has_input(1)) return ctx.set(0, ctx.element(0), std::move(y));
  if (!axis) {
    for (int64_t i = 0; i + 1 < rank; ++i) y[static_cast<size_t>(i)] = ctx.unknown();
    return ctx.set(0, ctx.element(0), std::move(y));
  }
  Dim& size = y[static_cast<size_t>(*axis)];
  Dim length = inverse && onesided ? Dim(2) * (size - 1) : size;
  if (ctx.has_input(1)) {
    const auto given = scalar(ctx, 1);
    length = given ? *given : ctx.unknown();
    require_positive(ctx, length, "dft_length");
  }
  size = onesided && !inverse ? floor_div(length, Dim(2)) + 1 : length;
  ctx.set(0, ctx.element(0), std::move(y));
}

struct State {
  FrameShape frames;  // STFT
  ConvertedArguments wide;
  int64_t scratch = 0;
};

int64_t read_scalar(const Tensor& tensor) {
  return tensor.element_type() == ElementType::int64 ? *static_cast<const int64_t*>(tensor.data())
                                                     : *static_cast<const int32_t*>(tensor.data());
}

int64_t read_scalar(const RunContext& run, int i) {
  return run.in_type(i) == ElementType::int64 ? *run.in<int64_t>(i) : *run.in<int32_t>(i);
}

struct DftSettings {
  bool inverse = false, onesided = false;
  std::optional<int64_t> axis;  // constant, or absent (-2)

  bool halves() const { return onesided && !inverse; }
};

// Scratch for a transform with so many results; of a half spectrum two lengths have as many.
int64_t scratch_for(int64_t results, bool halves, int threads) {
  if (!halves) return kernels::fourier_scratch_bytes(std::max<int64_t>(1, results), threads);
  const int64_t even = std::max<int64_t>(1, 2 * (results - 1));
  return std::max(kernels::fourier_scratch_bytes(even, threads),
                  kernels::fourier_scratch_bytes(even + 1, threads));
}

template <class T>
std::unique_ptr<Step> make_dft(const DftSettings& settings) {
  constexpr ElementType compute = element_type_of<T>::value;
  return make_step<State>(
      "dft",
      [settings](BindContext& bind, State& s) {
        const auto x = bind.in_shape(0), y = bind.out_shape(0);
        ScratchPlanner layout;
        s.wide.plan_in(bind, 0, compute, layout);
        s.wide.plan_out(bind, 0, compute, layout);
        int64_t most = 0;
        for (size_t i = 0; i + 1 < y.size(); ++i) {
          const bool possible =
              !settings.axis || from_front(*settings.axis, x.size()) == static_cast<int64_t>(i);
          if (possible) most = std::max(most, scratch_for(y[i], settings.halves(), bind.threads()));
        }
        s.scratch = layout.take(most);
        bind.need_scratch(layout.bytes());
      },
      [settings](RunContext& run, const State& s) {
        const auto x = run.in_shape(0), y = run.out_shape(0);
        FourierShape shape;
        const int64_t axis =
            from_front(settings.axis ? *settings.axis : read_scalar(run, 2), x.size());
        const int64_t fewest_parts = settings.inverse && settings.onesided ? 2 : 1;
        if (axis < 0 || axis >= static_cast<int64_t>(x.size()) - 1 || x.back() < fewest_parts ||
            x.back() > 2) {
          throw Error(ErrorCode::run_failed,
                      fmt::format("axis {} and {} parts do not fit a signal of shape {}", axis,
                                  x.back(), to_string(x)));
        }
        const AxisSplit split = split_at(x.first(x.size() - 1), axis);
        shape.outer = split.outer, shape.inner = split.inner, shape.in_length = split.n;
        shape.out_length = y[static_cast<size_t>(axis)];
        shape.inverse = settings.inverse, shape.hermitian = settings.inverse && settings.onesided;
        shape.length = run.has_input(1)  ? read_scalar(run, 1)
                       : shape.hermitian ? 2 * (split.n - 1)
                                         : split.n;
        shape.in_parts = static_cast<int>(x.back()), shape.out_parts = static_cast<int>(y.back());
        if (run.out_size(0) == 0) return;
        if (shape.length < 1 ||
            shape.out_length != (settings.halves() ? shape.length / 2 + 1 : shape.length)) {
          throw Error(ErrorCode::run_failed,
                      fmt::format("dft_length {} does not fit the output's shape {}", shape.length,
                                  to_string(y)));
        }
        kernels::fourier(shape, s.wide.in<T>(run, 0), s.wide.out<T>(run, 0),
                         scratch_at(run, s.scratch), run.pool());
        s.wide.finish<T>(run, 0);
      });
}

std::unique_ptr<Step> prepare_dft(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (!computes_in_float(type) && type != ElementType::float64)
    ctx.fail(ErrorCode::unsupported, "no transform of {}", name_of(type));
  DftSettings settings;
  settings.inverse = ctx.attr_int("inverse", 0) != 0,
  settings.onesided = ctx.attr_int("onesided", 0) != 0;
  if (!ctx.has_input(2)) settings.axis = -2;
  if (const Tensor* axis = ctx.constant(2); axis && axis->size() == 1)
    settings.axis = read_scalar(*axis);
  return type == ElementType::float64 ? make_dft<double>(settings) : make_dft<float>(settings);
}

// Version 17 has the axis as an attribute, by default the first signal dimension.
void upgrade_dft(UpgradeContext& ctx) {
  if (ctx.since() >= 20) return;
  const int64_t axis = ctx.old().attr_int("axis", 1);
  ctx.remove_attribute("axis");
  ctx.set_input(2, ctx.constant(Tensor::scalar<int64_t>(axis), "axis"));
}

void infer_stft(InferContext& ctx) {
  for (const int i : {1, 3}) {
    require_one(ctx, i);
    want_rank(ctx, i, 0);
  }
  const auto& x = ctx.shape(0);
  const std::optional<Dim> step = scalar(ctx, 1);
  if (step) require_positive(ctx, *step, "frame_step");
  // The standard wants the last dimension; exporters leave that of one part out.
  if (x && x->size() != 2 && x->size() != 3)
    ctx.fail(
        "the signal must have the dimensions batch, length and parts (1 or 2), the last of "
        "which may be left out; its shape is {}",
        ir::to_string(*x));
  const auto& window = ctx.shape(2);
  if (window && window->size() != 1)
    ctx.fail("the window must have one dimension; its shape is {}", ir::to_string(*window));
  const Dim signal = x ? (*x)[1] : ctx.unknown();
  Dim length = signal;
  if (ctx.has_input(3)) {
    const auto given = scalar(ctx, 3);
    length = given ? *given : window ? (*window)[0] : ctx.unknown();
    if (given && window)
      ctx.require_equal(*given, (*window)[0], "the window must have frame_length elements");
  } else if (ctx.has_input(2)) {
    length = window ? (*window)[0] : ctx.unknown();
  }
  require_positive(ctx, length, "frame_length");
  ctx.require_at_least(signal, length, "the signal must be at least one frame long");
  const Dim frames = step && step->value() ? floor_div(signal - length, *step) + 1 : ctx.unknown();
  const Dim bins = ctx.attr_int("onesided", 1) != 0 ? floor_div(length, Dim(2)) + 1 : length;
  ctx.set(0, ctx.element(0), {x ? (*x)[0] : ctx.unknown(), frames, bins, Dim(2)});
}

template <class T>
std::unique_ptr<Step> make_stft(bool onesided) {
  constexpr ElementType compute = element_type_of<T>::value;
  return make_step<State>(
      "stft",
      [onesided](BindContext& bind, State& s) {
        const auto x = bind.in_shape(0), y = bind.out_shape(0);
        ScratchPlanner layout;
        s.wide.plan_in(bind, 0, compute, layout);
        s.wide.plan_in(bind, 2, compute, layout);
        s.wide.plan_out(bind, 0, compute, layout);
        s.frames.batch = x[0], s.frames.signal = x[1],
        s.frames.parts = x.size() == 2 ? 1 : static_cast<int>(x[2]);
        s.frames.frames = y[1], s.frames.out_length = y[2];
        s.scratch = layout.take(scratch_for(y[2], onesided, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [onesided](RunContext& run, const State& s) {
        FrameShape frames = s.frames;
        frames.step = read_scalar(run, 1);
        frames.length = run.has_input(3)   ? read_scalar(run, 3)
                        : run.has_input(2) ? run.in_size(2)
                                           : frames.signal;
        const int64_t results = onesided ? frames.length / 2 + 1 : frames.length;
        const bool fits = frames.length >= 1 && frames.step >= 1 &&
                          frames.length <= frames.signal && frames.out_length == results &&
                          frames.frames == (frames.signal - frames.length) / frames.step + 1 &&
                          (frames.parts == 1 || frames.parts == 2) &&
                          (!run.has_input(2) || run.in_size(2) == frames.length);
        if (!fits)
          throw Error(ErrorCode::run_failed,
                      fmt::format("frame_length {} and frame_step {} do not fit a signal of {}",
                                  frames.length, frames.step, frames.signal));
        kernels::short_time_fourier(frames, s.wide.in<T>(run, 0), s.wide.in<T>(run, 2),
                                    s.wide.out<T>(run, 0), scratch_at(run, s.scratch), run.pool());
        s.wide.finish<T>(run, 0);
      });
}

std::unique_ptr<Step> prepare_stft(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (!computes_in_float(type) && type != ElementType::float64)
    ctx.fail(ErrorCode::unsupported, "no transform of {}", name_of(type));
  const bool onesided = ctx.attr_int("onesided", 1) != 0;
  return type == ElementType::float64 ? make_stft<double>(onesided) : make_stft<float>(onesided);
}

constexpr Operator operators[] = {
    {.name = "DFT", .infer = infer_dft, .prepare = prepare_dft, .upgrade = upgrade_dft},
    {.name = "STFT", .infer = infer_stft, .prepare = prepare_stft},
};

}  // namespace
}  // namespace fourier_unit

std::span<const Operator> fourier_operators() { return fourier_unit::operators; }

}  // namespace sardonyx::ops
