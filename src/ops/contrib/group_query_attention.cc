// com.microsoft: GroupQueryAttention.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/rotary.h"
#include "kernels/rows/normalize.h"
#include "ops/contrib/cache_rows.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace contrib_group_query_unit {
namespace {

using kernels::AttentionShape;
using kernels::HeadStrides;

enum Input {
  query,
  key,
  value,
  past_key,
  past_value,
  lengths,
  total_length,
  cosine,
  sine,
  position_ids,
  bias,
  sink,
  k_scale,
  v_scale,
  q_norm,
  k_norm
};

struct Settings {
  int64_t heads = 0, kv_heads = 0;
  bool rotary = false, interleaved = false, causal = true, smooth = false;
  int64_t window = -1;
  double scale = 0, softcap = 0, norm_epsilon = 1e-6;
  int64_t qk_output = 0;
  CacheFormat cache;  // of the past and present
  // These hold the last positions only: sliding_window_cache.
  bool sliding = false;

  // How many of `total` positions such a cache of `capacity` rows holds: as few as `window`
  // where it had to make room.
  int64_t resident(int64_t total, int64_t capacity) const {
    if (total <= capacity) return total;
    const int64_t gap = capacity - window + 1;
    return total - gap * ((total - capacity + gap - 1) / gap);
  }
};

// `type_of` gives the element types of inputs, undefined where not known.
template <class TypeOf>
CacheFormat read_cache(const NodeView& node, const TypeOf& type_of) {
  const ElementType type = type_of(query);
  const bool quantized = node.attr_string("k_quant_type", "NONE") != "NONE" ||
                         node.attr_string("v_quant_type", "NONE") != "NONE";
  ElementType cache = quantized ? ElementType::int8 : type;
  for (const int i : {past_value, past_key}) {
    if (node.has_input(i) && type_of(i) != ElementType::undefined) cache = type_of(i);
  }
  const CacheFormat format = cache_format(node, cache, type, k_scale);
  if (quantized && !node.has_input(past_key))
    node.fail(ErrorCode::unsupported, "a quantised present without a past");
  const ElementType other = node.has_input(past_value) ? type_of(past_value) : cache;
  if (other != ElementType::undefined && other != cache)
    node.fail("past_key and past_value must have one type; they are {} and {}", name_of(cache),
              name_of(other));
  return format;
}

void check_sliding(const NodeView& node, const Settings& s) {
  if (s.window < 1) node.fail("sliding_window_cache needs a local_window_size of at least 1");
  if (!node.has_input(past_key))
    node.fail("sliding_window_cache needs past_key and past_value, which say how many rows it has");
}

template <class TypeOf>
Settings read_settings(const NodeView& node, const TypeOf& type_of) {
  Settings s;
  s.heads = node.attr_int("num_heads"), s.kv_heads = node.attr_int("kv_num_heads");
  if (s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads != 0)
    node.fail("num_heads must be a multiple of kv_num_heads, both at least 1; got {} and {}",
              s.heads, s.kv_heads);
  s.rotary = node.attr_int("do_rotary", 0) != 0;
  s.interleaved = node.attr_int("rotary_interleaved", 0) != 0;
  s.causal = node.attr_int("causal", 1) != 0;
  s.smooth = node.attr_int("smooth_softmax", -1) == 1;
  s.window = node.attr_int("local_window_size", -1);
  s.scale = node.attr_float("scale", 0), s.softcap = node.attr_float("softcap", 0);
  s.norm_epsilon = node.attr_float("qk_norm_epsilon", 1e-6f);
  s.qk_output = node.attr_int("qk_output", 0);
  if (s.window < -1 || s.window == 0)
    node.fail("local_window_size must be -1 or at least 1; got {}", s.window);
  if (s.window > 0 && !s.causal) node.fail("a local window needs causal attention");
  if (s.qk_output < 0 || s.qk_output > 2)
    node.fail("qk_output must be 0, 1 or 2; got {}", s.qk_output);
  if (s.rotary && (!node.has_input(cosine) || !node.has_input(sine)))
    node.fail("do_rotary needs cos_cache and sin_cache");
  if (node.has_input(key) != node.has_input(value))
    node.fail("key and value must be given together, or both be packed into query");
  if (node.has_input(past_key) != node.has_input(past_value))
    node.fail("past_key and past_value must be given together");
  if (node.has_input(q_norm) != node.has_input(k_norm))
    node.fail("q_norm_weight and k_norm_weight must be given together");
  s.cache = read_cache(node, type_of);
  s.sliding = node.attr_int("sliding_window_cache", 0) != 0;
  if (s.sliding) check_sliding(node, s);
  return s;
}

// The present holds the past's rows, or as many as total_sequence_length says.
Dim present_length(InferContext& ctx, const Settings& s) {
  if (s.sliding)
    return ctx.shape(past_key) && ctx.shape(past_key)->size() == 4 ? (*ctx.shape(past_key))[2]
                                                                   : ctx.unknown();
  const auto known = ctx.elements(total_length);
  if (!known || known->size() != 1) return ctx.unknown();
  if (!ctx.has_input(past_key)) return (*known)[0];
  if (!ctx.shape(past_key) || ctx.shape(past_key)->size() != 4) return ctx.unknown();
  return max((*ctx.shape(past_key))[2], (*known)[0]);
}

void infer(InferContext& ctx) {
  const Settings s = read_settings(ctx, [&](int i) {
    return ctx.type(i).is_tensor() ? ctx.element(i) : ElementType::undefined;
  });
  const auto& q = ctx.shape(query);
  for (const int i : {0, 1, 2}) {
    if (ctx.has_input(i) && ctx.shape(i) && ctx.shape(i)->size() != 3)
      ctx.fail("{} must have three dimensions; its shape is {}", ctx.input_name(i),
               ir::to_string(*ctx.shape(i)));
  }
  const ElementType type = ctx.element(query);
  if (!q) {
    for (int i = 0; i < 4; ++i)
      ctx.set(i, ValueType::tensor(i == 1 || i == 2 ? s.cache.type : type));
    return;
  }
  const bool packed = !ctx.has_input(key);
  const int64_t groups = packed ? s.heads + 2 * s.kv_heads : s.heads;
  if (const auto hidden = (*q)[2].value(); hidden && *hidden % groups != 0)
    ctx.fail("the last dimension of {}, {}, must be divisible by its {} heads",
             ctx.input_name(query), *hidden, groups);
  const Dim size = floor_div((*q)[2], Dim(groups));
  for (const int i : {1, 2}) {
    if (packed || !ctx.shape(i)) continue;
    ctx.require_equal((*ctx.shape(i))[0], (*q)[0], "query, key and value must have one batch size");
    ctx.require_equal((*ctx.shape(i))[1], (*q)[1], "query, key and value must have one length");
    ctx.require_equal((*ctx.shape(i))[2], size * Dim(s.kv_heads),
                      "key and value must have kv_num_heads heads of query's size");
  }
  const Dim columns = s.cache.is_packed ? floor_div(size + Dim(1), Dim(2)) : size;
  for (const int i : {3, 4}) {
    if (!ctx.has_input(i) || !ctx.shape(i)) continue;
    const auto& past = *ctx.shape(i);
    if (past.size() != 4)
      ctx.fail("{} must have four dimensions; its shape is {}", ctx.input_name(i),
               ir::to_string(past));
    ctx.require_equal(past[0], (*q)[0], "the past must have the batch size of query");
    ctx.require_equal(past[1], Dim(s.kv_heads), "the past must have kv_num_heads heads");
    ctx.require_equal(past[3], columns, "the past must have the head size of query");
    if (s.sliding)
      ctx.require_at_least(past[2], Dim(s.window), "the past must have local_window_size rows");
  }
  if (const auto count = ctx.type(lengths).element_count())
    ctx.require_equal(*count, (*q)[0], "seqlens_k must have one number for each batch");
  const Dim length = present_length(ctx, s);
  ctx.set(0, type, {(*q)[0], (*q)[1], size * Dim(s.heads)});
  for (const int i : {1, 2}) ctx.set(i, s.cache.type, {(*q)[0], Dim(s.kv_heads), length, columns});
  const auto total = ctx.elements(total_length);
  ctx.set(
      3, type,
      {(*q)[0], Dim(s.heads), (*q)[1], total && total->size() == 1 ? (*total)[0] : ctx.unknown()});
}

struct State {
  AttentionShape attention;
  kernels::RotaryShape rotary;
  ConvertedArguments wide;  // of the first inputs
  int64_t late[6] = {};     // where inputs from `bias` on become floats, or -1
  int64_t batch = 0, length = 0, past = 0, present = 0, size = 0;
  int64_t rows = 0;  // the attention's keys: of the present, or what it held and all new ones
  bool packed = false, sliding = false;
  int64_t scale_step[2] = {0, 0};  // between the scales of two channels
  int64_t q = 0, k = 0;            // scratch: the new rows, [batch, length, heads, size]
  int64_t whole[2] = {-1, -1};     // keys and values as stored, where no output is that
  int64_t floats[2] = {-1, -1};    // those as floats
  int64_t shifted = -1;            // the bias, each batch's columns from its first key on
  // Of each batch: keys, where the new ones begin among them, positions before these; and the
  // position of every new row.
  int64_t counts = 0, starts = 0, passed = 0, positions = 0;
  int64_t sinks = -1, scratch = 0;
};

void require(bool holds, std::string_view what) {
  if (!holds) throw Error(ErrorCode::run_failed, std::string(what));
}

void bind_sizes(const BindContext& bind, State& s, const Settings& settings) {
  const auto q = bind.in_shape(query);
  s.packed = !bind.has_input(key);
  const int64_t groups = s.packed ? settings.heads + 2 * settings.kv_heads : settings.heads;
  require(q.size() == 3 && q[2] % groups == 0, "query must be [batch, length, heads * size]");
  s.batch = q[0], s.length = q[1], s.size = q[2] / groups;
  const Shape kv{s.batch, s.length, settings.kv_heads * s.size};
  for (const int i : {1, 2}) {
    if (!s.packed)
      require(std::ranges::equal(bind.in_shape(i), kv), "key and value must fit query");
  }
  s.past = bind.has_input(past_key) ? bind.in_shape(past_key)[2] : 0;
  for (const int i : {3, 4}) {
    const Shape wanted{s.batch, settings.kv_heads, s.past, settings.cache.columns(s.size)};
    if (bind.has_input(i))
      require(std::ranges::equal(bind.in_shape(i), wanted),
              "past_key and past_value must fit query");
  }
  require(bind.in_size(lengths) == s.batch, "seqlens_k must have one number for each batch");
  AttentionShape& a = s.attention;
  a = {};
  a.batch = s.batch, a.q_heads = settings.heads, a.kv_heads = settings.kv_heads;
  a.q_length = s.length, a.head_size = a.v_head_size = s.size;
  a.q = a.y = {s.length * settings.heads * s.size, s.size, settings.heads * s.size};
  a.scale = settings.scale != 0 ? settings.scale : 1 / std::sqrt(static_cast<double>(s.size));
  a.softcap = settings.softcap, a.causal = settings.causal;
  a.left = settings.window > 0 ? settings.window - 1 : -1;
}

// The longest the present may be: its own size where somebody takes it.
int64_t present_rows(const BindContext& bind, const State& s) {
  for (const int i : {1, 2}) {
    if (bind.has_output(i)) return bind.out_shape(i)[2];
  }
  return s.past + s.length;
}

void bind_bias(const BindContext& bind, State& s) {
  if (!bind.has_input(bias)) return;
  AttentionShape& a = s.attention;
  const auto shape = bind.in_shape(bias);
  require(shape.size() == 4 && (shape[0] == 1 || shape[0] == s.batch) &&
              (shape[1] == 1 || shape[1] == a.q_heads) && (shape[2] == 1 || shape[2] == s.length),
          "attention_bias must be [batch or 1, heads or 1, length or 1, keys]");
  a.bias.columns = s.sliding ? s.rows : shape[3];
  a.bias.step.row = shape[2] == 1 ? 0 : a.bias.columns;
  a.bias.step.head = shape[1] == 1 ? 0 : shape[2] * a.bias.columns;
  a.bias.step.batch = shape[0] == 1 && !s.sliding ? 0 : shape[1] * shape[2] * a.bias.columns;
}

void bind_rotary(const BindContext& bind, State& s, const Settings& settings) {
  if (!settings.rotary) return;
  const auto table = bind.in_shape(cosine);
  require(
      table.size() == 2 && std::ranges::equal(table, bind.in_shape(sine)) && 2 * table[1] <= s.size,
      "cos_cache and sin_cache must be [positions, half of the rotated size]");
  kernels::RotaryShape& r = s.rotary;
  r = {};
  r.batch = s.batch, r.length = s.length, r.head_size = r.head_stride = s.size;
  r.rotated = 2 * table[1], r.cache_rows = table[0], r.interleaved = settings.interleaved;
  if (bind.has_input(position_ids)) {
    const int64_t count = bind.in_size(position_ids);
    require(count == s.batch * s.length, "position_ids must have one number for each row of query");
  }
}

void bind_memory(BindContext& bind, State& s, const Settings& settings) {
  ScratchPlanner layout;
  AttentionShape& a = s.attention;
  const auto floats = [&](int64_t count) { return layout.take(count * 4); };
  s.q = floats(s.batch * s.length * settings.heads * s.size);
  s.k = floats(s.batch * s.length * settings.kv_heads * s.size);
  for (const int i : {cosine, sine}) s.wide.plan_in(bind, i, ElementType::float32, layout);
  for (const int i : {bias, sink, q_norm, k_norm}) {
    const bool converts = bind.has_input(i) && bind.in_type(i) != ElementType::float32;
    s.late[i - bias] = converts ? floats(bind.in_size(i)) : -1;
  }
  const int64_t rows = s.batch * settings.kv_heads * s.rows;
  for (int i = 0; i < 2; ++i) {
    const bool is_output = bind.has_output(i + 1) && !s.sliding;
    s.whole[i] = is_output ? -1 : layout.take(rows * settings.cache.bytes(s.size));
    s.floats[i] = settings.cache.type == ElementType::float32 ? -1 : floats(rows * s.size);
  }
  s.shifted = -1;
  if (s.sliding && bind.has_input(bias)) {
    const auto shape = bind.in_shape(bias);
    s.shifted = floats(s.batch * shape[1] * shape[2] * s.rows);
  }
  s.wide.plan_out(bind, 0, ElementType::float32, layout);
  s.wide.plan_out(bind, 3, ElementType::float32, layout);
  s.counts = layout.take(s.batch * 8), s.starts = layout.take(s.batch * 8);
  s.passed = layout.take(s.batch * 8), s.positions = layout.take(s.batch * s.length * 8);
  s.sinks = settings.smooth && !bind.has_input(sink) ? floats(settings.heads) : -1;
  s.scratch = layout.take(kernels::attention_scratch_bytes<float>(a, bind.threads()));
  bind.need_scratch(layout.bytes());
}

void bind_all(BindContext& bind, State& s, const Settings& settings) {
  bind_sizes(bind, s, settings);
  AttentionShape& a = s.attention;
  s.present = present_rows(bind, s);
  s.sliding = settings.sliding;
  s.rows = s.sliding ? s.past + s.length : s.present;
  if (s.sliding)
    require(s.present == s.past && s.past >= settings.window,
            "a past that keeps the last positions must have local_window_size rows or more");
  a.kv_length = s.rows;
  a.k = a.v = {settings.kv_heads * s.rows * s.size, s.rows * s.size, s.size};
  a.wants_scores = bind.has_output(3);
  a.has_lengths = true;
  a.kind = settings.qk_output == 1 ? kernels::AttentionScores::biased
                                   : kernels::AttentionScores::probabilities;
  if (a.wants_scores) {
    // A present may have more rows than scores have columns.
    a.kv_length = bind.out_shape(3)[3];
    require(a.kv_length == s.rows || (a.kv_length < s.rows && !s.sliding),
            "output_qk with a past that keeps the last positions");
  }
  for (int i = 0; i < 2 && settings.cache.is_quantized; ++i) {
    const int64_t count = bind.in_size(k_scale + i), all = settings.kv_heads * s.size;
    require(count == 1 || count == all,
            "k_scale and v_scale must have one value, or one for each channel of the heads");
    s.scale_step[i] = count == 1 ? 0 : 1;
  }
  bind_bias(bind, s);
  bind_rotary(bind, s, settings);
  bind_memory(bind, s, settings);
}

[[noreturn]] void refuse_length(const State& s, int64_t batch, int64_t total) {
  throw Error(ErrorCode::run_failed,
              fmt::format("seqlens_k says that batch {} has {} keys; there are {} past ones, {} "
                          "new ones and room for {}",
                          batch, total, s.past, s.length, s.present));
}

// Which keys each batch has, where its queries begin, and the positions of all rows.
void read_lengths(const RunContext& run, const State& s, const Settings& settings) {
  auto* counts = reinterpret_cast<int64_t*>(scratch_at(run, s.counts));
  auto* starts = reinterpret_cast<int64_t*>(scratch_at(run, s.starts));
  auto* passed = reinterpret_cast<int64_t*>(scratch_at(run, s.passed));
  auto* rows = reinterpret_cast<int64_t*>(scratch_at(run, s.positions));
  const bool prompt = run.in<int32_t>(total_length)[0] == s.length;
  for (int64_t b = 0; b < s.batch; ++b) {
    const int64_t total = int64_t{run.in<int32_t>(lengths)[b]} + 1;
    passed[b] = prompt ? 0 : total - s.length;
    if (total < 1 || passed[b] < 0 || (prompt && total > s.length)) refuse_length(s, b, total);
    starts[b] = s.sliding ? settings.resident(passed[b], s.past) : passed[b];
    counts[b] = total - passed[b] + starts[b];
    if (counts[b] > s.attention.kv_length || starts[b] + s.length > s.rows || starts[b] > s.past)
      refuse_length(s, b, total);
    for (int64_t i = 0; i < s.length; ++i) {
      const int64_t at = b * s.length + i;
      rows[at] = run.has_input(position_ids) ? run.in<int64_t>(position_ids)[at] : passed[b] + i;
    }
  }
}

// An input from `bias` on as floats; null where absent.
const float* late_floats(const RunContext& run, const State& s, int i) {
  if (!run.has_input(i)) return nullptr;
  const int64_t at = s.late[i - bias];
  if (at < 0) return run.in<float>(i);
  auto* wide = reinterpret_cast<float*>(scratch_at(run, at));
  kernels::cast(run.in_type(i), ElementType::float32, run.data(i), wide, run.in_size(i), {},
                run.pool());
  return wide;
}

// `heads` heads of the rows of input i, those from `first` on, as floats; a row of it has `all`.
void load_heads(const RunContext& run, const State& s, int i, int64_t first, int64_t heads,
                int64_t all, float* to) {
  const ElementType type = run.in_type(i);
  const auto* from = static_cast<const std::byte*>(run.data(i));
  const int64_t width = heads * s.size;
  run.pool().parallel_for(
      s.batch * s.length, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width)),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t r = begin; r < end; ++r) {
          const std::byte* row = from + byte_size(type, (r * all + first) * s.size);
          kernels::cast_row(type, ElementType::float32, row, to + r * width, width);
        }
      });
}

// Normalised and transposed where the node says so.
void finish_heads(const RunContext& run, const State& s, const Settings& settings, int norm,
                  int64_t heads, float* x) {
  if (run.has_input(norm)) {
    require(run.in_size(norm) == s.size,
            "the weights of a head's normalisation must have its size");
    kernels::rms_norm(ElementType::float32, x, late_floats(run, s, norm), x,
                      s.batch * s.length * heads, s.size, settings.norm_epsilon, run.pool());
  }
  if (!settings.rotary) return;
  kernels::RotaryShape shape = s.rotary;
  shape.heads = heads, shape.row_stride = heads * s.size;
  kernels::rotary_embedding(shape, x, s.wide.in<float>(run, cosine), s.wide.in<float>(run, sine),
                            reinterpret_cast<const int64_t*>(scratch_at(run, s.positions)), x,
                            run.pool());
}

// New rows of one batch and head: where the first is, and how far apart they are, in elements.
struct NewRows {
  const std::byte* data;
  ElementType type;
  int64_t batch, head, row;
};

// The scales of the channels of a head; nothing where the cache is not quantised.
ChannelScales channel_scales(const RunContext& run, const State& s, const Settings& settings, int i,
                             int64_t head) {
  if (!settings.cache.is_quantized) return {};
  return {run.in<float>(k_scale + i) + head * s.size * s.scale_step[i], s.scale_step[i]};
}

// Past rows, then the new ones from `starts` on, what remains 0. Of the keys (0) or values (1).
void write_rows(const RunContext& run, const State& s, const Settings& settings, int which,
                const NewRows& fresh, std::byte* to) {
  const int past = past_key + which;
  const auto* old = run.has_input(past) ? static_cast<const std::byte*>(run.data(past)) : nullptr;
  const auto* starts = reinterpret_cast<const int64_t*>(scratch_at(run, s.starts));
  const int64_t heads = s.attention.kv_heads, row = settings.cache.bytes(s.size);
  run.pool().parallel_for(s.batch * heads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / heads, h = i % heads, kept = std::min(s.past, s.rows);
      const ChannelScales scales = channel_scales(run, s, settings, which, h);
      std::byte* at = to + i * s.rows * row;
      if (old && kept > 0) std::memcpy(at, old + i * s.past * row, static_cast<size_t>(kept * row));
      std::memset(at + kept * row, 0, static_cast<size_t>((s.rows - kept) * row));
      for (int64_t r = 0; r < s.length; ++r) {
        const int64_t from = b * fresh.batch + h * fresh.head + r * fresh.row;
        store_cache_row(settings.cache, fresh.type, fresh.data + byte_size(fresh.type, from),
                        scales, s.size, at + (starts[b] + r) * row);
      }
    }
  });
}

// The last positions, as many as the present keeps; what remains 0.
void write_last(const RunContext& run, const State& s, const Settings& settings,
                const std::byte* rows, std::byte* to) {
  const auto* counts = reinterpret_cast<const int64_t*>(scratch_at(run, s.counts));
  const auto* starts = reinterpret_cast<const int64_t*>(scratch_at(run, s.starts));
  const auto* passed = reinterpret_cast<const int64_t*>(scratch_at(run, s.passed));
  const int64_t heads = s.attention.kv_heads, row = settings.cache.bytes(s.size);
  for (int64_t i = 0; i < s.batch * heads; ++i) {
    const int64_t b = i / heads;
    const int64_t kept = settings.resident(passed[b] + counts[b] - starts[b], s.present);
    std::byte* at = to + i * s.present * row;
    if (row == 0) continue;
    std::memcpy(at, rows + (i * s.rows + counts[b] - kept) * row, static_cast<size_t>(kept * row));
    std::memset(at + kept * row, 0, static_cast<size_t>((s.present - kept) * row));
  }
}

const float* key_floats(const RunContext& run, const State& s, const Settings& settings, int i,
                        const NewRows& fresh) {
  std::byte* to =
      s.whole[i] >= 0 ? scratch_at(run, s.whole[i]) : static_cast<std::byte*>(run.out_data(i + 1));
  write_rows(run, s, settings, i, fresh, to);
  if (s.sliding && run.has_output(i + 1))
    write_last(run, s, settings, to, static_cast<std::byte*>(run.out_data(i + 1)));
  if (s.floats[i] < 0) return reinterpret_cast<const float*>(to);
  auto* wide = reinterpret_cast<float*>(scratch_at(run, s.floats[i]));
  // Rows behind the last key are read by nobody.
  const auto* counts = reinterpret_cast<const int64_t*>(scratch_at(run, s.counts));
  const int64_t heads = s.attention.kv_heads, row = settings.cache.bytes(s.size);
  run.pool().parallel_for(s.batch * heads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t h = begin; h < end; ++h) {
      const int64_t first = h * s.rows, last = first + counts[h / heads];
      if (!settings.cache.is_quantized) {
        kernels::cast_row(settings.cache.type, ElementType::float32, to + first * row,
                          wide + first * s.size, (last - first) * s.size);
        continue;
      }
      const ChannelScales scales = channel_scales(run, s, settings, i, h % heads);
      for (int64_t r = first; r < last; ++r)
        load_cache_row(settings.cache, to + r * row, scales, s.size, wide + r * s.size);
    }
  });
  return wide;
}

// Columns of the bias are positions: those of each batch's keys, of which the first may lie far on.
const float* bias_of_keys(const RunContext& run, const State& s) {
  const float* given = late_floats(run, s, bias);
  if (s.shifted < 0) return given;
  auto* to = reinterpret_cast<float*>(scratch_at(run, s.shifted));
  const auto* starts = reinterpret_cast<const int64_t*>(scratch_at(run, s.starts));
  const auto* passed = reinterpret_cast<const int64_t*>(scratch_at(run, s.passed));
  const auto shape = run.in_shape(bias);
  const int64_t each = shape[1] * shape[2], columns = shape[3];
  for (int64_t b = 0; b < s.batch; ++b) {
    const int64_t first = std::min(passed[b] - starts[b], columns);
    const int64_t count = std::min(s.rows, columns - first);
    for (int64_t r = 0; r < each; ++r) {
      const float* from = given + ((shape[0] == 1 ? 0 : b * each) + r) * columns + first;
      float* row = to + (b * each + r) * s.rows;
      std::copy_n(from, count, row);
      std::fill_n(row + count, s.rows - count, -std::numeric_limits<float>::infinity());
    }
  }
  return to;
}

NewRows value_rows(const RunContext& run, const State& s, const Settings& settings) {
  const ElementType type = run.in_type(query);
  if (!s.packed) {
    const int64_t row = settings.kv_heads * s.size;
    return {static_cast<const std::byte*>(run.data(value)), type, s.length * row, s.size, row};
  }
  const int64_t row = (settings.heads + 2 * settings.kv_heads) * s.size;
  const int64_t first = (settings.heads + settings.kv_heads) * s.size;
  return {static_cast<const std::byte*>(run.data(query)) + byte_size(type, first), type,
          s.length * row, s.size, row};
}

void run_all(RunContext& run, const State& s, const Settings& settings, ThreadPool& alone) {
  read_lengths(run, s, settings);
  auto* q = reinterpret_cast<float*>(scratch_at(run, s.q));
  auto* k = reinterpret_cast<float*>(scratch_at(run, s.k));
  const int64_t all = s.packed ? settings.heads + 2 * settings.kv_heads : settings.heads;
  load_heads(run, s, query, 0, settings.heads, all, q);
  load_heads(run, s, s.packed ? query : key, s.packed ? settings.heads : 0, settings.kv_heads,
             s.packed ? all : settings.kv_heads, k);
  finish_heads(run, s, settings, q_norm, settings.heads, q);
  finish_heads(run, s, settings, k_norm, settings.kv_heads, k);
  const int64_t k_row = settings.kv_heads * s.size;
  kernels::AttentionData<float> data;
  data.q = q;
  data.k = key_floats(run, s, settings, 0,
                      {reinterpret_cast<const std::byte*>(k), ElementType::float32,
                       s.length * k_row, s.size, k_row});
  data.v = key_floats(run, s, settings, 1, value_rows(run, s, settings));
  data.bias = bias_of_keys(run, s);
  data.lengths = reinterpret_cast<const int64_t*>(scratch_at(run, s.counts));
  data.positions = reinterpret_cast<const int64_t*>(scratch_at(run, s.starts));
  data.sinks = late_floats(run, s, sink);
  if (s.sinks >= 0) {
    auto* none = reinterpret_cast<float*>(scratch_at(run, s.sinks));
    std::fill_n(none, settings.heads, 0.0f);
    data.sinks = none;
  }
  data.y = s.wide.out<float>(run, 0);
  data.scores = s.wide.out<float>(run, 3);
  kernels::attention<float>(s.attention, data, scratch_at(run, s.scratch), alone, run.pool());
  s.wide.finish<float>(run, 0);
  s.wide.finish<float>(run, 3);
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Settings settings = read_settings(ctx, [&](int i) { return ctx.in_element(i); });
  if (!computes_in_float(ctx.in_element(query)))
    ctx.fail(ErrorCode::unsupported, "no attention of {}", name_of(ctx.in_element(query)));
  return make_step<State>(
      "group_query_attention",
      [settings](BindContext& bind, State& s) { bind_all(bind, s, settings); },
      [settings, alone = std::make_shared<ThreadPool>(1)](RunContext& run, const State& s) {
        run_all(run, s, settings, *alone);
      });
}

constexpr Operator operators[] = {
    {.name = "GroupQueryAttention", .domain = "com.microsoft", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace contrib_group_query_unit

std::span<const Operator> contrib_group_query_operators() {
  return contrib_group_query_unit::operators;
}

}  // namespace sardonyx::ops
