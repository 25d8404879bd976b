// Attention, and its internal form for attention that a model decomposes.
#include "kernels/attention/attention.h"

#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "ops/internal/attention.h"
#include "ops/internal/checked.h"
#include "ops/internal/node.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"
#include "ops/shared/shared_sizes.h"

namespace sardonyx::ops {
namespace attention_unit {
namespace {

using internal::Attention;
using kernels::AttentionData;
using kernels::AttentionScores;
using kernels::AttentionShape;
using kernels::HeadStrides;
using kernels::MaskShape;

constexpr int mask_inputs[] = {Attention::mask, Attention::second_mask};
constexpr size_t output_y = 3;  // behind Q, K and V among what may be transposed

bool is_decomposed(const NodeView& node) { return ir::is_internal(node.node()); }

// What both forms have; the standard's transposes nothing.
Attention form_of(const NodeView& node) {
  if (is_decomposed(node)) return internal::from_node<Attention>(node.node());
  Attention form;
  if (node.has_attribute("scale")) form.scale = node.attr_float("scale");
  form.q_num_heads = node.attr_int("q_num_heads", 0);
  form.kv_num_heads = node.attr_int("kv_num_heads", 0);
  return form;
}

// Of mask 0 or 1.
int64_t inner_batches(const Attention& form, size_t mask) {
  return mask < form.inner.size() ? form.inner[mask] : 1;
}

// The sizes of Q, K or V whatever its rank: [batch, heads, length, size]; those that are known.
struct Heads {
  std::optional<Dim> batch, heads, length, size;
};

// `rank`: that of Q, K and V, where one of them tells it.
Heads heads_of(InferContext& ctx, const Attention& form, int i, std::optional<int64_t> rank) {
  const bool transposed = form.transposed[static_cast<size_t>(i)];
  const std::string_view attribute = i == Attention::q ? "q_num_heads" : "kv_num_heads";
  int64_t heads = 0;
  if (rank == 3 && !transposed) {
    heads = i == Attention::q ? form.q_num_heads : form.kv_num_heads;
    if (heads < 1) {
      ctx.fail("attribute '{}' must be at least 1 where Q, K and V have three dimensions",
               attribute);
    }
  }
  if (!ctx.shape(i)) return {{}, heads ? std::optional(Dim(heads)) : std::nullopt, {}, {}};
  const Dims& shape = *ctx.shape(i);
  if (transposed) {
    return rank == 4 ? Heads{shape[0], shape[2], shape[1], shape[3]}
                     : Heads{shape[1], Dim(1), shape[0], shape[2]};
  }
  if (rank == 4) return {shape[0], shape[1], shape[2], shape[3]};
  if (const auto hidden = shape[2].value(); hidden && *hidden % heads != 0) {
    ctx.fail("the last dimension of {}, {}, must be divisible by {} {}", ctx.input_name(i), *hidden,
             attribute, heads);
  }
  const Dim size = floor_div(shape[2], Dim(heads));
  ctx.require_equal(shape[2], size * Dim(heads),
                    fmt::format("the last dimension of {} must be divisible by {} {}",
                                ctx.input_name(i), attribute, heads));
  return {shape[0], Dim(heads), shape[1], size};
}

void check_mask(InferContext& ctx, const Dims& output) {
  if (!ctx.has_input(Attention::mask) || !ctx.shape(Attention::mask)) return;
  const Dims& mask = *ctx.shape(Attention::mask);
  if (mask.empty() || mask.size() > 4)
    ctx.fail("attn_mask must have one to four dimensions; its shape is {}", ir::to_string(mask));
  for (size_t back = 2; back <= mask.size(); ++back) {
    const Dim& dim = mask[mask.size() - back];
    constexpr std::string_view rule = "attn_mask must broadcast to batch, heads and queries";
    if (dim == 1) continue;
    if (dim.is_constant())
      ctx.require_equal(dim, output[4 - back], rule);
    else  // and below, that one of them is 1 where they differ
      ctx.require_at_least(output[4 - back], dim, rule);
  }
  if (mask.size() > 1)
    ctx.broadcast(std::span(output).first(3), std::span(mask).first(mask.size() - 1));
  ctx.require_at_least(output[3], mask.back(),
                       "attn_mask must not have more columns than there are keys");
}

// Of a decomposed attention: the scores as one of its masks makes them, which repeats batches and
// queries of which there is one.
Dims masked_scores(InferContext& ctx, const Attention& form, size_t mask, int64_t rank_of_q,
                   const Dims& scores) {
  const int input = mask_inputs[mask];
  if (!ctx.has_input(input) || !ctx.shape(input)) return scores;
  const int64_t inner = inner_batches(form, mask);
  const bool has_heads = rank_of_q == 4;
  Dims from{scores[0]};
  if (inner != 1) from = {floor_div(scores[0], Dim(inner)), Dim(inner)};
  if (has_heads) from.push_back(scores[1]);
  from.push_back(scores[2]), from.push_back(scores[3]);
  const Dims to = ctx.broadcast(from, *ctx.shape(input));
  const size_t rank = to.size();
  if (rank != from.size()) ctx.fail("a mask must not have more dimensions than the scores");
  const Dims made{inner == 1 ? to[0] : to[0] * to[1], has_heads ? to[rank - 3] : scores[1],
                  to[rank - 2], to[rank - 1]};
  for (const size_t i : {0, 1, 2, 3}) {
    if (i % 2 == 0 && inner == 1) continue;
    ctx.require_equal(made[i], scores[i], "a mask must broadcast to the scores");
  }
  return made;
}

void check_windows(const NodeView& node) {
  for (const char* name : {"left_window_size", "right_window_size"}) {
    if (const int64_t size = node.attr_int(name, -1); size < -1)
      node.fail("{} must be at least -1; got {}", name, size);
  }
  const int64_t mode = node.attr_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) node.fail("qk_matmul_output_mode must be in [0, 3]; got {}", mode);
}

// Y, where Q, K and V have this rank.
Dims output_of(InferContext& ctx, const Attention& form, int64_t rank, const Heads& q,
               const std::optional<Dim>& v_size) {
  const bool transposed = form.transposed[output_y];
  const auto sized = [&](const std::optional<Dim>& size) { return size_or_unknown(ctx, size); };
  if (rank == 3 && transposed) return {sized(q.length), sized(q.batch), sized(v_size)};
  if (rank == 3) {
    const auto hidden =
        q.heads && v_size ? std::optional(*q.heads * *v_size) : std::optional<Dim>();
    return {sized(q.batch), sized(q.length), sized(hidden)};
  }
  if (transposed) return {sized(q.batch), sized(q.length), sized(q.heads), sized(v_size)};
  return {sized(q.batch), sized(q.heads), sized(q.length), sized(v_size)};
}

// The rank of Q, K and V, where it is known of one of them.
std::optional<int64_t> common_rank(InferContext& ctx) {
  std::optional<int64_t> common;
  for (int i = 0; i < 3; ++i) {
    const auto rank = ctx.rank(i);
    if (!rank) continue;
    if ((*rank != 3 && *rank != 4) || (common && *rank != *common))
      ctx.fail("Q, K and V must all have three or all have four dimensions; {} has {}",
               ctx.input_name(i), *rank);
    common = rank;
  }
  return common;
}

// Of a decomposed attention: what passes see to.
void check_form(InferContext& ctx, const Attention& form, std::optional<int64_t> rank) {
  for (const int i : {Attention::past_key, Attention::past_value, Attention::lengths}) {
    if (ctx.has_input(i)) ctx.fail(ErrorCode::internal, "must not have {}", ctx.input_name(i));
  }
  for (const size_t mask : {0, 1}) {
    if (const int64_t inner = inner_batches(form, mask); inner < 1)
      ctx.fail(ErrorCode::internal, "masks must be for at least 1 batch; got {}", inner);
    internal::require_rank(ctx, mask_inputs[mask], 1);
  }
  if (ctx.has_input(Attention::second_mask) && ctx.element(Attention::q) == ElementType::float64)
    ctx.fail(ErrorCode::internal, "a second mask is not added in double");
  // Where the length comes first, there is one head.
  const auto& transposed = form.transposed;
  if (rank == 3 &&
      (((transposed[Attention::q] || transposed[output_y]) && form.q_num_heads != 1) ||
       ((transposed[Attention::k] || transposed[Attention::v]) && form.kv_num_heads != 1)))
    ctx.fail(ErrorCode::internal,
             "there must be one head, but q_num_heads is {} and kv_num_heads {}", form.q_num_heads,
             form.kv_num_heads);
}

void infer(InferContext& ctx) {
  constexpr auto past_key = Attention::past_key, past_value = Attention::past_value,
                 lengths = Attention::lengths;
  const Attention form = form_of(ctx);
  if (!is_decomposed(ctx)) check_windows(ctx);
  if (ctx.has_input(past_key) != ctx.has_input(past_value))
    ctx.fail("past_key and past_value must be given together");
  if (ctx.has_input(past_key) && ctx.has_input(lengths))
    ctx.fail("nonpad_kv_seqlen cannot be combined with past_key");
  for (const int i : {past_key, past_value}) {
    if (const auto& past = ctx.shape(i); past && past->size() != 4)
      ctx.fail("{} must have four dimensions; its shape is {}", ctx.input_name(i),
               ir::to_string(*past));
  }
  const auto rank = common_rank(ctx);
  if (is_decomposed(ctx)) check_form(ctx, form, rank);
  Heads q = heads_of(ctx, form, Attention::q, rank);
  const Heads k = heads_of(ctx, form, Attention::k, rank),
              v = heads_of(ctx, form, Attention::v, rank);
  const auto batch = first_size(
      {q.batch, k.batch, v.batch, size_of(ctx, past_key, 0), size_of(ctx, past_value, 0)});
  const auto kv_heads =
      first_size({k.heads, v.heads, size_of(ctx, past_key, 1), size_of(ctx, past_value, 1)});
  const auto length = first_size({k.length, v.length});
  const auto k_size = first_size({q.size, k.size, size_of(ctx, past_key, 3)});
  const auto v_size = first_size({v.size, size_of(ctx, past_value, 3)});
  const auto past = first_size({size_of(ctx, past_key, 2), size_of(ctx, past_value, 2)});
  require_shared(ctx, k.batch, batch, "Q and K must have the same batch size");
  require_shared(ctx, v.batch, batch, "Q and V must have the same batch size");
  require_shared(ctx, v.heads, kv_heads, "K and V must have the same number of heads");
  require_shared(ctx, v.length, length, "K and V must have the same length");
  require_shared(ctx, k.size, k_size, "Q and K must have the same head size");
  if (q.heads && kv_heads && q.heads->is_constant() && kv_heads->is_constant() &&
      (*kv_heads == 0 || *q.heads->value() % *kv_heads->value() != 0)) {
    ctx.fail("the {} heads of Q must be a multiple of the {} heads of K", *q.heads->value(),
             *kv_heads->value());
  }
  for (const int i : {past_key, past_value}) {
    require_shared(ctx, size_of(ctx, i, 0), batch, "the past must have the batch size of Q");
    require_shared(ctx, size_of(ctx, i, 1), kv_heads, "the past must have as many heads as K");
    require_shared(ctx, size_of(ctx, i, 2), past,
                   "past_key and past_value must have the same length");
    require_shared(ctx, size_of(ctx, i, 3), i == past_key ? k_size : v_size,
                   "the past must have the head size of K and V");
  }
  auto total = length;
  if (ctx.has_input(past_key))
    total = past && length ? std::optional(*past + *length) : std::optional<Dim>();
  if (const auto count = ctx.type(lengths).element_count())
    require_shared(ctx, *count, batch, "nonpad_kv_seqlen must have one number for each batch");
  q.batch = batch;
  const auto sized = [&](const std::optional<Dim>& size) { return size_or_unknown(ctx, size); };
  Dims scores{sized(batch), sized(q.heads), sized(q.length), sized(total)};
  if (is_decomposed(ctx) && rank) {
    for (const size_t mask : {0, 1}) scores = masked_scores(ctx, form, mask, *rank, scores);
    q.batch = scores[0], q.length = scores[2];
  } else {
    check_mask(ctx, scores);
  }
  if (rank) {
    ctx.set(0, ctx.element(0), output_of(ctx, form, *rank, q, v_size));
  } else {
    ctx.set(0, ValueType::tensor(ctx.element(0)));
  }
  ctx.set(1, ctx.element(1), {scores[0], sized(kv_heads), scores[3], sized(k_size)});
  ctx.set(2, ctx.element(2), {scores[0], sized(kv_heads), scores[3], sized(v_size)});
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
  ConvertedArguments wide;
  Cache cache[2];
  int64_t wide_cache[2] = {-1, -1};  // converted to the compute type
  int64_t mask = -1;
  int64_t scratch = 0;
};

// One of Q, K, V and Y, wherever its dimensions are.
struct Operand {
  int64_t batch, heads, length, size;
  HeadStrides strides;
};

Operand operand(std::span<const int64_t> shape, int64_t heads, bool length_first) {
  if (shape.size() == 3) {
    const int64_t batch = shape[length_first ? 1 : 0], length = shape[length_first ? 0 : 1];
    const int64_t hidden = shape[2], size = heads > 0 ? hidden / heads : 0;
    if (length_first) return {batch, heads, length, size, {hidden, size, batch * hidden}};
    return {batch, heads, length, size, {length * hidden, size, hidden}};
  }
  heads = shape[length_first ? 2 : 1];
  const int64_t length = shape[length_first ? 1 : 2], size = shape[3];
  if (length_first)
    return {shape[0], heads, length, size, {length * heads * size, size, heads * size}};
  return {shape[0], heads, length, size, {heads * length * size, length * size, size}};
}

void write_cache(const RunContext& run, const Cache& c, int input, std::byte* to) {
  const auto* fresh = static_cast<const std::byte*>(run.data(input));
  const auto* past =
      run.has_input(input + 3) ? static_cast<const std::byte*>(run.data(input + 3)) : nullptr;
  const int64_t row = c.size * c.element, past_bytes = c.past * row;
  if (row == 0) return;  // of any number of heads
  run.pool().parallel_for(c.batch * c.heads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      std::byte* at = to + i * (c.past + c.length) * row;
      if (past_bytes > 0) std::memcpy(at, past + i * past_bytes, static_cast<size_t>(past_bytes));
      const std::byte* source =
          fresh + (i / c.heads * c.from.batch + i % c.heads * c.from.head) * c.element;
      for (int64_t r = 0; r < c.length; ++r) {
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
  std::array<bool, 4> transposed{};
  int64_t inner[2] = {1, 1};
  bool decomposed = false;  // and means what the nodes that it replaced did
};

void bind_sizes(const BindContext& bind, State& s, const Settings& settings) {
  const auto& transposed = settings.transposed;
  const auto in = [&](Attention::Input i, int64_t heads) {
    return operand(bind.in_shape(i), heads, transposed[i]);
  };
  const Operand q = in(Attention::q, settings.q_heads), k = in(Attention::k, settings.kv_heads),
                v = in(Attention::v, settings.kv_heads),
                y = operand(bind.out_shape(0), settings.q_heads, transposed[output_y]);
  AttentionShape& a = s.shape;
  a = {};
  a.batch = y.batch, a.q_heads = q.heads, a.kv_heads = k.heads, a.q_length = y.length;
  a.head_size = q.size, a.v_head_size = v.size;
  a.past = bind.has_input(Attention::past_key) ? bind.in_shape(Attention::past_key)[2] : 0;
  a.kv_length = a.past + k.length;
  if (a.kv_heads < 1 || a.q_heads % a.kv_heads != 0) {
    throw Error(ErrorCode::run_failed,
                fmt::format("the {} heads of Q must be a multiple of the {} heads of K", a.q_heads,
                            a.kv_heads));
  }
  a.q = q.strides, a.k = k.strides, a.v = v.strides, a.y = y.strides;
  // A mask of more batches or queries repeats the only one there is.
  if (q.batch != y.batch) a.q.batch = a.k.batch = a.v.batch = 0;
  if (q.length != y.length) a.q.row = 0;
  a.scale = settings.has_scale ? settings.scale : 1 / std::sqrt(static_cast<double>(a.head_size));
  a.softcap = settings.softcap, a.masked = settings.masked, a.causal = settings.causal,
  a.left = settings.left, a.right = settings.right;
  a.kind = static_cast<AttentionScores>(settings.mode);
  a.wants_scores = bind.has_output(3);
  a.has_lengths = bind.has_input(Attention::lengths);
  a.empty_is_nan = settings.decomposed;
}

// Where the attention is decomposed, a mask of one column stands for all keys; to the standard it
// has but the first one.
void bind_mask(const BindContext& bind, size_t which, const Settings& settings, AttentionShape& a) {
  const int input = mask_inputs[which];
  if (!bind.has_input(input)) return;
  const auto mask = bind.in_shape(input);
  const bool is_boolean = bind.in_type(input) == ElementType::boolean;
  MaskShape& made = is_boolean ? a.allowed : which == 0 ? a.bias : a.more;
  made.inner = settings.inner[which];
  std::vector<int64_t*> steps{&made.step.row};  // from the last dimension but one on
  if (!settings.decomposed || bind.in_shape(Attention::q).size() == 4)
    steps.push_back(&made.step.head);
  if (made.inner != 1) steps.push_back(&made.inner_step);
  steps.push_back(&made.step.batch);
  int64_t step = mask.back();
  for (size_t back = 2; back <= mask.size(); ++back) {
    const int64_t dim = mask[mask.size() - back];
    *steps[back - 2] = dim == 1 ? 0 : step;
    step *= dim;
  }
  made.is_a_column = settings.decomposed && mask.back() == 1;
  made.columns = made.is_a_column ? a.kv_length : mask.back();
}

// Joined K and V become the operands.
void bind_cache(const BindContext& bind, State& s, ElementType compute, ScratchPlanner& layout) {
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
  data.q = s.wide.in<T>(run, Attention::q);
  data.k = joined<T>(run, s, 0);
  data.v = joined<T>(run, s, 1);
  if (run.has_input(Attention::mask)) {
    if (run.in_type(Attention::mask) == ElementType::boolean)
      data.allowed = run.in<bool>(Attention::mask);
    else
      data.bias = s.wide.in<T>(run, Attention::mask);
  }
  if (run.has_input(Attention::second_mask)) data.more = run.in<T>(Attention::second_mask);
  if (run.has_input(Attention::lengths)) data.lengths = run.in<int64_t>(Attention::lengths);
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
        ScratchPlanner layout;
        bind_sizes(bind, s, settings);
        for (const size_t mask : {0, 1}) bind_mask(bind, mask, settings, s.shape);
        bind_cache(bind, s, compute, layout);
        s.wide.plan_in(bind, Attention::q, compute, layout);
        if (bind.has_input(Attention::mask) &&
            bind.in_type(Attention::mask) != ElementType::boolean)
          s.wide.plan_in(bind, Attention::mask, compute, layout);
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
  const bool decomposed = is_decomposed(ctx);
  if (!decomposed) check_windows(ctx);
  const ElementType type = ctx.in_element(Attention::q);
  if (!computes_in_float(type) && type != ElementType::float64)
    ctx.fail(ErrorCode::unsupported, "no attention of {}", name_of(type));
  if (!ctx.has_output(0))
    ctx.fail(ErrorCode::unsupported, "an Attention whose output Y is not used");
  const Attention form = form_of(ctx);
  Settings settings{.transposed = form.transposed, .decomposed = decomposed};
  for (const size_t mask : {0, 1}) settings.inner[mask] = inner_batches(form, mask);
  settings.q_heads = form.q_num_heads, settings.kv_heads = form.kv_num_heads;
  settings.has_scale = form.scale.has_value();
  settings.scale = form.scale.value_or(0);
  if (form.masked) settings.masked = *form.masked;
  if (!decomposed) {
    settings.softcap = ctx.attr_float("softcap", 0);
    settings.causal = ctx.attr_int("is_causal", 0) != 0;
    settings.left = ctx.attr_int("left_window_size", -1),
    settings.right = ctx.attr_int("right_window_size", -1);
    settings.mode = ctx.attr_int("qk_matmul_output_mode", 0);
  }
  return type == ElementType::float64 ? make_attention<double>(settings)
                                      : make_attention<float>(settings);
}

constexpr Operator operators[] = {
    {.name = Attention::name, .infer = infer, .prepare = prepare},
    {.name = Attention::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<Attention, infer>,
     .prepare = prepare},
};

}  // namespace
}  // namespace attention_unit

std::span<const Operator> attention_operators() { return attention_unit::operators; }

}  // namespace sardonyx::ops
