// com.microsoft: PagedAttention. Keys and values of all sequences lie in blocks of one cache, and a
// table says which blocks are whose. A sequence's rows are gathered before its queries read them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/rotary.h"
#include "kernels/rows/normalize.h"
#include "ops/contrib/cache_rows.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace contrib_paged_attention_unit {
namespace {

using kernels::AttentionShape;

enum Input {
  query,
  key,
  value,
  key_cache,
  value_cache,
  sums,
  past_lengths,
  table,
  cosine,
  sine,
  slots,
  sink,
  q_norm,
  k_norm,
  k_scale,
  v_scale
};

// Queries of a sequence that are attended at once, where it has more than one.
constexpr int64_t chunk = 64;

struct Settings {
  int64_t heads = 0, kv_heads = 0, window = -1, rotary_offset = 0;
  int64_t v_size = 0;  // 0: that of keys
  double scale = 0, softcap = 0, norm_epsilon = 1e-6;
  bool rotary = false, interleaved = false, causal = true;
  bool latent = false;  // values are the first channels of the keys
  CacheFormat cache;
};

void check_dtype(const NodeView& node, const char* name, const CacheFormat& cache) {
  const std::string given = node.attr_string(name, "");
  if (!given.empty() && given != name_of(cache.type))
    node.fail(ErrorCode::unsupported, "{} '{}' of a cache of {}", name, given, name_of(cache.type));
}

void check_latent(const NodeView& node, const Settings& s) {
  if (!s.latent) {
    if (!node.has_input(value_cache)) node.fail("kv_cache_layout SEPARATE needs value_cache");
    if (s.v_size != 0) node.fail("v_head_size needs kv_cache_layout LATENT");
    return;
  }
  if (node.has_input(value) || node.has_input(value_cache) || node.has_output(2))
    node.fail("kv_cache_layout LATENT has no value, value_cache and value_cache_out");
  if (!node.has_input(key) || s.kv_heads != 1)
    node.fail("kv_cache_layout LATENT needs key, and one head of keys; kv_num_heads is {}",
              s.kv_heads);
  if (s.v_size < 0) node.fail("v_head_size must not be negative; got {}", s.v_size);
  if (s.v_size > 0 && s.scale == 0) node.fail("v_head_size needs the attribute scale");
}

Settings read_settings(const NodeView& node, ElementType cache, ElementType type) {
  Settings s;
  s.heads = node.attr_int("num_heads"), s.kv_heads = node.attr_int("kv_num_heads");
  constexpr int64_t most = 1 << 20;
  if (s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads != 0 || s.heads > most)
    node.fail("num_heads must be a multiple of kv_num_heads, both in [1, {}]; got {} and {}", most,
              s.heads, s.kv_heads);
  s.window = node.attr_int("local_window_size", -1);
  if (s.window < -1 || s.window == 0)
    node.fail("local_window_size must be -1 or at least 1; got {}", s.window);
  s.scale = node.attr_float("scale", 0), s.softcap = node.attr_float("softcap", 0);
  s.norm_epsilon = node.attr_float("qk_norm_epsilon", 1e-6f);
  s.rotary = node.attr_int("do_rotary", 0) != 0;
  s.interleaved = node.attr_int("rotary_interleaved", 0) != 0;
  s.rotary_offset = node.attr_int("rotary_offset", 0);
  s.causal = node.attr_int("is_causal", 1) != 0;
  const std::string layout = node.attr_string("kv_cache_layout", "SEPARATE");
  if (layout != "SEPARATE" && layout != "LATENT")
    node.fail("kv_cache_layout must be SEPARATE or LATENT; got '{}'", layout);
  s.latent = layout == "LATENT", s.v_size = node.attr_int("v_head_size", 0);
  check_latent(node, s);
  if (s.rotary && (!node.has_input(cosine) || !node.has_input(sine)))
    node.fail("do_rotary needs cos_cache and sin_cache");
  if (s.rotary_offset < 0) node.fail("rotary_offset must not be negative; got {}", s.rotary_offset);
  if (!s.latent && node.has_input(key) != node.has_input(value))
    node.fail("key and value must be given together, or both be packed into query");
  if (node.has_input(q_norm) != node.has_input(k_norm))
    node.fail("q_norm_weight and k_norm_weight must be given together");
  if (cache == ElementType::uint8) node.fail(ErrorCode::unsupported, "a cache of 4 bits");
  s.cache = cache_format(node, cache, type, k_scale);
  if (s.cache.is_quantized && s.latent)
    node.fail(ErrorCode::unsupported, "a quantised cache with kv_cache_layout LATENT");
  check_dtype(node, "k_cache_dtype", s.cache), check_dtype(node, "v_cache_dtype", s.cache);
  return s;
}

const Dims* shape_of(InferContext& ctx, int i, size_t rank) {
  if (!ctx.has_input(i) || !ctx.shape(i)) return nullptr;
  if (ctx.shape(i)->size() != rank)
    ctx.fail("{} must have {} dimensions; its shape is {}", ctx.input_name(i), rank,
             ir::to_string(*ctx.shape(i)));
  return &*ctx.shape(i);
}

// What the caches and lists must be beside queries of `size`.
void check_shapes(InferContext& ctx, const Settings& s, const Dims& q, const Dim& size) {
  for (const int i : {1, 2}) {
    const Dims* fresh = shape_of(ctx, i, 2);
    if (fresh == nullptr) continue;
    ctx.require_equal((*fresh)[0], q[0], "query, key and value must have as many tokens");
    ctx.require_equal((*fresh)[1], size * Dim(s.kv_heads),
                      "key and value must have kv_num_heads heads of query's size");
  }
  const Dims* keys = shape_of(ctx, key_cache, 4);
  for (const int i : {3, 4}) {
    const Dims* cache = shape_of(ctx, i, 4);
    if (cache == nullptr) continue;
    ctx.require_equal((*cache)[2], Dim(s.kv_heads), "the caches must have kv_num_heads heads");
    ctx.require_equal((*cache)[3], size, "the caches must have the head size of query");
    for (const size_t d : {0, 1}) {
      if (keys)
        ctx.require_equal((*cache)[d], (*keys)[d], "both caches must have one number of blocks");
    }
  }
  const Dims *pasts = shape_of(ctx, past_lengths, 1), *blocks = shape_of(ctx, table, 2);
  if (pasts && blocks)
    ctx.require_equal((*blocks)[0], (*pasts)[0], "block_table must have a row for each sequence");
  if (const Dims* ends = shape_of(ctx, sums, 1); ends && pasts)
    ctx.require_equal((*ends)[0], (*pasts)[0] + Dim(1),
                      "cumulative_sequence_length must have a number more than past_seqlens");
  if (const Dims* places = shape_of(ctx, slots, 1))
    ctx.require_equal((*places)[0], q[0], "slot_mapping must have a number for each token");
}

void infer(InferContext& ctx) {
  const ElementType type = ctx.element(query);
  const bool known = ctx.type(key_cache).is_tensor();
  const ElementType cache = known ? ctx.element(key_cache) : type;
  if (ctx.type(value_cache).is_tensor() && known && ctx.element(value_cache) != cache)
    ctx.fail("key_cache and value_cache must have one type; they are {} and {}", name_of(cache),
             name_of(ctx.element(value_cache)));
  const Settings s = read_settings(ctx, cache, type);
  ctx.set(1, ctx.type(key_cache)), ctx.set(2, ctx.type(value_cache));
  const Dims* q = shape_of(ctx, query, 2);
  if (q == nullptr) return ctx.set(0, ValueType::tensor(type));
  const int64_t groups = ctx.has_input(key) ? s.heads : s.heads + 2 * s.kv_heads;
  if (const auto hidden = (*q)[1].value(); hidden && *hidden % groups != 0)
    ctx.fail("the last dimension of {}, {}, must be divisible by its {} heads",
             ctx.input_name(query), *hidden, groups);
  const Dim size = floor_div((*q)[1], Dim(groups));
  check_shapes(ctx, s, *q, size);
  if (s.v_size > 0)
    ctx.require_at_least(size, Dim(s.v_size), "v_head_size must be at most the size of a head");
  ctx.set(0, type, {(*q)[0], (s.v_size > 0 ? Dim(s.v_size) : size) * Dim(s.heads)});
}

struct State {
  AttentionShape one, many;  // of one query, and of a chunk
  kernels::RotaryShape rotary;
  ConvertedArguments wide;
  int64_t tokens = 0, batch = 0, size = 0, v_size = 0;
  int64_t blocks = 0, block = 0, columns = 0;  // of the cache, rows of each, width of the table
  bool packed = false;
  int64_t scale_step[2] = {0, 0};
  int64_t late[3] = {-1, -1, -1};  // sinks and norms as floats
  int64_t whole[2] = {-1, -1};     // caches that no output is
  int64_t rows[2] = {-1, -1};      // a sequence's keys and values as floats
  int64_t q = 0, k = 0, y = 0, positions = 0, scratch = 0;
};

void require(bool holds, std::string_view what) {
  if (!holds) throw Error(ErrorCode::run_failed, std::string(what));
}

void bind_sizes(const BindContext& bind, State& s, const Settings& settings) {
  const auto q = bind.in_shape(query), cache = bind.in_shape(key_cache);
  s.packed = !bind.has_input(key);
  const int64_t groups = s.packed ? settings.heads + 2 * settings.kv_heads : settings.heads;
  require(q.size() == 2 && q[1] % groups == 0, "query must be [tokens, heads * size]");
  s.tokens = q[0], s.size = q[1] / groups;
  const auto floats = checked_mul(q[1], std::max(q[0], chunk) * 2);
  require(floats && *floats < int64_t{1} << 58, "query has more numbers than memory can hold");
  s.v_size = settings.v_size > 0 ? settings.v_size : s.size;
  require(s.v_size <= s.size, "v_head_size must be at most the size of a head");
  const Shape fresh{s.tokens, settings.kv_heads * s.size};
  for (const int i : {1, 2}) {
    if (bind.has_input(i))
      require(std::ranges::equal(bind.in_shape(i), fresh), "key and value must fit query");
  }
  require(cache.size() == 4 && cache[2] == settings.kv_heads && cache[3] == s.size,
          "key_cache must be [blocks, rows, heads, size]");
  require(settings.latent || std::ranges::equal(bind.in_shape(value_cache), cache),
          "value_cache must have the shape of key_cache");
  s.blocks = cache[0], s.block = cache[1];
  const auto places = bind.in_shape(table);
  s.batch = bind.in_size(past_lengths);
  require(places.size() == 2 && places[0] == s.batch,
          "block_table must have a row for each sequence");
  s.columns = places[1];
  require(bind.in_size(sums) == s.batch + 1,
          "cumulative_sequence_length must have a number more than past_seqlens");
  require(!bind.has_input(slots) || bind.in_size(slots) == s.tokens,
          "slot_mapping must have a number for each token");
  require(!bind.has_input(sink) || bind.in_size(sink) == settings.heads,
          "head_sink must have a number for each head");
  for (const int i : {q_norm, k_norm})
    require(!bind.has_input(i) || bind.in_size(i) == s.size,
            "the weights of a head's normalisation must have its size");
  for (int i = 0; i < 2 && settings.cache.is_quantized; ++i) {
    const int64_t count = bind.in_size(k_scale + i), all = settings.kv_heads * s.size;
    require(count == 1 || count == all,
            "k_scale and v_scale must have one value, or one for each channel of the heads");
    s.scale_step[i] = count == 1 ? 0 : 1;
  }
}

void bind_rotary(const BindContext& bind, State& s, const Settings& settings) {
  if (!settings.rotary) return;
  const auto tables = bind.in_shape(cosine);
  require(tables.size() == 2 && std::ranges::equal(tables, bind.in_shape(sine)) &&
              settings.rotary_offset <= s.size &&
              tables[1] <= (s.size - settings.rotary_offset) / 2,
          "cos_cache and sin_cache must be [positions, half of the rotated size]");
  kernels::RotaryShape& r = s.rotary;
  r = {};
  r.batch = 1, r.length = s.tokens, r.head_size = s.size - settings.rotary_offset;
  r.head_stride = s.size, r.rotated = 2 * tables[1], r.cache_rows = tables[0];
  r.interleaved = settings.interleaved;
}

// A sequence has as many keys as its row of the table has room for.
int64_t room(const State& s, int64_t width) {
  const auto rows = checked_mul(s.columns, s.block);
  const auto count = rows ? checked_mul(*rows, width) : std::nullopt;
  require(count && *count < int64_t{1} << 58, "block_table has more blocks than memory can hold");
  return *rows;
}

void bind_attention(State& s, const Settings& settings) {
  AttentionShape& a = s.many;
  a = {};
  const int64_t width = settings.kv_heads * s.size;
  a.has_lengths = true;
  a.batch = 1, a.q_heads = settings.heads, a.kv_heads = settings.kv_heads;
  a.q_length = chunk, a.kv_length = room(s, width);
  a.head_size = s.size, a.v_head_size = s.v_size;
  a.q = {0, s.size, settings.heads * s.size}, a.y = {0, s.v_size, settings.heads * s.v_size};
  a.k = a.v = {0, s.size, width};
  a.scale = settings.scale != 0 ? settings.scale : 1 / std::sqrt(static_cast<double>(s.size));
  a.softcap = settings.softcap, a.causal = settings.causal;
  a.left = settings.window > 0 ? settings.window - 1 : -1;
  s.one = a, s.one.q_length = 1;
}

void bind_all(BindContext& bind, State& s, const Settings& settings) {
  bind_sizes(bind, s, settings);
  bind_rotary(bind, s, settings);
  bind_attention(s, settings);
  ScratchPlanner layout;
  const auto floats = [&](int64_t count) { return layout.take(count * 4); };
  for (const int i : {cosine, sine}) s.wide.plan_in(bind, i, ElementType::float32, layout);
  for (const int i : {sink, q_norm, k_norm})
    s.late[i - sink] = bind.has_input(i) ? floats(bind.in_size(i)) : -1;
  for (int i = 0; i < (settings.latent ? 1 : 2); ++i) {
    const int cache = key_cache + i;
    s.whole[i] = bind.has_output(i + 1)
                     ? -1
                     : layout.take(byte_size(bind.in_type(cache), bind.in_size(cache)));
    s.rows[i] = floats(s.many.kv_length * settings.kv_heads * s.size);
  }
  // A chunk may reach beyond the last token.
  s.q = floats((s.tokens + chunk) * settings.heads * s.size);
  s.k = floats(s.tokens * settings.kv_heads * s.size);
  s.y = floats((s.tokens + chunk) * settings.heads * s.v_size);
  s.positions = layout.take(s.tokens * 8);
  s.scratch =
      layout.take(std::max(kernels::attention_scratch_bytes<float>(s.one, bind.threads()),
                           kernels::attention_scratch_bytes<float>(s.many, bind.threads())));
  bind.need_scratch(layout.bytes());
}

// --- lengths and places -------------------------------------------------------------------------

struct Sequence {
  int64_t first, count, past;  // its tokens, and how many positions come before
  int64_t total() const { return past + count; }
};

Sequence sequence_of(const RunContext& run, const State& s, int64_t b) {
  const int32_t* ends = run.in<int32_t>(sums);
  const Sequence made{ends[b], int64_t{ends[b + 1]} - ends[b], run.in<int32_t>(past_lengths)[b]};
  if ((b == 0 && made.first != 0) || made.count < 0 || made.first + made.count > s.tokens ||
      (b + 1 == s.batch && made.first + made.count != s.tokens))
    throw Error(ErrorCode::run_failed,
                fmt::format("cumulative_sequence_length must grow from 0 to {}; sequence {} has "
                            "tokens {} to {}",
                            s.tokens, b, made.first, made.first + made.count));
  if (made.past < 0 || made.total() > s.many.kv_length)
    throw Error(ErrorCode::run_failed,
                fmt::format("past_seqlens says that sequence {} has {} positions before its {} "
                            "tokens; its blocks have room for {}",
                            b, made.past, made.count, s.many.kv_length));
  return made;
}

// The row of the cache that holds a position.
int64_t row_of(const RunContext& run, const State& s, int64_t b, int64_t position) {
  const int64_t block = run.in<int32_t>(table)[b * s.columns + position / s.block];
  if (block < 0 || block >= s.blocks)
    throw Error(ErrorCode::run_failed,
                fmt::format("block_table says that block {} of sequence {} is {}; there are {}",
                            position / s.block, b, block, s.blocks));
  return block * s.block + position % s.block;
}

// Where a new token goes; -1: nowhere.
int64_t place_of(const RunContext& run, const State& s, int64_t b, const Sequence& sequence,
                 int64_t i) {
  if (!run.has_input(slots)) return row_of(run, s, b, sequence.past + i);
  const int64_t slot = run.in<int32_t>(slots)[sequence.first + i];
  if (slot < -1 || slot >= s.blocks * s.block)
    throw Error(ErrorCode::run_failed,
                fmt::format("slot_mapping must be in [-1, {}); token {} has {}", s.blocks * s.block,
                            sequence.first + i, slot));
  return slot;
}

// --- queries, keys and values -------------------------------------------------------------------

const float* late_floats(const RunContext& run, const State& s, int i) {
  if (!run.has_input(i)) return nullptr;
  auto* to = reinterpret_cast<float*>(scratch_at(run, s.late[i - sink]));
  kernels::cast_row(run.in_type(i), ElementType::float32, run.data(i), to, run.in_size(i));
  return to;
}

struct Rows {
  const std::byte* data;
  int64_t width, step;  // elements of a row that count, and from one to the next
};

// Of query (0), key (1) or value (2).
Rows rows_of(const RunContext& run, const State& s, const Settings& settings, int which) {
  const int64_t q = settings.heads * s.size, kv = settings.kv_heads * s.size;
  const int64_t width = which == 0 ? q : kv;
  if (!s.packed) return {static_cast<const std::byte*>(run.data(which)), width, width};
  const int64_t first = which == 0 ? 0 : q + (which - 1) * kv;
  return {static_cast<const std::byte*>(run.data(query)) + byte_size(run.in_type(query), first),
          width, q + 2 * kv};
}

// Queries or keys as floats, normalised and transposed where the node says so.
float* prepared(const RunContext& run, const State& s, const Settings& settings, int which) {
  const Rows from = rows_of(run, s, settings, which);
  auto* x = reinterpret_cast<float*>(scratch_at(run, which == 0 ? s.q : s.k));
  const ElementType type = run.in_type(query);
  for (int64_t t = 0; t < s.tokens; ++t)
    kernels::cast_row(type, ElementType::float32, from.data + byte_size(type, t * from.step),
                      x + t * from.width, from.width);
  const int64_t heads = which == 0 ? settings.heads : settings.kv_heads;
  const int norm = which == 0 ? q_norm : k_norm;
  if (run.has_input(norm))
    kernels::rms_norm(ElementType::float32, x, late_floats(run, s, norm), x, s.tokens * heads,
                      s.size, settings.norm_epsilon, run.pool());
  if (!settings.rotary) return x;
  kernels::RotaryShape shape = s.rotary;
  shape.heads = heads, shape.row_stride = heads * s.size;
  kernels::rotary_embedding(shape, x + settings.rotary_offset, s.wide.in<float>(run, cosine),
                            s.wide.in<float>(run, sine),
                            reinterpret_cast<const int64_t*>(scratch_at(run, s.positions)),
                            x + settings.rotary_offset, run.pool());
  return x;
}

ChannelScales scales_of(const RunContext& run, const State& s, const Settings& settings, int i,
                        int64_t head) {
  if (!settings.cache.is_quantized) return {};
  return {run.in<float>(k_scale + i) + head * s.size * s.scale_step[i], s.scale_step[i]};
}

// The cache of keys (0) or values (1), with the new rows.
std::byte* written_cache(const RunContext& run, const State& s, const Settings& settings, int i,
                         ElementType type, const Rows& fresh) {
  std::byte* cache =
      s.whole[i] >= 0 ? scratch_at(run, s.whole[i]) : static_cast<std::byte*>(run.out_data(i + 1));
  const int from = key_cache + i;
  if (cache != run.data(from) && run.in_size(from) > 0)
    std::memcpy(cache, run.data(from),
                static_cast<size_t>(byte_size(run.in_type(from), run.in_size(from))));
  const int64_t row = settings.cache.bytes(s.size);
  for (int64_t b = 0; b < s.batch; ++b) {
    const Sequence sequence = sequence_of(run, s, b);
    for (int64_t t = 0; t < sequence.count; ++t) {
      const int64_t place = place_of(run, s, b, sequence, t);
      if (place < 0) continue;
      const int64_t at = (sequence.first + t) * fresh.step;
      for (int64_t h = 0; h < settings.kv_heads; ++h)
        store_cache_row(settings.cache, type, fresh.data + byte_size(type, at + h * s.size),
                        scales_of(run, s, settings, i, h), s.size,
                        cache + (place * settings.kv_heads + h) * row);
    }
  }
  return cache;
}

const float* gathered(const RunContext& run, const State& s, const Settings& settings, int i,
                      const std::byte* cache, int64_t b, int64_t total) {
  auto* to = reinterpret_cast<float*>(scratch_at(run, s.rows[i]));
  const int64_t row = settings.cache.bytes(s.size), heads = settings.kv_heads;
  run.pool().parallel_for(total, 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t place = row_of(run, s, b, p);
      for (int64_t h = 0; h < heads; ++h)
        load_cache_row(settings.cache, cache + (place * heads + h) * row,
                       scales_of(run, s, settings, i, h), s.size, to + (p * heads + h) * s.size);
    }
  });
  return to;
}

// --- the run ------------------------------------------------------------------------------------

void attend_sequence(const RunContext& run, const State& s, const Settings& settings,
                     const Sequence& sequence, kernels::AttentionData<float> data,
                     ThreadPool& alone) {
  const int64_t total = sequence.total();
  data.lengths = &total;
  const float* q = data.q;
  float* y = data.y;
  const int64_t step = sequence.count == 1 ? 1 : chunk;
  for (int64_t t = 0; t < sequence.count; t += step) {
    const int64_t position = sequence.past + t;
    data.positions = &position;
    data.q = q + (sequence.first + t) * settings.heads * s.size;
    data.y = y + (sequence.first + t) * settings.heads * s.v_size;
    kernels::attention<float>(step == 1 ? s.one : s.many, data, scratch_at(run, s.scratch), alone,
                              run.pool());
  }
}

void run_all(RunContext& run, const State& s, const Settings& settings, ThreadPool& alone) {
  auto* positions = reinterpret_cast<int64_t*>(scratch_at(run, s.positions));
  require(s.batch > 0 || s.tokens == 0, "there are tokens of no sequence");
  for (int64_t b = 0; b < s.batch; ++b) {
    const Sequence sequence = sequence_of(run, s, b);
    for (int64_t t = 0; t < sequence.count; ++t) positions[sequence.first + t] = sequence.past + t;
  }
  kernels::AttentionData<float> data;
  float* q = prepared(run, s, settings, 0);
  // What a chunk reads beyond the last token is read by nobody else.
  std::fill_n(q + s.tokens * settings.heads * s.size, chunk * settings.heads * s.size, 0.0f);
  data.q = q;
  const float* k = prepared(run, s, settings, 1);
  const int64_t width = settings.kv_heads * s.size;
  const std::byte* caches[2] = {
      written_cache(run, s, settings, 0, ElementType::float32,
                    {reinterpret_cast<const std::byte*>(k), width, width}),
      settings.latent
          ? nullptr
          : written_cache(run, s, settings, 1, run.in_type(query), rows_of(run, s, settings, 2))};
  data.sinks = late_floats(run, s, sink);
  data.y = reinterpret_cast<float*>(scratch_at(run, s.y));
  for (int64_t b = 0; b < s.batch; ++b) {
    const Sequence sequence = sequence_of(run, s, b);
    if (sequence.count == 0) continue;
    const auto rows = [&](int i) {
      return gathered(run, s, settings, i, caches[i], b, sequence.total());
    };
    data.k = rows(0);
    data.v = settings.latent ? data.k : rows(1);
    attend_sequence(run, s, settings, sequence, data, alone);
  }
  kernels::cast(ElementType::float32, run.out_type(0), data.y, run.out_data(0), run.out_size(0), {},
                run.pool());
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(query);
  const Settings settings = read_settings(ctx, ctx.in_element(key_cache), type);
  if (!computes_in_float(type))
    ctx.fail(ErrorCode::unsupported, "no attention of {}", name_of(type));
  if (!ctx.has_output(0))
    ctx.fail(ErrorCode::unsupported, "a PagedAttention whose output is not used");
  auto step = make_step<State>(
      "paged_attention", [settings](BindContext& bind, State& s) { bind_all(bind, s, settings); },
      [settings, alone = std::make_shared<ThreadPool>(1)](RunContext& run, const State& s) {
        run_all(run, s, settings, *alone);
      });
  step->traits().in_place = {{1, key_cache}, {2, value_cache}};
  return step;
}

constexpr Operator operators[] = {
    {.name = "PagedAttention", .domain = "com.microsoft", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace contrib_paged_attention_unit

std::span<const Operator> contrib_paged_attention_operators() {
  return contrib_paged_attention_unit::operators;
}

}  // namespace sardonyx::ops
