// ConvInteger and QLinearConv, the internal form of the latter, and QuantizedConv.
#include <algorithm>

#include "base/checked.h"
#include "ir/tensor.h"
#include "kernels/conv/conv_int8.h"
#include "kernels/conv/conv_int8_nhwc.h"
#include "kernels/conv/conv_integer.h"
#include "ops/internal/checked.h"
#include "ops/internal/node.h"
#include "ops/internal/quantized.h"
#include "ops/operator.h"
#include "ops/shared/conv_params.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/packed_conv.h"

namespace sardonyx::ops {
namespace conv_integer_unit {
namespace {

using internal::QLinearConv;
using internal::QuantizedConv;
using kernels::ConvParams;
using Packed = std::shared_ptr<const Pack<Tensor>>;

struct Operands {
  int x, w, x_zero, w_zero;
};
constexpr Operands plain{0, 1, 2, 3};
constexpr Operands scaled{QLinearConv::x, QLinearConv::w, QLinearConv::x_zero, QLinearConv::w_zero};
constexpr Operands to_floats{QuantizedConv::x, QuantizedConv::w, QuantizedConv::x_zero,
                             QuantizedConv::w_zero};

int32_t byte_at(ElementType type, const void* data, int64_t i) {
  return type == ElementType::int8 ? static_cast<const int8_t*>(data)[i]
                                   : static_cast<const uint8_t*>(data)[i];
}

// Weights with their zero points taken off, where both are constant.
Packed pack_constant(PrepareContext& ctx, const Operands& o, int64_t group) {
  const Tensor* w = ctx.constant(o.w);
  const Tensor* zero = ctx.constant(o.w_zero);
  if (w == nullptr || w->rank() < 3 || w->rank() > ConvParams::max_rank + 2 ||
      (ctx.has_input(o.w_zero) && zero == nullptr))
    return nullptr;
  ConvParams shape;
  set_weights(shape, w->shape(), group);
  if (zero && zero->size() != 1 && zero->size() != shape.out_channels) return nullptr;
  std::vector<int32_t> zeros;
  for (int64_t i = 0; zero && i < zero->size(); ++i)
    zeros.push_back(byte_at(zero->element_type(), zero->data(), i));
  const PackFormat format{.family = PackFamily::conv_integer,
                          .from = w->element_type(),
                          .to = ElementType::int16,
                          .shape = w->shape(),
                          .group = group,
                          .parameters = parameters_of(zeros)};
  const int64_t size = kernels::conv_integer_weights_size(shape);
  return ctx.packed<Tensor>(o.w, format, {{ElementType::int16, size}},
                            [weights = *w, shape, zeros, size](ThreadPool& pool) {
                              Tensor made(ElementType::int16, Shape{size});
                              kernels::pack_conv_integer_weights(
                                  shape, weights.element_type(), weights.data(),
                                  zeros.empty() ? nullptr : zeros.data(), zeros.size() > 1,
                                  static_cast<int16_t*>(made.mutable_data()), pool);
                              return made;
                            });
}

struct State {
  ConvParams shape;
  int64_t w_zero = 0, weights = 0, scratch = 0;
  int64_t scale = 0, shift = 0;
  bool scale_each = false;
};

void bind_conv(BindContext& bind, State& s, const Operands& o, const Window& window, int64_t group,
               bool packed, ScratchPlanner& layout) {
  s.shape = conv_shape_at_bind(bind, window, group, o.x, o.w);
  if (bind.has_input(o.x_zero) && bind.in_size(o.x_zero) != 1)
    throw Error(ErrorCode::run_failed, "the zero point of X must be one value");
  if (bind.has_input(o.w_zero)) {
    const int64_t count = bind.in_size(o.w_zero);
    if (count != 1 && count != s.shape.out_channels) {
      throw Error(ErrorCode::run_failed, fmt::format("the zero point of W must be one value or one "
                                                     "for each of the {} output channels; got {}",
                                                     s.shape.out_channels, count));
    }
    s.w_zero = layout.take(count * 4);
  }
  s.weights = packed ? -1 : layout.take(kernels::conv_integer_weights_size(s.shape) * 2);
  s.scratch = layout.take(kernels::conv_integer_scratch_bytes(s.shape, bind.threads()));
}

const int16_t* weights_at_run(RunContext& run, const State& s, const Operands& o,
                              const Packed& packed) {
  if (packed) return static_cast<const int16_t*>(packed->get(run.pool()).data());
  auto* weights = reinterpret_cast<int16_t*>(scratch_at(run, s.weights));
  int32_t* zeros = nullptr;
  if (run.has_input(o.w_zero)) {
    zeros = reinterpret_cast<int32_t*>(scratch_at(run, s.w_zero));
    for (int64_t i = 0; i < run.in_size(o.w_zero); ++i)
      zeros[i] = byte_at(run.in_type(o.w_zero), run.data(o.w_zero), i);
  }
  kernels::pack_conv_integer_weights(s.shape, run.in_type(o.w), run.data(o.w), zeros,
                                     zeros && run.in_size(o.w_zero) > 1, weights, run.pool());
  return weights;
}

int32_t x_zero_at_run(const RunContext& run, const Operands& o) {
  return run.has_input(o.x_zero) ? byte_at(run.in_type(o.x_zero), run.data(o.x_zero), 0) : 0;
}

void set_output(InferContext& ctx, ElementType type, std::optional<Dims> shape) {
  if (!shape) return ctx.set(0, ValueType::tensor(type));
  ctx.set(0, type, std::move(*shape));
}

void infer_plain(InferContext& ctx) {
  set_output(ctx, ElementType::int32,
             conv_output(ctx, read_window(ctx, WindowKind::convolution), read_group(ctx),
                         {.x = plain.x, .w = plain.w, .bias = -1}));
}

// A zero point is of the type of what it is taken off.
void check_zero_points(const InferContext& ctx, const Operands& o) {
  internal::require_same_element(ctx, o.x_zero, o.x);
  internal::require_same_element(ctx, o.w_zero, o.w);
}

constexpr ConvInputs scaled_inputs{QLinearConv::x, QLinearConv::w, QLinearConv::bias};

void infer_scaled(InferContext& ctx) {
  set_output(
      ctx, ctx.element(QLinearConv::y_zero),
      conv_output(ctx, read_window(ctx, WindowKind::convolution), read_group(ctx), scaled_inputs));
}

void infer_nhwc(InferContext& ctx) {
  const auto conv = internal::from_node<QLinearConv>(ctx.node());
  check_zero_points(ctx, scaled);
  check_window(ctx, conv.window);
  check_group(ctx, conv.group);
  const bool adds = ctx.has_input(QLinearConv::addend);
  set_output(ctx, ctx.element(adds ? QLinearConv::addend : QLinearConv::y_zero),
             conv_output(ctx, conv.window, conv.group, scaled_inputs,
                         {.nhwc_input = true, .nhwc_output = true}));
}

void infer_floats(InferContext& ctx) {
  const auto conv = internal::from_node<QuantizedConv>(ctx.node());
  check_zero_points(ctx, to_floats);
  if (!QuantizedConv::takes_activation(conv.activation.function))
    ctx.fail(ErrorCode::internal, "the activation must be none, relu or clip");
  check_window(ctx, conv.window);
  check_group(ctx, conv.group);
  set_output(ctx, ElementType::float32,
             conv_output(ctx, conv.window, conv.group,
                         {QuantizedConv::x, QuantizedConv::w, QuantizedConv::bias},
                         {.nhwc_input = conv.nhwc, .nhwc_output = conv.nhwc}));
}

void run_scaled(RunContext& run, const State& s, const Packed& packed) {
  auto* scale = reinterpret_cast<float*>(scratch_at(run, s.scale));
  const float x = *run.in<float>(QLinearConv::x_scale), y = *run.in<float>(QLinearConv::y_scale);
  for (int64_t i = 0; i < run.in_size(QLinearConv::w_scale); ++i)
    scale[i] = x * run.in<float>(QLinearConv::w_scale)[i] / y;
  kernels::ConvRequantize how;
  how.type = run.out_type(0);
  how.scale = scale, how.scale_each = s.scale_each;
  how.zero = byte_at(run.in_type(QLinearConv::y_zero), run.data(QLinearConv::y_zero), 0);
  how.bias = run.has_input(QLinearConv::bias) ? run.in<int32_t>(QLinearConv::bias) : nullptr;
  how.y = run.out_data(0);
  kernels::conv_integer(s.shape, run.in_type(0), run.data(0), x_zero_at_run(run, scaled),
                        weights_at_run(run, s, scaled, packed), nullptr, &how,
                        scratch_at(run, s.scratch), run.pool());
}

// `ones`: scales and zero points of X and Y.
void check_scales(const BindContext& bind, std::initializer_list<int> ones, int w_scale,
                  int64_t channels) {
  for (const int i : ones) {
    if (bind.has_input(i) && bind.in_size(i) != 1)
      throw Error(ErrorCode::run_failed,
                  "the scales and zero points of X and Y must be one value each");
  }
  const int64_t scales = bind.in_size(w_scale);
  if (scales != 1 && scales != channels) {
    throw Error(ErrorCode::run_failed,
                fmt::format("the scale of W must be one value or one for each of the {} "
                            "output channels; got {}",
                            channels, scales));
  }
}

void check_scaled(const BindContext& bind, int64_t channels) {
  check_scales(bind, {QLinearConv::x_scale, QLinearConv::y_scale, QLinearConv::y_zero},
               QLinearConv::w_scale, channels);
}

// Weights four channels side by side, their sums, and their zero points for signed bytes.
struct ByteWeights {
  Tensor values, sums, zeros;
  bool has_zeros = false;

  std::vector<Tensor> parts() const { return {values, sums, zeros}; }
  static ByteWeights of_parts(std::vector<Tensor> parts) {
    ByteWeights made{std::move(parts.at(0)), std::move(parts.at(1)), std::move(parts.at(2))};
    made.find_zeros();
    return made;
  }
  void find_zeros() {
    has_zeros =
        std::ranges::any_of(zeros.elements<int32_t>(), [](int32_t value) { return value != 0; });
  }
};

void pack_first(const ConvParams& shape, const Tensor& w, ThreadPool& pool, ByteWeights& made) {
  made.values = Tensor(ElementType::int8, Shape{kernels::conv_int8_weights_size(shape)});
  made.sums = Tensor(ElementType::int32, Shape{shape.out_channels});
  kernels::pack_conv_int8_weights(shape, w.element_type(), w.data(),
                                  static_cast<int8_t*>(made.values.mutable_data()),
                                  made.sums.mutable_elements<int32_t>().data(), pool);
}

void pack_nhwc(const ConvParams& shape, const Tensor& w, ThreadPool& pool, ByteWeights& made) {
  made.values = Tensor(ElementType::int8, Shape{kernels::conv_int8_nhwc_weights_size(shape)});
  made.sums = Tensor(ElementType::int32, Shape{kernels::conv_int8_nhwc_channels(shape)});
  kernels::pack_conv_int8_nhwc_weights(
      shape, w.element_type(), w.data(), made.zeros.elements<int32_t>().data(),
      made.values.mutable_data(), made.sums.mutable_elements<int32_t>().data(), pool);
}

using PackedBytes = std::shared_ptr<const Pack<ByteWeights>>;

// The zero point of each output channel, for signed bytes.
Tensor signed_zeros(const ConvParams& shape, const Tensor& w, const Tensor& zero) {
  Tensor made(ElementType::int32, Shape{kernels::conv_int8_nhwc_channels(shape)});
  const auto zeros = made.mutable_elements<int32_t>();
  std::ranges::fill(zeros, 0);
  for (int64_t i = 0; i < shape.out_channels; ++i) {
    zeros[static_cast<size_t>(i)] =
        byte_at(zero.element_type(), zero.data(), zero.size() == 1 ? 0 : i) -
        (w.element_type() == ElementType::uint8 ? 128 : 0);
  }
  return made;
}

PackedBytes pack_bytes(PrepareContext& ctx, const Operands& o, int64_t group, bool last = false) {
  const Tensor* w = ctx.constant(o.w);
  const Tensor* given = ctx.has_input(o.w_zero) ? ctx.constant(o.w_zero) : nullptr;
  if (w == nullptr || w->rank() < 3 || w->rank() > ConvParams::max_rank + 2 ||
      (ctx.has_input(o.w_zero) && given == nullptr))
    return nullptr;
  Tensor none(w->element_type(), {});
  *static_cast<uint8_t*>(none.mutable_data()) = 0;
  const Tensor* zero = given ? given : &none;
  ConvParams shape;
  set_weights(shape, w->shape(), group);
  const int64_t channels = shape.out_channels;
  if (w->size() == 0 || channels % group != 0 || (zero->size() != 1 && zero->size() != channels))
    return nullptr;
  shape.nhwc = last;
  if (last && !kernels::conv_int8_nhwc_applies(shape)) return nullptr;
  int64_t taps = 1;
  for (size_t i = 2; i < w->shape().size(); ++i) taps *= w->shape()[i];
  if (!last && shape.in_channels == group && taps > kernels::conv_int8_max_taps) return nullptr;
  const Tensor zeros = signed_zeros(shape, *w, *zero);
  const int64_t sums = last ? kernels::conv_int8_nhwc_channels(shape) : channels;
  const PackFormat format{.family = PackFamily::conv_int8,
                          .from = w->element_type(),
                          .to = ElementType::int8,
                          .shape = w->shape(),
                          .nhwc = last,
                          .group = group,
                          .parameters = content_of(zeros)};
  return ctx.packed<ByteWeights>(
      o.w, format,
      {{ElementType::int8, last ? kernels::conv_int8_nhwc_weights_size(shape)
                                : kernels::conv_int8_weights_size(shape)},
       {ElementType::int32, sums},
       {ElementType::int32, zeros.size()}},
      [shape, last, weights = *w, zeros](ThreadPool& pool) {
        ByteWeights made;
        made.zeros = zeros;
        made.find_zeros();
        if (last) {
          pack_nhwc(shape, weights, pool, made);
        } else {
          pack_first(shape, weights, pool, made);
        }
        return made;
      });
}

// What both forms have in common.
kernels::ConvInt8 byte_job(const RunContext& run, const Operands& o, const ByteWeights& weights) {
  kernels::ConvInt8 job;
  job.x_type = run.in_type(o.x), job.x = run.data(o.x), job.x_zero = x_zero_at_run(run, o);
  job.weights = static_cast<const int8_t*>(weights.values.data());
  job.weight_sums = static_cast<const int32_t*>(weights.sums.data());
  if (weights.has_zeros) job.w_zero = static_cast<const int32_t*>(weights.zeros.data());
  return job;
}

// How the bytes of the addend are added.
kernels::ByteSum sum_of(const PrepareContext& ctx, const QLinearConv& conv) {
  if (conv.scales.size() != 3)
    ctx.fail(ErrorCode::internal, "a sum of bytes needs three scales and zero points");
  const auto part = [&](QLinearConv::Summand i, ElementType type) {
    const kernels::ByteScale made{type, conv.scales[i].scale, conv.scales[i].zero};
    if (!kernels::is_sound(made))
      ctx.fail(ErrorCode::internal, "the zero point {} is no {}", made.zero, name_of(type));
    return made;
  };
  const ElementType type = ctx.in_element(QLinearConv::addend);
  return {part(QLinearConv::convolution, ctx.in_element(QLinearConv::y_zero)),
          part(QLinearConv::added, type), part(QLinearConv::sum, type), conv.relu};
}

// Scales have room for whole panels.
void run_bytes(RunContext& run, const State& s, const kernels::ByteSum& sum,
               const ByteWeights& weights) {
  auto* scale = reinterpret_cast<float*>(scratch_at(run, s.scale));
  const float x = *run.in<float>(QLinearConv::x_scale), y = *run.in<float>(QLinearConv::y_scale);
  const float* of_weights = run.in<float>(QLinearConv::w_scale);
  const bool is_one = run.in_size(QLinearConv::w_scale) == 1;
  for (int64_t i = 0; i < s.shape.out_channels; ++i) scale[i] = x * of_weights[is_one ? 0 : i] / y;
  std::fill(scale + s.shape.out_channels, scale + kernels::conv_int8_nhwc_channels(s.shape), 0.0f);
  kernels::ConvInt8 job = byte_job(run, scaled, weights);
  job.bias = run.has_input(QLinearConv::bias) ? run.in<int32_t>(QLinearConv::bias) : nullptr;
  job.scale = scale;
  job.y_type = run.out_type(0);
  job.zero = byte_at(run.in_type(QLinearConv::y_zero), run.data(QLinearConv::y_zero), 0);
  job.y = run.out_data(0);
  if (run.has_input(QLinearConv::addend)) job.addend = run.data(QLinearConv::addend), job.sum = sum;
  if (s.shape.nhwc) {
    kernels::conv_int8_nhwc(s.shape, job, scratch_at(run, s.scratch), run.pool());
  } else {
    kernels::conv_int8(s.shape, job, scratch_at(run, s.scratch), run.pool());
  }
}

std::unique_ptr<Step> prepare_bytes(const Window& window, int64_t group, bool last,
                                    const PackedBytes& weights, const kernels::ByteSum& sum = {}) {
  auto step = make_step<State>(
      last ? "conv_scaled.int8_nhwc" : "conv_scaled.int8",
      [window, group, last](BindContext& bind, State& s) {
        ScratchPlanner layout;
        ConvParams pack;
        pack.group = group, pack.nhwc = last;
        s.shape = conv_shape_at_bind(bind, window, pack, scaled.x, scaled.w);
        check_scaled(bind, s.shape.out_channels);
        if (bind.in_size(scaled.x_zero) != 1)
          throw Error(ErrorCode::run_failed, "the zero point of X must be one value");
        if (bind.has_input(QLinearConv::addend) &&
            !std::ranges::equal(bind.in_shape(QLinearConv::addend), bind.out_shape(0)))
          throw Error(ErrorCode::internal, "what is added must have the output's shape");
        s.scale = layout.take(kernels::conv_int8_nhwc_channels(s.shape) * 4);
        s.scratch =
            layout.take(last ? kernels::conv_int8_nhwc_scratch_bytes(s.shape, bind.threads())
                             : kernels::conv_int8_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [weights, sum](RunContext& run, const State& s) {
        run_bytes(run, s, sum, weights->get(run.pool()));
      });
  step->traits().unread_inputs = {scaled.w};
  return step;
}

std::unique_ptr<Step> prepare_byte_sums(const Window& window, int64_t group,
                                        const PackedBytes& weights) {
  auto step = make_step<State>(
      "conv_integer.int8",
      [window, group](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.shape = conv_shape_at_bind(bind, window, group, plain.x, plain.w);
        if (bind.has_input(plain.x_zero) && bind.in_size(plain.x_zero) != 1)
          throw Error(ErrorCode::run_failed, "the zero point of X must be one value");
        s.scratch = layout.take(kernels::conv_int8_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [weights](RunContext& run, const State& s) {
        kernels::ConvInt8 job = byte_job(run, plain, weights->get(run.pool()));
        job.sums = run.out<int32_t>(0);
        kernels::conv_int8(s.shape, job, scratch_at(run, s.scratch), run.pool());
      });
  step->traits().unread_inputs = {plain.w};
  return step;
}

std::unique_ptr<Step> prepare_plain(PrepareContext& ctx) {
  const int64_t group = read_group(ctx);
  if (const auto weights = pack_bytes(ctx, plain, group))
    return prepare_byte_sums(read_window(ctx, WindowKind::convolution), group, weights);
  ctx.refuse("conv_integer.int8", "W is not constant, or its kernel is very large");
  const Packed packed = pack_constant(ctx, plain, group);
  auto step = make_step<State>(
      "conv_integer",
      [window = read_window(ctx, WindowKind::convolution), group, has = packed != nullptr](
          BindContext& bind, State& s) {
        ScratchPlanner layout;
        bind_conv(bind, s, plain, window, group, has, layout);
        bind.need_scratch(layout.bytes());
      },
      [packed](RunContext& run, const State& s) {
        kernels::conv_integer(s.shape, run.in_type(0), run.data(0), x_zero_at_run(run, plain),
                              weights_at_run(run, s, plain, packed), run.out<int32_t>(0), nullptr,
                              scratch_at(run, s.scratch), run.pool());
      });
  if (packed) step->traits().unread_inputs = {plain.w};
  return step;
}

std::unique_ptr<Step> prepare_scaled(PrepareContext& ctx) {
  const int64_t group = read_group(ctx);
  if (const auto weights = pack_bytes(ctx, scaled, group))
    return prepare_bytes(read_window(ctx, WindowKind::convolution), group, false, weights);
  ctx.refuse("conv_scaled.int8", "W is not constant, or its kernel is very large");
  const Packed packed = pack_constant(ctx, scaled, group);
  auto step = make_step<State>(
      "conv_scaled",
      [window = read_window(ctx, WindowKind::convolution), group, has = packed != nullptr](
          BindContext& bind, State& s) {
        ScratchPlanner layout;
        bind_conv(bind, s, scaled, window, group, has, layout);
        check_scaled(bind, s.shape.out_channels);
        const int64_t scales = bind.in_size(QLinearConv::w_scale);
        s.scale_each = scales != 1;
        s.scale = layout.take(scales * 4);
        bind.need_scratch(layout.bytes());
      },
      [packed](RunContext& run, const State& s) { run_scaled(run, s, packed); });
  if (packed) step->traits().unread_inputs = {scaled.w};
  return step;
}

std::unique_ptr<Step> prepare_nhwc(PrepareContext& ctx) {
  const auto conv = internal::from_node<QLinearConv>(ctx.node());
  const auto weights = pack_bytes(ctx, scaled, conv.group, true);
  if (weights == nullptr)
    ctx.fail(ErrorCode::internal,
             "channels last take constant weights of one group, or of one channel in each");
  if (!ctx.has_input(QLinearConv::addend))
    return prepare_bytes(conv.window, conv.group, true, weights);
  auto step = prepare_bytes(conv.window, conv.group, true, weights, sum_of(ctx, conv));
  step->traits().in_place = {{0, QLinearConv::addend}};
  return step;
}

// Scales and shifts have room for whole panels.
void run_to_floats(RunContext& run, const State& s, const internal::FusedActivation& activation,
                   const ByteWeights& weights) {
  const auto channels = s.shape.out_channels, room = kernels::conv_int8_nhwc_channels(s.shape);
  auto* scale = reinterpret_cast<float*>(scratch_at(run, s.scale));
  auto* shift = reinterpret_cast<float*>(scratch_at(run, s.shift));
  const float x = *run.in<float>(QuantizedConv::x_scale);
  const float* of_weights = run.in<float>(QuantizedConv::w_scale);
  const bool is_one = run.in_size(QuantizedConv::w_scale) == 1;
  for (int64_t i = 0; i < channels; ++i) scale[i] = x * of_weights[is_one ? 0 : i];
  std::fill(scale + channels, scale + room, 0.0f);
  const bool has_bias = run.has_input(QuantizedConv::bias);
  if (has_bias) std::copy_n(run.in<float>(QuantizedConv::bias), channels, shift);
  if (has_bias) std::fill(shift + channels, shift + room, 0.0f);
  kernels::ConvInt8 job = byte_job(run, to_floats, weights);
  job.scale = scale, job.shift = has_bias ? shift : nullptr;
  job.y_type = ElementType::float32, job.y = run.out_data(0);
  if (activation.function == kernels::Activation::relu) job.low = 0;
  if (activation.function == kernels::Activation::clip)
    job.low = activation.alpha, job.high = activation.beta;
  const auto convolve = s.shape.nhwc ? kernels::conv_int8_nhwc : kernels::conv_int8;
  convolve(s.shape, job, scratch_at(run, s.scratch), run.pool());
}

std::unique_ptr<Step> prepare_to_floats(PrepareContext& ctx) {
  const auto conv = internal::from_node<QuantizedConv>(ctx.node());
  const auto weights = pack_bytes(ctx, to_floats, conv.group, conv.nhwc);
  if (weights == nullptr)
    ctx.fail(
        ErrorCode::internal,
        "weights must be constant, and of one group or one channel in each with channels last");
  auto step = make_step<State>(
      conv.nhwc ? "quantized_conv.nhwc" : "quantized_conv",
      [window = conv.window, group = conv.group, nhwc = conv.nhwc](BindContext& bind, State& s) {
        ScratchPlanner layout;
        ConvParams pack;
        pack.group = group, pack.nhwc = nhwc;
        s.shape = conv_shape_at_bind(bind, window, pack, to_floats.x, to_floats.w);
        check_scales(bind, {QuantizedConv::x_scale, QuantizedConv::x_zero}, QuantizedConv::w_scale,
                     s.shape.out_channels);
        for (int64_t* at : {&s.scale, &s.shift})
          *at = layout.take(kernels::conv_int8_nhwc_channels(s.shape) * 4);
        s.scratch =
            layout.take(nhwc ? kernels::conv_int8_nhwc_scratch_bytes(s.shape, bind.threads())
                             : kernels::conv_int8_scratch_bytes(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [weights, activation = conv.activation](RunContext& run, const State& s) {
        run_to_floats(run, s, activation, weights->get(run.pool()));
      });
  step->traits().unread_inputs = {to_floats.w};
  return step;
}

constexpr Operator operators[] = {
    {.name = "ConvInteger", .infer = infer_plain, .prepare = prepare_plain},
    {.name = QLinearConv::name, .infer = infer_scaled, .prepare = prepare_scaled},
    {.name = QLinearConv::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<QLinearConv, infer_nhwc>,
     .prepare = prepare_nhwc},
    {.name = QuantizedConv::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<QuantizedConv, infer_floats>,
     .prepare = prepare_to_floats},
};

}  // namespace
}  // namespace conv_integer_unit

std::span<const Operator> conv_integer_operators() { return conv_integer_unit::operators; }

}  // namespace sardonyx::ops
