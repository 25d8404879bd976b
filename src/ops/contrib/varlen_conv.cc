// com.microsoft: VarlenCausalConvWithState, over sequences of different lengths that lie one
// behind the other, each with a state of its own.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/checked.h"
#include "kernels/convert/cast.h"
#include "ops/contrib/varlen.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace contrib_varlen_conv_unit {
namespace {

float* floats_at(const RunContext& run, int64_t offset) {
  return reinterpret_cast<float*>(scratch_at(run, offset));
}

enum Input { input, weight, sums, bias, state, capture };

int64_t capacity_of(const NodeView& node) {
  const int64_t capacity = node.attr_int("state_update_capacity", 0);
  if (capacity < 0 || capacity > 8)
    node.fail("state_update_capacity must be in [0, 8]; got {}", capacity);
  if (node.has_input(capture) != (capacity > 0))
    node.fail("capture_count must be given exactly where state_update_capacity is above 0");
  return capacity;
}

struct Settings {
  int64_t dilation = 1, capacity = 0;
  bool activates = false;
};

Settings read_settings(const NodeView& node) {
  Settings s;
  s.dilation = node.attr_int("dilation", 1);
  if (s.dilation < 1 || s.dilation > 1 << 20)
    node.fail("dilation must be in [1, {}]; got {}", 1 << 20, s.dilation);
  const std::string activation = node.attr_string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    node.fail("activation must be none, silu or swish; got '{}'", activation);
  s.activates = activation != "none";
  s.capacity = capacity_of(node);
  if (node.has_output(2) && s.capacity == 0)
    node.fail("the output state_update needs a state_update_capacity above 0");
  return s;
}

void infer(InferContext& ctx) {
  const Settings s = read_settings(ctx);
  ctx.set(0, ctx.type(input)), ctx.set(1, ctx.type(state));
  for (const auto& [i, rank] :
       {std::pair(0, 2), std::pair(1, 3), std::pair(2, 1), std::pair(4, 3)}) {
    if (ctx.shape(i) && ctx.shape(i)->size() != static_cast<size_t>(rank))
      ctx.fail("{} must have {} dimensions; its shape is {}", ctx.input_name(i), rank,
               ir::to_string(*ctx.shape(i)));
  }
  const auto &x = ctx.shape(input), &w = ctx.shape(weight), &held = ctx.shape(state);
  if (x && w) {
    ctx.require_equal((*w)[0], (*x)[1], "weight must have a row for each channel");
    ctx.require_equal((*w)[1], Dim(1), "weight must be [channels, 1, taps]");
  }
  if (held && x) ctx.require_equal((*held)[1], (*x)[1], "initial_state must have all channels");
  if (held && w)
    ctx.require_equal((*held)[2], ((*w)[2] - Dim(1)) * Dim(s.dilation),
                      "initial_state must hold (taps - 1) * dilation tokens");
  if (held && ctx.shape(sums))
    ctx.require_equal((*ctx.shape(sums))[0], (*held)[0] + Dim(1),
                      "cumulative_sequence_length must have a number more than there are states");
  if (held)
    ctx.set(2, ctx.element(input), {(*held)[0], Dim(s.capacity), (*held)[1]});
  else
    ctx.set(2, ValueType::tensor(ctx.element(input)));
}

struct State {
  int64_t tokens = 0, channels = 0, taps = 0, batch = 0, held = 0;
  int64_t x = 0, w = 0, bias = -1, y = 0;
};

void bind(BindContext& context, State& s, const Settings& settings) {
  const auto x = context.in_shape(input), w = context.in_shape(weight),
             state_shape = context.in_shape(state);
  require_of_run(
      x.size() == 2 && w.size() == 3 && state_shape.size() == 3 && w[0] == x[1] && w[1] == 1 &&
          w[2] >= 1 && state_shape[1] == x[1],
      "input must be [tokens, channels], weight [channels, 1, taps] and initial_state [batch, "
      "channels, tokens]");
  s.tokens = x[0], s.channels = x[1], s.taps = w[2], s.batch = state_shape[0];
  s.held = state_shape[2];
  const auto held = checked_mul(s.taps - 1, settings.dilation);
  require_of_run(held && *held == s.held, "initial_state must hold (taps - 1) * dilation tokens");
  require_of_run(context.in_size(sums) == s.batch + 1,
                 "cumulative_sequence_length must have a number more than there are states");
  require_of_run(!context.has_input(bias) || context.in_size(bias) == s.channels,
                 "bias must have a number for each channel");
  require_of_run(!context.has_input(capture) || context.in_size(capture) == s.batch,
                 "capture_count must have a number for each sequence");
  ScratchPlanner layout;
  s.x = layout.take(s.tokens * s.channels * 4), s.y = layout.take(s.tokens * s.channels * 4);
  s.w = layout.take(context.in_size(weight) * 4);
  s.bias = context.has_input(bias) ? layout.take(s.channels * 4) : -1;
  context.need_scratch(layout.bytes());
}

// One sequence: what lies before its first token comes from its state, which has the tokens of a
// channel side by side, in the type of the input.
struct Sequence {
  const float* x;
  const std::byte* before;
  ElementType type;
  int64_t channels, held;

  float at(int64_t token, int64_t channel) const {
    if (token >= 0) return x[token * channels + channel];
    float value;
    kernels::cast_row(type, ElementType::float32,
                      before + byte_size(type, channel * held + held + token), &value, 1);
    return value;
  }
};

void convolve(const State& s, const Settings& settings, const Sequence& sequence, int64_t count,
              const float* w, const float* bias_, float* y, ThreadPool& pool) {
  pool.parallel_for(
      count, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, s.channels * s.taps)),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t t = begin; t < end; ++t) {
          for (int64_t c = 0; c < s.channels; ++c) {
            float sum = bias_ ? bias_[c] : 0.0f;
            for (int64_t j = 0; j < s.taps; ++j)
              sum += w[c * s.taps + j] * sequence.at(t - (s.taps - 1 - j) * settings.dilation, c);
            y[t * s.channels + c] = settings.activates ? sum / (1 + std::exp(-sum)) : sum;
          }
        }
      });
}

// The last tokens, of the state before and of the sequence, as the state afterwards.
void write_state(const State& s, const Sequence& sequence, int64_t count, std::byte* to) {
  for (int64_t c = 0; c < s.channels; ++c) {
    for (int64_t j = 0; j < s.held; ++j) {
      const float value = sequence.at(count - s.held + j, c);
      kernels::cast_row(ElementType::float32, sequence.type, &value,
                        to + byte_size(sequence.type, c * s.held + j), 1);
    }
  }
}

void run_all(RunContext& run, const State& s, const Settings& settings) {
  const ElementType type = run.in_type(input);
  const auto wide = [&](int i, int64_t offset) -> const float* {
    if (!run.has_input(i)) return nullptr;
    float* to = floats_at(run, offset);
    kernels::cast(run.in_type(i), ElementType::float32, run.data(i), to, run.in_size(i), {},
                  run.pool());
    return to;
  };
  const float *x = wide(input, s.x), *w = wide(weight, s.w), *bias_ = wide(bias, s.bias);
  float* y = floats_at(run, s.y);
  require_of_run(s.batch > 0 || s.tokens == 0, "there are tokens of no sequence");
  for (int64_t b = 0; b < s.batch; ++b) {
    const TokenRange range = tokens_of(run, sums, s.tokens, s.batch, b);
    const int64_t state_bytes = byte_size(type, s.channels * s.held);
    const Sequence sequence{x + range.first * s.channels,
                            static_cast<const std::byte*>(run.data(state)) + b * state_bytes, type,
                            s.channels, s.held};
    convolve(s, settings, sequence, range.count, w, bias_, y + range.first * s.channels,
             run.pool());
    if (run.has_output(1))
      write_state(s, sequence, range.count,
                  static_cast<std::byte*>(run.out_data(1)) + b * state_bytes);
    if (!run.has_output(2)) continue;
    const int64_t captured = std::clamp<int64_t>(run.in<int32_t>(capture)[b], 0,
                                                 std::min(settings.capacity, range.count));
    const int64_t row = byte_size(type, s.channels);
    auto* to = static_cast<std::byte*>(run.out_data(2)) + b * settings.capacity * row;
    std::fill_n(to, settings.capacity * row, std::byte{0});
    std::copy_n(static_cast<const std::byte*>(run.data(input)) + range.first * row, captured * row,
                to);
  }
  if (run.has_output(0))
    kernels::cast(ElementType::float32, type, y, run.out_data(0), run.out_size(0), {}, run.pool());
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Settings settings = read_settings(ctx);
  if (!computes_in_float(ctx.in_element(input)))
    ctx.fail(ErrorCode::unsupported, "no convolution of {}", name_of(ctx.in_element(input)));
  return make_step<State>(
      "varlen_causal_conv",
      [settings](BindContext& context, State& s) { bind(context, s, settings); },
      [settings](RunContext& run, const State& s) { run_all(run, s, settings); });
}

constexpr Operator operators[] = {{.name = "VarlenCausalConvWithState",
                                   .domain = "com.microsoft",
                                   .infer = infer,
                                   .prepare = prepare}};

}  // namespace
}  // namespace contrib_varlen_conv_unit

std::span<const Operator> contrib_varlen_conv_operators() {
  return contrib_varlen_conv_unit::operators;
}

}  // namespace sardonyx::ops
