// LinearAttention.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/attention/linear.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/shared_sizes.h"

namespace sardonyx::ops {
namespace linear_attention_unit {
namespace {

using kernels::LinearAttentionShape;

enum Input { query, key, value, past_state, decay, beta };

struct Settings {
  int64_t q_heads = 0, kv_heads = 0;
  float scale = 0;  // 0: from the head size
  bool gated = false, corrected = false;
};

Settings settings_of(const NodeView& node) {
  Settings s;
  s.q_heads = node.attr_int("q_num_heads"), s.kv_heads = node.attr_int("kv_num_heads");
  if (s.q_heads < 1 || s.kv_heads < 1 || s.q_heads % s.kv_heads != 0) {
    node.fail("q_num_heads must be a positive multiple of kv_num_heads; they are {} and {}",
              s.q_heads, s.kv_heads);
  }
  const std::string rule = node.attr_string("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") {
    node.fail("update_rule must be linear, gated, delta or gated_delta; got '{}'", rule);
  }
  s.gated = rule.starts_with("gated"), s.corrected = rule.ends_with("delta");
  if (s.gated != node.has_input(decay))
    node.fail("update_rule {} {} the input decay", rule, s.gated ? "needs" : "does not take");
  if (s.corrected != node.has_input(beta))
    node.fail("update_rule {} {} the input beta", rule, s.corrected ? "needs" : "does not take");
  s.scale = node.attr_float("scale", 0);
  return s;
}

// The size of one head of an input that packs `heads` of them in its last dimension.
std::optional<Dim> head_size(InferContext& ctx, int i, int64_t heads) {
  const auto last = size_of(ctx, i, 2);
  if (!last) return std::nullopt;
  if (last->value() && *last->value() % heads != 0) {
    ctx.fail("the last dimension of {}, {}, must be divisible by its {} heads", ctx.input_name(i),
             *last->value(), heads);
  }
  return floor_div(*last, Dim(heads));
}

void check_gates(InferContext& ctx, const Settings& s, const std::optional<Dim>& k_size) {
  if (s.gated && ctx.shape(decay)) {
    const Dim& last = (*ctx.shape(decay))[2];
    if (last.is_constant() && k_size && k_size->is_constant() && !(last == s.kv_heads) &&
        !(last == s.kv_heads * *k_size->value())) {
      ctx.fail("the last dimension of decay must be {} (one for each head) or {}; it is {}",
               s.kv_heads, s.kv_heads * *k_size->value(), *last.value());
    }
  }
  if (s.corrected && ctx.shape(beta)) {
    const Dim& last = (*ctx.shape(beta))[2];
    if (last.is_constant() && !(last == s.kv_heads) && !(last == 1))
      ctx.fail("the last dimension of beta must be {} or 1; it is {}", s.kv_heads, *last.value());
  }
}

void infer(InferContext& ctx) {
  const Settings s = settings_of(ctx);
  const ElementType state = ctx.type(past_state).is_tensor() ? ctx.element(past_state)
                            : ctx.has_input(past_state)      ? ElementType::undefined
                                                             : ctx.element(query);
  for (const int i : {query, key, value, decay, beta}) {
    if (ctx.has_input(i) && ctx.shape(i) && ctx.shape(i)->size() != 3)
      ctx.fail("{} must have three dimensions; its shape is {}", ctx.input_name(i),
               ir::to_string(*ctx.shape(i)));
  }
  const auto shared = [&](size_t axis) {
    return first_size({size_of(ctx, query, axis), size_of(ctx, key, axis),
                       size_of(ctx, value, axis), size_of(ctx, decay, axis),
                       size_of(ctx, beta, axis)});
  };
  const auto length = shared(1), batch = first_size({shared(0), size_of(ctx, past_state, 0)});
  for (const int i : {query, key, value, decay, beta}) {
    require_shared(ctx, size_of(ctx, i, 0), batch, "all inputs must have the batch size of query");
    require_shared(ctx, size_of(ctx, i, 1), length, "all inputs must have the length of query");
  }
  const auto q_size = head_size(ctx, query, s.q_heads), k_size = head_size(ctx, key, s.kv_heads);
  require_shared(ctx, q_size, k_size, "query and key must have the same head size");
  const auto k_rows = first_size({k_size, q_size, size_of(ctx, past_state, 2)});
  check_gates(ctx, s, k_rows);
  const auto v_size = first_size({head_size(ctx, value, s.kv_heads), size_of(ctx, past_state, 3)});
  if (const auto& past = ctx.shape(past_state); past && past->size() != 4)
    ctx.fail("past_state must have four dimensions; its shape is {}", ir::to_string(*past));
  const std::optional<Dim> state_sizes[] = {batch, Dim(s.kv_heads), k_rows, v_size};
  Dims state_shape;
  for (size_t i = 0; i < 4; ++i) {
    require_shared(ctx, size_of(ctx, past_state, i), state_sizes[i],
                   "past_state must be [batch, kv heads, key head size, value head size]");
    state_shape.push_back(size_or_unknown(ctx, state_sizes[i]));
  }
  ctx.set(0, ctx.element(query),
          {state_shape[0], size_or_unknown(ctx, length),
           v_size ? *v_size * Dim(s.q_heads) : ctx.unknown()});
  ctx.set(1, state, state_shape);
}

struct State {
  LinearAttentionShape shape;
  ConvertedArguments wide;
  int64_t state = -1;  // scratch for the state where the output is absent
};

void bind_sizes(BindContext& bind, State& state, const Settings& s) {
  LinearAttentionShape& a = state.shape;
  const auto q = bind.in_shape(query);
  a.batch = q[0], a.length = q[1], a.q_heads = s.q_heads, a.kv_heads = s.kv_heads;
  a.head_size = bind.in_shape(key)[2] / s.kv_heads;
  a.v_head_size = bind.in_shape(value)[2] / s.kv_heads;
  a.decay_size = s.gated ? bind.in_shape(decay)[2] / s.kv_heads : 0;
  a.beta_heads = s.corrected ? bind.in_shape(beta)[2] : 0;
  const bool bad_decay = s.gated && (bind.in_shape(decay)[2] % s.kv_heads != 0 ||
                                     (a.decay_size != 1 && a.decay_size != a.head_size));
  const bool bad_beta = s.corrected && a.beta_heads != 1 && a.beta_heads != s.kv_heads;
  if (q[2] != a.head_size * s.q_heads || bind.in_shape(key)[2] % s.kv_heads != 0 ||
      bind.in_shape(value)[2] % s.kv_heads != 0 || bad_decay || bad_beta) {
    throw Error(ErrorCode::run_failed,
                fmt::format("query {}, key {} and value {} cannot be cut into {} and {} heads",
                            to_string(q), to_string(bind.in_shape(key)),
                            to_string(bind.in_shape(value)), s.q_heads, s.kv_heads));
  }
  a.scale = s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<float>(a.head_size));
  ScratchPlanner layout;
  state.wide.plan(bind, ElementType::float32, layout);
  const int64_t count = a.batch * a.kv_heads * a.head_size * a.v_head_size;
  state.state = bind.has_output(1) ? -1 : layout.take(byte_size(ElementType::float32, count));
  bind.need_scratch(layout.bytes());
}

void run_attention(RunContext& run, const State& s) {
  const LinearAttentionShape& a = s.shape;
  kernels::LinearAttentionData data;
  data.q = s.wide.in<float>(run, query);
  data.k = s.wide.in<float>(run, key);
  data.v = s.wide.in<float>(run, value);
  data.decay = s.wide.in<float>(run, decay);
  data.beta = s.wide.in<float>(run, beta);
  data.y = s.wide.out<float>(run, 0);
  data.state =
      s.state < 0 ? s.wide.out<float>(run, 1) : reinterpret_cast<float*>(scratch_at(run, s.state));
  const int64_t count = a.batch * a.kv_heads * a.head_size * a.v_head_size;
  if (const float* past = s.wide.in<float>(run, past_state)) {
    if (past != data.state) std::copy_n(past, count, data.state);
  } else {
    std::fill_n(data.state, count, 0.0f);
  }
  kernels::linear_attention(a, data, run.pool());
  for (const int i : {0, 1}) s.wide.finish<float>(run, i);
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Settings settings = settings_of(ctx);
  auto step = make_step<State>(
      "linear_attention",
      [settings](BindContext& bind, State& s) { bind_sizes(bind, s, settings); },
      [](RunContext& run, const State& s) { run_attention(run, s); });
  step->traits().in_place = {{1, past_state}};
  return step;
}

constexpr Operator operators[] = {{.name = "LinearAttention", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace linear_attention_unit

std::span<const Operator> linear_attention_operators() { return linear_attention_unit::operators; }

}  // namespace sardonyx::ops
