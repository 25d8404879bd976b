// Attention, and its internal form (domain "sardonyx") for attention that a model spells out:
// attribute transposed says of Q, K, V and Y which are batch x length x heads x size, and a query
// that may attend to nothing gives NaN, as Softmax does.
#include "kernels/attention/attention.h"

#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "ops/families/product.h"
#include "ops/families/wide.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

using kernels::AttentionData;
using kernels::AttentionScores;
using kernels::AttentionShape;
using kernels::HeadStrides;
using kernels::MaskShape;

// Of a spelled-out attention: what is added after the boolean mask of input 3.
constexpr int second_mask = 7;

// Which of Q, K, V and Y have their heads after their length.
struct Transposed {
  explicit Transposed(const NodeView& node) {
    const auto given = node.attr_ints("transposed");
    for (size_t i = 0; given && i < 4 && i < given->size(); ++i) flags[i] = (*given)[i] != 0;
  }
  bool flags[4] = {};
};

// The sizes of Q, K or V whatever its rank: [batch, heads, length, size].
struct Heads {
  Dim batch, heads, length, size;
};

Heads heads_of(InferContext& ctx, int i, std::string_view attribute) {
  const Dims& shape = *ctx.shape(i);
  if (shape.size() == 4 && Transposed(ctx).flags[i])
    return {shape[0], shape[2], shape[1], shape[3]};
  if (shape.size() == 4) return {shape[0], shape[1], shape[2], shape[3]};
  const int64_t heads = ctx.attr_int(attribute, 0);
  if (heads < 1)
    ctx.fail("attribute '{}' must be at least 1 where Q, K and V have three dimensions", attribute);
  if (const auto hidden = shape[2].value(); hidden && *hidden % heads != 0) {
    ctx.fail("the last dimension of {}, {}, must be divisible by {} {}", ctx.input_name(i), *hidden,
             attribute, heads);
  }
  return {shape[0], Dim(heads), shape[1], floor_div(shape[2], Dim(heads))};
}

void check_mask(InferContext& ctx, const Dims& output) {
  if (!ctx.has_input(3) || !ctx.shape(3)) return;
  const Dims& mask = *ctx.shape(3);
  if (mask.empty() || mask.size() > 4)
    ctx.fail("attn_mask must have one to four dimensions; its shape is {}", ir::to_string(mask));
  for (size_t back = 2; back <= mask.size(); ++back) {
    const Dim& dim = mask[mask.size() - back];
    if (!(dim == 1) && dim.is_constant())
      ctx.require_equal(dim, output[4 - back],
                        "attn_mask must broadcast to batch, heads and queries");
  }
  if (mask.size() > 1)
    ctx.broadcast(std::span(output).first(3), std::span(mask).first(mask.size() - 1));
  const bool is_a_column = ctx.node().domain == "sardonyx" && mask.back() == 1;
  if (is_a_column) return;
  ctx.require_at_least(output[3], mask.back(),
                       "attn_mask must not have more columns than there are keys");
}

void check_windows(const NodeView& node) {
  for (const char* name : {"left_window_size", "right_window_size"}) {
    if (const int64_t size = node.attr_int(name, -1); size < -1)
      node.fail("{} must be at least -1; got {}", name, size);
  }
  const int64_t mode = node.attr_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) node.fail("qk_matmul_output_mode must be in [0, 3]; got {}", mode);
}

Dims output_of(InferContext& ctx, const Heads& q, const Heads& v) {
  if (*ctx.rank(0) == 3) return {q.batch, q.length, q.heads * v.size};
  if (Transposed(ctx).flags[3]) return {q.batch, q.length, q.heads, v.size};
  return {q.batch, q.heads, q.length, v.size};
}

// Where one of Q, K and V has an unknown rank: they have one, and all else has four dimensions.
void set_ranks(InferContext& ctx) {
  const int from[] = {0, 1, 2, 0};
  for (int i = 1; i < 4; ++i) ctx.set(i, ctx.element(from[i]), ctx.unknown_shape(4));
  ctx.set(0, ValueType::tensor(ctx.element(0)));
  const auto rank = ctx.rank(0) ? ctx.rank(0) : ctx.rank(1) ? ctx.rank(1) : ctx.rank(2);
  if (!rank || (*rank != 3 && *rank != 4)) return;
  const bool tells_all = ctx.rank(0) && ctx.rank(2) == ctx.rank(0);
  ctx.set(0, ctx.element(0),
          tells_all
              ? output_of(ctx, heads_of(ctx, 0, "q_num_heads"), heads_of(ctx, 2, "kv_num_heads"))
              : ctx.unknown_shape(*rank));
}

void infer(InferContext& ctx) {
  check_windows(ctx);
  if (ctx.has_input(4) != ctx.has_input(5))
    ctx.fail("past_key and past_value must be given together");
  if (ctx.has_input(4) && ctx.has_input(6))
    ctx.fail("nonpad_kv_seqlen cannot be combined with past_key");
  if (!ctx.shape(0) || !ctx.shape(1) || !ctx.shape(2)) return set_ranks(ctx);
  for (int i = 0; i < 3; ++i) {
    const int64_t rank = *ctx.rank(i);
    if ((rank != 3 && rank != 4) || rank != *ctx.rank(0))
      ctx.fail("Q, K and V must all have three or all have four dimensions; {} has {}",
               ctx.input_name(i), rank);
  }
  const Heads q = heads_of(ctx, 0, "q_num_heads"), k = heads_of(ctx, 1, "kv_num_heads"),
              v = heads_of(ctx, 2, "kv_num_heads");
  ctx.require_equal(q.batch, k.batch, "Q and K must have the same batch size");
  ctx.require_equal(q.batch, v.batch, "Q and V must have the same batch size");
  ctx.require_equal(k.heads, v.heads, "K and V must have the same number of heads");
  ctx.require_equal(k.length, v.length, "K and V must have the same length");
  ctx.require_equal(q.size, k.size, "Q and K must have the same head size");
  if (q.heads.is_constant() && k.heads.is_constant() &&
      (k.heads == 0 || *q.heads.value() % *k.heads.value() != 0)) {
    ctx.fail("the {} heads of Q must be a multiple of the {} heads of K", *q.heads.value(),
             *k.heads.value());
  }
  Dim total = k.length;
  for (int i = 4; i < 6; ++i) {
    if (!ctx.has_input(i)) continue;
    if (!ctx.shape(i)) {
      if (i == 4) total = ctx.unknown();
      continue;
    }
    const Dims& past = *ctx.shape(i);
    if (past.size() != 4)
      ctx.fail("{} must have four dimensions; its shape is {}", ctx.input_name(i),
               ir::to_string(past));
    ctx.require_equal(past[0], q.batch, "the past must have the batch size of Q");
    ctx.require_equal(past[1], k.heads, "the past must have as many heads as K");
    ctx.require_equal(past[3], i == 4 ? k.size : v.size,
                      "the past must have the head size of K and V");
    if (i == 4) total = past[2] + k.length;
    if (i == 5)
      ctx.require_equal(past[2] + k.length, total,
                        "past_key and past_value must have the same length");
  }
  if (const auto count = ctx.type(6).element_count())
    ctx.require_equal(*count, q.batch, "nonpad_kv_seqlen must have one number for each batch");
  const Dims scores{q.batch, q.heads, q.length, total};
  check_mask(ctx, scores);
  ctx.set(0, ctx.element(0), output_of(ctx, q, v));
  ctx.set(1, ctx.element(1), {q.batch, k.heads, total, k.size});
  ctx.set(2, ctx.element(2), {q.batch, k.heads, total, v.size});
  ctx.set(3, ctx.element(0), scores);
}

// Past and new rows of K or V brought together as [batch, heads, total, size]. `element` counts
// bytes.
struct Cache {
  int64_t batch = 0, heads = 0, past = 0, length = 0, size = 0, element = 0;
  HeadStrides from;     // of the new rows
  bool needed = false;  // the output wants it, or there is a past to join
  int64_t scratch = -1;
};

struct State {
  AttentionShape shape;
  WideArguments wide;
  Cache cache[2];
  int64_t wide_cache[2] = {-1, -1};  // converted to the compute type
  int64_t mask = -1;
  int64_t scratch = 0;
};

HeadStrides strides(std::span<const int64_t> shape, int64_t heads, bool transposed) {
  if (transposed) return {shape[1] * shape[2] * shape[3], shape[3], shape[2] * shape[3]};
  if (shape.size() == 4) return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3]};
  return {shape[1] * shape[2], heads > 0 ? shape[2] / heads : 0, shape[2]};
}

void write_cache(const RunContext& run, const Cache& c, int input, std::byte* to) {
  const auto* fresh = static_cast<const std::byte*>(run.data(input));
  const auto* past =
      run.has_input(input + 3) ? static_cast<const std::byte*>(run.data(input + 3)) : nullptr;
  const int64_t row = c.size * c.element, past_bytes = c.past * row;
  run.pool().parallel_for(c.batch * c.heads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      std::byte* at = to + i * (c.past + c.length) * row;
      if (past_bytes > 0) std::memcpy(at, past + i * past_bytes, static_cast<size_t>(past_bytes));
      const std::byte* source =
          fresh + (i / c.heads * c.from.batch + i % c.heads * c.from.head) * c.element;
      for (int64_t r = 0; r < c.length && row > 0; ++r) {
        std::memcpy(at + past_bytes + r * row, source + r * c.from.row * c.element,
                    static_cast<size_t>(row));
      }
    }
  });
}

struct Settings {
  int64_t q_heads = 0, kv_heads = 0;
  double scale = 0;  // 0: from the head size
  bool has_scale = false;
  double softcap = 0;
  double masked = -std::numeric_limits<double>::infinity();
  bool causal = false;
  int64_t left = -1, right = -1, mode = 0;
  Transposed transposed;
  bool spelled_out = false;  // and means what the nodes that it replaced did
};

void bind_sizes(const BindContext& bind, State& s, const Settings& settings) {
  const auto q = bind.in_shape(0), k = bind.in_shape(1), v = bind.in_shape(2);
  const bool four = q.size() == 4;
  AttentionShape& a = s.shape;
  a = {};
  a.batch = q[0];
  const bool* turned = settings.transposed.flags;
  a.q_heads = four ? q[turned[0] ? 2 : 1] : settings.q_heads,
  a.kv_heads = four ? k[turned[1] ? 2 : 1] : settings.kv_heads;
  a.q_length = four && !turned[0] ? q[2] : q[1];
  a.head_size = four ? q[3] : q[2] / a.q_heads, a.v_head_size = four ? v[3] : v[2] / a.kv_heads;
  a.past = bind.has_input(4) ? bind.in_shape(4)[2] : 0;
  a.kv_length = a.past + (four && !turned[1] ? k[2] : k[1]);
  if (a.kv_heads < 1 || a.q_heads % a.kv_heads != 0) {
    throw Error(ErrorCode::run_failed,
                fmt::format("the {} heads of Q must be a multiple of the {} heads of K", a.q_heads,
                            a.kv_heads));
  }
  a.q = strides(q, a.q_heads, turned[0]), a.k = strides(k, a.kv_heads, turned[1]),
  a.v = strides(v, a.kv_heads, turned[2]);
  a.y = four && !turned[3] ? HeadStrides{a.q_heads * a.q_length * a.v_head_size,
                                         a.q_length * a.v_head_size, a.v_head_size}
                           : HeadStrides{a.q_length * a.q_heads * a.v_head_size, a.v_head_size,
                                         a.q_heads * a.v_head_size};
  a.scale = settings.has_scale ? settings.scale : 1 / std::sqrt(static_cast<double>(a.head_size));
  a.softcap = settings.softcap, a.masked = settings.masked, a.causal = settings.causal,
  a.left = settings.left, a.right = settings.right;
  a.kind = static_cast<AttentionScores>(settings.mode);
  a.wants_scores = bind.has_output(3);
  a.empty_is_nan = settings.spelled_out;
}

// broadcasts: a mask of one column stands for all keys; to the standard it has but the first one.
void bind_mask(const BindContext& bind, int input, bool broadcasts, AttentionShape& a) {
  if (!bind.has_input(input)) return;
  const auto mask = bind.in_shape(input);
  MaskShape& made = bind.in_type(input) == ElementType::boolean ? a.allowed : a.bias;
  int64_t step = mask.back();
  int64_t* const to[] = {&made.step.row, &made.step.head, &made.step.batch};
  for (size_t back = 2; back <= mask.size(); ++back) {
    const int64_t dim = mask[mask.size() - back];
    *to[back - 2] = dim == 1 ? 0 : step;
    step *= dim;
  }
  made.is_a_column = broadcasts && mask.back() == 1;
  made.columns = made.is_a_column ? a.kv_length : mask.back();
}

// Joined K and V become the operands.
void bind_cache(const BindContext& bind, State& s, ElementType compute, ScratchLayout& layout) {
  AttentionShape& a = s.shape;
  for (int i = 0; i < 2; ++i) {
    Cache& c = s.cache[i];
    HeadStrides& operand = i == 0 ? a.k : a.v;
    const int64_t size = i == 0 ? a.head_size : a.v_head_size;
    const ElementType type = bind.in_type(i + 1);
    c = {a.batch, a.kv_heads, a.past, a.kv_length - a.past, size, byte_size(type, 1),
         operand, false,      -1};
    c.needed = bind.has_output(i + 1) || bind.has_input(i + 4);
    s.wide_cache[i] = -1;
    if (!c.needed) {
      s.wide.plan_in(bind, i + 1, compute, layout);
      continue;
    }
    const int64_t count = a.batch * a.kv_heads * a.kv_length * size;
    if (!bind.has_output(i + 1)) c.scratch = layout.take(byte_size(type, count));
    if (type != compute) s.wide_cache[i] = layout.take(byte_size(compute, count));
    operand = {a.kv_heads * a.kv_length * size, a.kv_length * size, size};
  }
}

template <class T>
const T* joined(const RunContext& run, const State& s, int i) {
  const Cache& c = s.cache[i];
  if (!c.needed) return s.wide.in<T>(run, i + 1);
  std::byte* to =
      c.scratch >= 0 ? scratch_at(run, c.scratch) : static_cast<std::byte*>(run.out_data(i + 1));
  write_cache(run, c, i + 1, to);
  if (s.wide_cache[i] < 0) return reinterpret_cast<const T*>(to);
  T* wide = reinterpret_cast<T*>(scratch_at(run, s.wide_cache[i]));
  kernels::cast(run.in_type(i + 1), element_type_of<T>::value, to, wide,
                c.batch * c.heads * (c.past + c.length) * c.size, {}, run.pool());
  return wide;
}

template <class T>
void run_attention(RunContext& run, const State& s, ThreadPool& alone) {
  AttentionData<T> data;
  data.q = s.wide.in<T>(run, 0);
  data.k = joined<T>(run, s, 0);
  data.v = joined<T>(run, s, 1);
  if (run.has_input(3)) {
    if (run.in_type(3) == ElementType::boolean)
      data.allowed = run.in<bool>(3);
    else
      data.bias = s.wide.in<T>(run, 3);
  }
  if (run.has_input(second_mask)) data.bias = run.in<T>(second_mask);
  if (run.has_input(6)) data.lengths = run.in<int64_t>(6);
  data.y = s.wide.out<T>(run, 0);
  data.scores = s.wide.out<T>(run, 3);
  kernels::attention<T>(s.shape, data, scratch_at(run, s.scratch), alone, run.pool());
  s.wide.finish<T>(run, 0);
  s.wide.finish<T>(run, 3);
}

template <class T>
std::unique_ptr<Step> make_attention(const Settings& settings) {
  constexpr ElementType compute = element_type_of<T>::value;
  return make_step<State>(
      "attention.tiles",
      [settings](BindContext& bind, State& s) {
        ScratchLayout layout;
        bind_sizes(bind, s, settings);
        bind_mask(bind, 3, settings.spelled_out, s.shape);
        if (settings.spelled_out) bind_mask(bind, second_mask, true, s.shape);
        bind_cache(bind, s, compute, layout);
        s.wide.plan_in(bind, 0, compute, layout);
        if (bind.has_input(3) && bind.in_type(3) != ElementType::boolean)
          s.wide.plan_in(bind, 3, compute, layout);
        s.wide.plan_out(bind, 0, compute, layout);
        s.wide.plan_out(bind, 3, compute, layout);
        s.scratch = layout.take(kernels::attention_scratch_bytes<T>(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [alone = std::make_shared<ThreadPool>(1)](RunContext& run, const State& s) {
        run_attention<T>(run, s, *alone);
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  check_windows(ctx);
  const ElementType type = ctx.in_element(0);
  if (!computes_in_float(type) && type != ElementType::float64)
    ctx.fail(ErrorCode::unsupported, "no attention of {}", name_of(type));
  if (!ctx.has_output(0))
    ctx.fail(ErrorCode::unsupported, "an Attention whose output Y is not used");
  Settings settings{.transposed = Transposed(ctx), .spelled_out = ctx.node().domain == "sardonyx"};
  settings.q_heads = ctx.attr_int("q_num_heads", 0),
  settings.kv_heads = ctx.attr_int("kv_num_heads", 0);
  settings.has_scale = ctx.has_attribute("scale");
  settings.scale = settings.has_scale ? ctx.attr_float("scale") : 0;
  settings.softcap = ctx.attr_float("softcap", 0);
  if (ctx.has_attribute("masked")) settings.masked = ctx.attr_float("masked");
  settings.causal = ctx.attr_int("is_causal", 0) != 0;
  settings.left = ctx.attr_int("left_window_size", -1),
  settings.right = ctx.attr_int("right_window_size", -1);
  settings.mode = ctx.attr_int("qk_matmul_output_mode", 0);
  return type == ElementType::float64 ? make_attention<double>(settings)
                                      : make_attention<float>(settings);
}

constexpr Operator operators[] = {
    {.name = "Attention", .infer = infer, .prepare = prepare},
    {.name = "Attention", .domain = "sardonyx", .infer = infer, .prepare = prepare},
};

}  // namespace

std::span<const Operator> attention_operators() { return operators; }

}  // namespace sardonyx::ops
