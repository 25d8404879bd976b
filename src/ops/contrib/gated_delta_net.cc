// com.microsoft: GatedDeltaNet, over sequences of different lengths that lie one
// behind the other, each with a state of its own.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/checked.h"
#include "kernels/attention/linear.h"
#include "kernels/convert/cast.h"
#include "ops/contrib/varlen.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace contrib_gated_delta_net_unit {
namespace {

float* floats_at(const RunContext& run, int64_t offset) {
  return reinterpret_cast<float*>(scratch_at(run, offset));
}

enum Input { query, key, value, sums, decay, beta, state, a_log, dt_bias, capture };

struct Settings {
  float scale = 0;
  bool gated = false, corrected = false, normal = false, qwen = false, sigmoid = false;
};

Settings read_settings(const NodeView& node) {
  Settings s;
  s.scale = node.attr_float("scale", 0);
  const std::string rule = node.attr_string("update_rule", "gated_delta"),
                    gate = node.attr_string("gate_activation", "none"),
                    rate = node.attr_string("beta_activation", "none");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    node.fail("update_rule must be linear, gated, delta or gated_delta; got '{}'", rule);
  if ((gate != "none" && gate != "qwen") || (rate != "none" && rate != "sigmoid"))
    node.fail(
        "gate_activation must be none or qwen and beta_activation none or sigmoid; got '{}' "
        "and '{}'",
        gate, rate);
  s.gated = rule.starts_with("gated"), s.corrected = rule.ends_with("delta");
  s.qwen = gate == "qwen", s.sigmoid = rate == "sigmoid";
  s.normal = node.attr_int("qk_l2_norm", 0) != 0;
  if (s.gated && !node.has_input(decay)) node.fail("update_rule {} needs the input decay", rule);
  if (s.corrected && !node.has_input(beta)) node.fail("update_rule {} needs the input beta", rule);
  if (s.gated && s.qwen && (!node.has_input(a_log) || !node.has_input(dt_bias)))
    node.fail("gate_activation qwen needs a_log and dt_bias");
  if (node.has_input(key) != node.has_input(value))
    node.fail("key and value must be given together, or both be packed into query");
  if (!node.has_input(key) && !node.has_input(state))
    node.fail("a packed query needs initial_state, which tells its heads");
  if (node.attr_int("state_update_capacity", 0) != 0 || node.has_output(2))
    node.fail(ErrorCode::unsupported, "state_update_capacity");
  return s;
}

void infer(InferContext& ctx) {
  read_settings(ctx);
  const ElementType type = ctx.element(query);
  ctx.set(0, ValueType::tensor(type));
  ctx.set(1, ctx.has_input(state) && ctx.type(state).is_tensor()
                 ? ctx.type(state)
                 : ValueType::tensor(ElementType::float32));
  if (ctx.shape(state) && ctx.shape(state)->size() != 4)
    ctx.fail("initial_state must have four dimensions; its shape is {}",
             ir::to_string(*ctx.shape(state)));
  const auto &q = ctx.shape(query), &v = ctx.shape(value), &held = ctx.shape(state);
  const bool packed = !ctx.has_input(key);
  if (q && (packed ? q->size() != 2 && q->size() != 3 : q->size() != 3 && q->size() != 4))
    ctx.fail(
        "query must be [tokens, heads, size], [batch, length, heads, size] or packed; its "
        "shape is {}",
        ir::to_string(*q));
  if (!packed && q && v) {
    if (v->size() != q->size()) ctx.fail("query and value must have one rank");
    Dims shape(q->begin(), q->end() - 2);
    shape.insert(shape.end(), v->end() - 2, v->end());
    ctx.set(0, type, shape);
    const auto count = ctx.type(sums).element_count();
    const Dim batch = held             ? (*held)[0]
                      : q->size() == 4 ? (*q)[0]
                      : count          ? *count - Dim(1)
                                       : ctx.unknown();
    ctx.set(1, ElementType::float32, {batch, v->end()[-2], v->back(), q->back()});
  } else if (packed && q && held) {
    Dims shape(q->begin(), q->end() - 1);
    shape.push_back((*held)[1]), shape.push_back((*held)[2]);
    ctx.set(0, type, shape);
  }
}

struct State {
  kernels::LinearAttentionShape shape;  // of one sequence
  int64_t tokens = 0, batch = 0, qk_heads = 0, repeats = 1;
  bool packed = false;
  int64_t q = 0, k = 0, v = 0, decay = -1, beta = -1, y = 0, state = 0;
};

void bind_heads(const BindContext& bind, State& s) {
  const auto q = bind.in_shape(query);
  kernels::LinearAttentionShape& a = s.shape;
  s.packed = !bind.has_input(key);
  const auto leading = [&](size_t behind) {
    require_of_run(q.size() > behind, "query has too few dimensions");
    return count_of(q.subspan(0, q.size() - behind));
  };
  if (s.packed) {
    const auto held = bind.in_shape(state);
    require_of_run(held.size() == 4, "initial_state must have four dimensions");
    s.tokens = leading(1);
    a.kv_heads = held[1], a.v_head_size = held[2], a.head_size = held[3];
    const auto values = checked_mul(a.kv_heads, a.v_head_size);
    const int64_t rest = values ? q.back() - *values : -1;
    require_of_run(rest > 0 && a.head_size > 0 && rest % 2 == 0 && rest / 2 % a.head_size == 0,
                   "the packed query does not fit the heads of initial_state");
    s.qk_heads = rest / 2 / a.head_size;
  } else {
    const auto k = bind.in_shape(key), v = bind.in_shape(value);
    require_of_run(q.size() >= 3 && std::ranges::equal(k, q) && v.size() == q.size() &&
                       std::ranges::equal(v.subspan(0, v.size() - 2), q.subspan(0, q.size() - 2)),
                   "query and key must have one shape, and value as many tokens");
    s.tokens = leading(2), s.qk_heads = q[q.size() - 2], a.head_size = q.back();
    a.kv_heads = v[v.size() - 2], a.v_head_size = v.back();
  }
  require_of_run(s.qk_heads > 0 && a.kv_heads > 0 && a.kv_heads % s.qk_heads == 0,
                 "the heads of value must be a multiple of those of query and key");
  constexpr int64_t most = 1 << 20;
  require_of_run(std::max({a.kv_heads, a.head_size, a.v_head_size}) <= most,
                 "there may be up to 2^20 heads, of up to 2^20 numbers");
  s.repeats = a.kv_heads / s.qk_heads, a.q_heads = a.kv_heads, a.batch = 1;
}

void bind_gates(const BindContext& bind, State& s, const Settings& settings) {
  kernels::LinearAttentionShape& a = s.shape;
  const int64_t each = s.tokens * a.kv_heads;
  a.decay_size = 0, a.beta_heads = settings.corrected ? a.kv_heads : 0;
  if (settings.gated) {
    const int64_t count = bind.in_size(decay);
    const bool wide = count != each;
    require_of_run(
        !wide || count == each * a.head_size,
        "decay must have a number for each token and head, or one for each of their channels");
    a.decay_size = wide ? a.head_size : 1;
  }
  require_of_run(!settings.corrected || bind.in_size(beta) == each,
                 "beta must have a number for each token and head");
  for (const int i : {a_log, dt_bias})
    require_of_run(!bind.has_input(i) || bind.in_size(i) == a.kv_heads,
                   "a_log and dt_bias must have a number for each head");
}

void bind_batch(const BindContext& bind, State& s) {
  const kernels::LinearAttentionShape& a = s.shape;
  const auto q = bind.in_shape(query);
  if (bind.has_input(sums)) {
    require_of_run(s.packed ? q.size() == 2 : q.size() == 3,
                   "cu_seqlens needs tokens of one dimension");
    s.batch = bind.in_size(sums) - 1;
  } else if (bind.has_input(state)) {
    s.batch = bind.in_shape(state)[0];
  } else {
    require_of_run(!s.packed && q.size() == 4,
                   "without cu_seqlens and initial_state the batch is unknown");
    s.batch = q[0];
  }
  require_of_run(s.batch >= 0 && (s.batch > 0 ? bind.has_input(sums) || s.tokens % s.batch == 0
                                              : s.tokens == 0),
                 "the tokens cannot be divided among the sequences");
  const Shape held{s.batch, a.kv_heads, a.v_head_size, a.head_size};
  require_of_run(!bind.has_input(state) || std::ranges::equal(bind.in_shape(state), held),
                 "initial_state must be [batch, heads, size of values, size of keys]");
  require_of_run(!bind.has_output(1) || std::ranges::equal(bind.out_shape(1), held),
                 "final_state has another shape than the states");
}

void bind_all(BindContext& bind, State& s, const Settings& settings) {
  s.shape = {};
  bind_heads(bind, s);
  bind_gates(bind, s, settings);
  bind_batch(bind, s);
  kernels::LinearAttentionShape& a = s.shape;
  a.scale = settings.scale != 0 ? settings.scale : 1 / std::sqrt(static_cast<float>(a.head_size));
  ScratchPlanner layout;
  const auto floats = [&](std::initializer_list<int64_t> sizes) {
    const auto count = checked_count(std::span(sizes.begin(), sizes.size()));
    require_of_run(count && *count < int64_t{1} << 58,
                   "the heads have more numbers than memory can hold");
    return layout.take(*count * 4);
  };
  s.q = floats({s.tokens, a.kv_heads, a.head_size}),
  s.k = floats({s.tokens, a.kv_heads, a.head_size});
  s.v = floats({s.tokens, a.kv_heads, a.v_head_size});
  s.y = floats({s.tokens, a.kv_heads, a.v_head_size});
  s.decay = a.decay_size > 0 ? floats({s.tokens, a.kv_heads, a.decay_size}) : -1;
  s.beta = a.beta_heads > 0 ? floats({s.tokens, a.kv_heads}) : -1;
  s.state = floats({a.kv_heads, a.head_size, a.v_head_size});
  bind.need_scratch(layout.bytes());
}

// Rows of query (0), key (1) or value (2), elements apart, and where the first begins.
struct Rows {
  const std::byte* data;
  int64_t step;
};

Rows rows_of(const RunContext& run, const State& s, int which) {
  const kernels::LinearAttentionShape& a = s.shape;
  const int64_t qk = s.qk_heads * a.head_size, v = a.kv_heads * a.v_head_size;
  if (!s.packed) return {static_cast<const std::byte*>(run.data(which)), which == 2 ? v : qk};
  return {
      static_cast<const std::byte*>(run.data(query)) + byte_size(run.in_type(query), which * qk),
      2 * qk + v};
}

// Queries or keys: each head as often as values share it, of length 1 where the node says so.
void load_heads(const RunContext& run, const State& s, const Settings& settings, int which,
                float* to) {
  const kernels::LinearAttentionShape& a = s.shape;
  const Rows rows = rows_of(run, s, which);
  const ElementType type = run.in_type(query);
  run.pool().parallel_for(s.tokens, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t h = 0; h < s.qk_heads; ++h) {
        float* head = to + (t * a.kv_heads + h * s.repeats) * a.head_size;
        kernels::cast_row(type, ElementType::float32,
                          rows.data + byte_size(type, t * rows.step + h * a.head_size), head,
                          a.head_size);
        if (settings.normal) {
          float sum = 1e-6f;
          for (int64_t i = 0; i < a.head_size; ++i) sum += head[i] * head[i];
          const float factor = 1 / std::sqrt(sum);
          for (int64_t i = 0; i < a.head_size; ++i) head[i] *= factor;
        }
        for (int64_t r = 1; r < s.repeats; ++r)
          std::copy_n(head, a.head_size, head + r * a.head_size);
      }
    }
  });
}

void load_values(const RunContext& run, const State& s) {
  const Rows rows = rows_of(run, s, 2);
  const ElementType type = run.in_type(query);
  const int64_t width = s.shape.kv_heads * s.shape.v_head_size;
  for (int64_t t = 0; t < s.tokens; ++t)
    kernels::cast_row(type, ElementType::float32, rows.data + byte_size(type, t * rows.step),
                      floats_at(run, s.v) + t * width, width);
}

float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

void load_gates(const RunContext& run, const State& s, const Settings& settings) {
  const kernels::LinearAttentionShape& a = s.shape;
  if (s.decay >= 0) {
    float* to = floats_at(run, s.decay);
    const float* from = run.in<float>(decay);
    for (int64_t i = 0; i < s.tokens * a.kv_heads * a.decay_size; ++i) {
      const int64_t head = i / a.decay_size % a.kv_heads;
      to[i] = settings.qwen ? -std::exp(run.in<float>(a_log)[head]) *
                                  softplus(from[i] + run.in<float>(dt_bias)[head])
                            : from[i];
    }
  }
  if (s.beta < 0) return;
  float* to = floats_at(run, s.beta);
  const float* from = run.in<float>(beta);
  for (int64_t i = 0; i < s.tokens * a.kv_heads; ++i)
    to[i] = settings.sigmoid ? 1 / (1 + std::exp(-from[i])) : from[i];
}

// Each head's matrix transposed: states have values first, the recurrence has keys first.
void transpose(const float* from, int64_t heads, int64_t rows, int64_t columns, float* to) {
  for (int64_t h = 0; h < heads; ++h, from += rows * columns, to += rows * columns) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
    }
  }
}

void run_all(RunContext& run, const State& s, const Settings& settings) {
  load_heads(run, s, settings, 0, floats_at(run, s.q));
  load_heads(run, s, settings, 1, floats_at(run, s.k));
  load_values(run, s);
  load_gates(run, s, settings);
  kernels::LinearAttentionShape a = s.shape;
  const int64_t each = a.kv_heads * a.head_size * a.v_head_size;
  float* held = floats_at(run, s.state);
  for (int64_t b = 0; b < s.batch; ++b) {
    const TokenRange range = tokens_of(run, sums, s.tokens, s.batch, b);
    if (run.has_input(state)) {
      transpose(run.in<float>(state) + b * each, a.kv_heads, a.v_head_size, a.head_size, held);
    } else {
      std::fill_n(held, each, 0.0f);
    }
    a.length = range.count;
    kernels::LinearAttentionData data;
    const int64_t keys = range.first * a.kv_heads * a.head_size,
                  values = range.first * a.kv_heads * a.v_head_size;
    data.q = floats_at(run, s.q) + keys, data.k = floats_at(run, s.k) + keys;
    data.v = floats_at(run, s.v) + values, data.y = floats_at(run, s.y) + values;
    if (s.decay >= 0)
      data.decay = floats_at(run, s.decay) + range.first * a.kv_heads * a.decay_size;
    if (s.beta >= 0) data.beta = floats_at(run, s.beta) + range.first * a.kv_heads;
    data.state = held;
    kernels::linear_attention(a, data, run.pool());
    if (run.has_output(1))
      transpose(held, a.kv_heads, a.head_size, a.v_head_size, run.out<float>(1) + b * each);
  }
  if (run.has_output(0))
    kernels::cast(ElementType::float32, run.out_type(0), floats_at(run, s.y), run.out_data(0),
                  run.out_size(0), {}, run.pool());
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Settings settings = read_settings(ctx);
  if (!computes_in_float(ctx.in_element(query)))
    ctx.fail(ErrorCode::unsupported, "no attention of {}", name_of(ctx.in_element(query)));
  return make_step<State>(
      "gated_delta_net",
      [settings](BindContext& context, State& s) { bind_all(context, s, settings); },
      [settings](RunContext& run, const State& s) { run_all(run, s, settings); });
}

constexpr Operator operators[] = {
    {.name = "GatedDeltaNet", .domain = "com.microsoft", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace contrib_gated_delta_net_unit

std::span<const Operator> contrib_gated_delta_net_operators() {
  return contrib_gated_delta_net_unit::operators;
}

}  // namespace sardonyx::ops
