// com.microsoft: NGramHashMapping and VarlenNGramHashMapping, which hash each token with those
// before it.
#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/checked.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_ngram_hashes_unit {
namespace {

// Where the two operators have an input; -1: not at all.
struct Inputs {
  int sums = -1, past = 3, offsets = 4, eos = 5, segments = 6, past_segments = -1, capture = -1;
};

constexpr Inputs dense, packed{.sums = 3,
                               .past = 4,
                               .offsets = 5,
                               .eos = 6,
                               .segments = 7,
                               .past_segments = 8,
                               .capture = 9};
constexpr int ids = 0, multipliers = 1, vocabularies = 2;

struct Settings {
  int64_t sizes = 0, heads = 0, pad = 0;  // n-grams of 2 to `sizes` tokens, `heads` hashes of each
  int64_t capacity = 0;
  bool resets = false;
  Inputs at;

  int64_t columns() const { return (sizes - 1) * heads; }
  int64_t history() const { return sizes - 1; }
};

Settings read_settings(const NodeView& node, const Inputs& at) {
  Settings s;
  s.at = at;
  s.sizes = node.attr_int("max_ngram_size"), s.heads = node.attr_int("n_head_per_ngram");
  s.pad = node.attr_int("pad_id");
  s.resets = node.attr_int("reset_on_eos", 0) != 0;
  s.capacity = at.capture < 0 ? 0 : node.attr_int("state_update_capacity", 0);
  constexpr int64_t most = 1 << 20;
  if (s.sizes < 2 || s.heads < 1 || s.sizes > most || s.heads > most)
    node.fail("max_ngram_size must be in [2, {}] and n_head_per_ngram in [1, {}]; got {} and {}",
              most, most, s.sizes, s.heads);
  if (s.capacity < 0 || s.capacity > 8)
    node.fail("state_update_capacity must be in [0, 8]; got {}", s.capacity);
  if (at.capture >= 0 && node.has_input(at.capture) != (s.capacity > 0))
    node.fail("capture_count must be given exactly where state_update_capacity is above 0");
  if (at.capture >= 0 && node.has_output(3) && s.capacity == 0)
    node.fail("the output state_update needs a state_update_capacity above 0");
  return s;
}

void require_shape(InferContext& ctx, int i, const Dims& wanted) {
  if (i < 0 || !ctx.has_input(i) || !ctx.shape(i)) return;
  const Dims& shape = *ctx.shape(i);
  if (shape.size() != wanted.size())
    ctx.fail("{} must have {} dimensions; its shape is {}", ctx.input_name(i), wanted.size(),
             ir::to_string(shape));
  for (size_t d = 0; d < wanted.size(); ++d)
    ctx.require_equal(
        shape[d], wanted[d],
        fmt::format("{} must have the shape {}", ctx.input_name(i), ir::to_string(wanted)));
}

Dim batch_of(InferContext& ctx, const Settings& s, const Dims& tokens) {
  if (s.at.sums < 0) return tokens[0];
  const auto count = ctx.type(s.at.sums).element_count();
  if (!count) return ctx.unknown();
  ctx.require_at_least(*count, Dim(1), "cumulative_sequence_length must have batch + 1 numbers");
  return *count - Dim(1);
}

void infer_for(InferContext& ctx, const Inputs& at) {
  const Settings s = read_settings(ctx, at);
  const ElementType type = ctx.element(ids);
  const size_t rank = at.sums < 0 ? 2 : 1;
  if (!ctx.shape(ids)) {
    for (int i = 0; i < 4; ++i)
      ctx.set(i, ValueType::tensor(at.sums >= 0 && i == 2 ? ElementType::int32 : type));
    return;
  }
  Dims tokens = *ctx.shape(ids);
  if (tokens.size() != rank)
    ctx.fail("input_ids must have {} dimension{}; its shape is {}", rank, rank == 1 ? "" : "s",
             ir::to_string(tokens));
  const Dim batch = batch_of(ctx, s, tokens);
  const Dims history{batch, Dim(s.history())};
  require_shape(ctx, vocabularies, {Dim(s.columns())});
  require_shape(ctx, at.offsets, {Dim(s.columns())});
  require_shape(ctx, at.past, history);
  require_shape(ctx, at.past_segments, history);
  require_shape(ctx, at.segments, tokens);
  require_shape(ctx, at.capture, {batch});
  if (const auto count = ctx.type(multipliers).element_count())
    ctx.require_at_least(*count, Dim(s.sizes), "multipliers must have max_ngram_size numbers");
  tokens.push_back(Dim(s.columns()));
  ctx.set(0, type, tokens);
  ctx.set(1, type, history);
  if (at.sums < 0) return;
  ctx.set(2, ElementType::int32, history);
  ctx.set(3, type, {batch, Dim(s.capacity), Dim(s.history())});
}

void infer_dense(InferContext& ctx) { infer_for(ctx, dense); }
void infer_packed(InferContext& ctx) { infer_for(ctx, packed); }

[[noreturn]] void refuse(std::string what) { throw Error(ErrorCode::run_failed, std::move(what)); }

void require_count(const BindContext& bind, int i, int64_t least, int64_t most,
                   std::string_view name) {
  if (i < 0 || !bind.has_input(i)) return;
  if (const int64_t count = bind.in_size(i); count < least || count > most)
    refuse(fmt::format("{} has {} numbers; it must have {}{}", name, count, least,
                       most == least ? "" : " or more"));
}

struct State {
  int64_t batch = 0, length = 0;  // of packed tokens the length is that of all
};

void bind_sizes(const BindContext& bind, State& s, const Settings& settings) {
  const Inputs& at = settings.at;
  const auto shape = bind.in_shape(ids);
  if (shape.size() != (at.sums < 0 ? 2u : 1u)) refuse("input_ids has a wrong number of dimensions");
  s.batch = at.sums < 0 ? shape[0] : bind.in_size(at.sums) - 1;
  s.length = shape.back();
  if (s.batch < 0) refuse("cumulative_sequence_length must have batch + 1 numbers");
  const auto product = checked_mul(s.batch, settings.history());
  if (!product) refuse("the histories of all requests have too many numbers");
  const int64_t history = *product;
  require_count(bind, multipliers, settings.sizes, INT64_MAX, "multipliers");
  require_count(bind, vocabularies, settings.columns(), settings.columns(), "vocab_sizes");
  require_count(bind, at.offsets, settings.columns(), settings.columns(), "head_offsets");
  require_count(bind, at.past, history, history, "past_ids");
  require_count(bind, at.past_segments, history, history, "past_segment_ids");
  require_count(bind, at.segments, bind.in_size(ids), bind.in_size(ids), "segment_ids");
  require_count(bind, at.eos, 1, 1, "eos_token_id");
  require_count(bind, at.capture, s.batch, s.batch, "capture_count");
}

template <class T>
struct Hashes {
  const Settings& settings;
  const T *multipliers, *vocabularies, *offsets;
  std::optional<T> eos;
  T fill;  // what stands before the first token
};

// The tokens of one request; places below 0 are those of its past.
template <class T>
struct Request {
  const T *ids, *past;
  const int32_t *segments, *past_segments;
  int64_t count, history;

  T id(int64_t place, T otherwise) const {
    if (place >= 0) return ids[place];
    return past && -place <= history ? past[history + place] : otherwise;
  }
  // What no past tells belongs to the segment of the first token.
  int32_t segment(int64_t place) const {
    if (place < 0 && past_segments) return past_segments[history + place];
    return segments ? segments[std::max<int64_t>(place, 0)] : 0;
  }
  bool begins_segment(int64_t place) const {
    if (place > 0) return segments && segments[place] != segments[place - 1];
    if (!past_segments || place <= -history) return false;
    const int32_t before = past_segments[history + place - 1];
    return place < 0 ? past_segments[history + place] != before : segments && segments[0] != before;
  }
};

template <class T>
T wrapped(T a, T b, bool sum) {
  using Bits = std::make_unsigned_t<T>;
  const Bits x = static_cast<Bits>(a), y = static_cast<Bits>(b);
  return static_cast<T>(sum ? x + y : x * y);
}

// The hashes of token `t`, whose history begins at `first`.
template <class T>
void hash_token(const Hashes<T>& h, const Request<T>& request, int64_t t, int64_t first, T* to) {
  T mix = 0;
  for (int64_t n = 0; n < h.settings.sizes; ++n) {
    const int64_t place = t - n;
    const T token = place < first ? h.fill : request.id(place, h.fill);
    mix = static_cast<T>(mix ^ wrapped(token, h.multipliers[n], false));
    if (n == 0) continue;
    for (int64_t i = (n - 1) * h.settings.heads; i < n * h.settings.heads; ++i) {
      const T rest = static_cast<T>(mix % h.vocabularies[i]);
      const T hash = rest < 0 ? static_cast<T>(rest + h.vocabularies[i]) : rest;
      to[i] = h.offsets ? wrapped(hash, h.offsets[i], true) : hash;
    }
  }
}

template <class T>
void hash_request(const Hashes<T>& h, const Request<T>& request, T* to) {
  const bool resets = h.settings.resets && h.eos;
  int64_t first = -request.history;
  for (int64_t t = -request.history; t < request.count; ++t) {
    if (request.begins_segment(t)) first = t;
    if (t >= 0) hash_token(h, request, t, first, to + t * h.settings.columns());
    if (resets && (t >= 0 || request.past) && request.id(t, h.fill) == *h.eos) first = t + 1;
  }
}

template <class T>
void check_vocabularies(const RunContext& run, const Settings& s) {
  const T* sizes = run.in<T>(vocabularies);
  for (int64_t i = 0; i < s.columns(); ++i) {
    if (sizes[i] < 1)
      refuse(fmt::format("vocab_sizes must be above 0; number {} is {}", i, sizes[i]));
  }
  if (s.pad < std::numeric_limits<T>::min() || s.pad > std::numeric_limits<T>::max())
    refuse(fmt::format("pad_id {} is no number of {}", s.pad, name_of(run.in_type(ids))));
}

// Where request b begins, and how many tokens it has.
std::pair<int64_t, int64_t> tokens_of(const RunContext& run, const State& s,
                                      const Settings& settings, int64_t b) {
  if (settings.at.sums < 0) return {b * s.length, s.length};
  const int32_t* sums = run.in<int32_t>(settings.at.sums);
  const int64_t begin = sums[b], end = sums[b + 1];
  if ((b == 0 && begin != 0) || end <= begin || end > s.length ||
      (b + 1 == s.batch && end != s.length))
    refuse(
        fmt::format("cumulative_sequence_length must grow from 0 to {}; request {} has tokens {} "
                    "to {}",
                    s.length, b, begin, end));
  return {begin, end - begin};
}

template <class T>
const T* row_of(const RunContext& run, int i, int64_t offset) {
  return i >= 0 && run.has_input(i) ? run.in<T>(i) + offset : nullptr;
}

// What the next call needs of a request.
template <class T>
void write_states(const RunContext& run, const Settings& s, const Hashes<T>& h,
                  const Request<T>& request, int64_t b) {
  const int64_t history = s.history();
  const auto write = [&](int64_t end, T* to) {
    for (int64_t j = 0; j < history; ++j) to[j] = request.id(end - history + j, h.fill);
  };
  if (run.has_output(1)) write(request.count, run.out<T>(1) + b * history);
  if (s.at.sums < 0) return;
  if (run.has_output(2)) {
    int32_t* to = run.out<int32_t>(2) + b * history;
    for (int64_t j = 0; j < history; ++j) to[j] = request.segment(request.count - history + j);
  }
  if (!run.has_output(3)) return;
  const int64_t given = run.in<int32_t>(s.at.capture)[b];
  const int64_t captured = std::clamp<int64_t>(given, 0, std::min(s.capacity, request.count));
  for (int64_t c = 0; c < s.capacity; ++c) {
    T* to = run.out<T>(3) + (b * s.capacity + c) * history;
    if (c < captured) {
      write(c + 1, to);
    } else {
      std::fill_n(to, history, static_cast<T>(s.pad));
    }
  }
}

template <class T>
void run_hashes(const RunContext& run, const State& s, const Settings& settings) {
  const Inputs& at = settings.at;
  check_vocabularies<T>(run, settings);
  Hashes<T> h{settings,
              run.in<T>(multipliers),
              run.in<T>(vocabularies),
              row_of<T>(run, at.offsets, 0),
              std::nullopt,
              static_cast<T>(settings.pad)};
  if (run.has_input(at.eos)) h.eos = h.fill = run.in<T>(at.eos)[0];
  if (at.sums >= 0 && s.batch == 0 && s.length > 0)
    refuse("cumulative_sequence_length names no request of the tokens");
  const int64_t history = settings.history();
  for (int64_t b = 0; b < s.batch; ++b) {
    const auto [begin, count] = tokens_of(run, s, settings, b);
    const Request<T> request{run.in<T>(ids) + begin,
                             row_of<T>(run, at.past, b * history),
                             row_of<int32_t>(run, at.segments, begin),
                             row_of<int32_t>(run, at.past_segments, b * history),
                             count,
                             history};
    if (run.has_output(0)) hash_request(h, request, run.out<T>(0) + begin * settings.columns());
    write_states(run, settings, h, request, b);
  }
}

std::unique_ptr<Step> prepare_for(PrepareContext& ctx, const Inputs& at) {
  const Settings settings = read_settings(ctx, at);
  const ElementType type = ctx.in_element(ids);
  if (type != ElementType::int32 && type != ElementType::int64)
    ctx.fail(ErrorCode::unsupported, "no hashes of {}", name_of(type));
  return make_step<State>(
      "ngram_hashes", [settings](BindContext& bind, State& s) { bind_sizes(bind, s, settings); },
      [settings, type](RunContext& run, const State& s) {
        if (type == ElementType::int32) return run_hashes<int32_t>(run, s, settings);
        run_hashes<int64_t>(run, s, settings);
      });
}

std::unique_ptr<Step> prepare_dense(PrepareContext& ctx) { return prepare_for(ctx, dense); }
std::unique_ptr<Step> prepare_packed(PrepareContext& ctx) { return prepare_for(ctx, packed); }

constexpr Operator operators[] = {
    {.name = "NGramHashMapping",
     .domain = "com.microsoft",
     .infer = infer_dense,
     .prepare = prepare_dense},
    {.name = "VarlenNGramHashMapping",
     .domain = "com.microsoft",
     .infer = infer_packed,
     .prepare = prepare_packed},
};

}  // namespace
}  // namespace contrib_ngram_hashes_unit

std::span<const Operator> contrib_ngram_hashes_operators() {
  return contrib_ngram_hashes_unit::operators;
}

}  // namespace sardonyx::ops
