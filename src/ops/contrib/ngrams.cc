// com.microsoft: NGramRepeatBlock and BifurcationDetector.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/fail.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_ngrams_unit {
namespace {

using Tokens = std::span<const int64_t>;

// --- NGramRepeatBlock: tokens that would end an n-gram which the sequence has get no score ---

int64_t ngram_size_of(const NodeView& node) {
  const int64_t size = node.attr_int("ngram_size");
  if (size < 1) node.fail("ngram_size must be 1 or more; got {}", size);
  return size;
}

void require_rank(InferContext& ctx, int i, int64_t rank) {
  if (const auto given = ctx.rank(i); given && *given != rank)
    ctx.fail("{} must have {} dimensions; it has {}", ctx.input_name(i), rank, *given);
}

void infer_block(InferContext& ctx) {
  ngram_size_of(ctx);
  require_rank(ctx, 0, 2), require_rank(ctx, 1, 2);
  if (ctx.shape(0) && ctx.shape(1))
    ctx.require_equal(ctx.shape(0)->front(), ctx.shape(1)->front(),
                      "input_ids and scores must have as many rows");
  ctx.set(0, ctx.type(1));
}

void block_repeats(Tokens sequence, int64_t n, std::span<float> scores) {
  const auto length = static_cast<int64_t>(sequence.size());
  if (n > length) return;
  const Tokens prefix = sequence.last(static_cast<size_t>(n - 1));
  for (int64_t i = 0; i + n <= length; ++i) {
    if (!std::equal(prefix.begin(), prefix.end(), sequence.begin() + i)) continue;
    const int64_t token = sequence[static_cast<size_t>(i + n - 1)];
    if (token < 0 || token >= static_cast<int64_t>(scores.size()))
      fail(ErrorCode::run_failed, "input_ids must be tokens in [0, {}); one is {}", scores.size(),
           token);
    scores[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
  }
}

std::unique_ptr<Step> prepare_block(PrepareContext& ctx) {
  auto step = make_step("ngrams", [n = ngram_size_of(ctx)](RunContext& run) {
    const auto rows = static_cast<size_t>(run.in_shape(0)[0]);
    const auto length = static_cast<size_t>(run.in_shape(0)[1]);
    const auto vocab = static_cast<size_t>(run.in_shape(1)[1]);
    if (rows * vocab != 0 && run.out_data(0) != run.data(1))
      std::memcpy(run.out_data(0), run.data(1), rows * vocab * sizeof(float));
    for (size_t i = 0; i < rows; ++i)
      block_repeats({run.in<int64_t>(0) + i * length, length}, n,
                    {run.out<float>(0) + i * vocab, vocab});
  });
  step->traits().in_place = {{0, 1}};
  return step;
}

// --- BifurcationDetector: how far a prediction agrees with a source, and where to go on there ---

struct NGrams {
  int64_t least, most;
};

NGrams ngrams_of(const NodeView& node) {
  const NGrams sizes{node.attr_int("min_ngram_size", 1), node.attr_int("max_ngram_size", 3)};
  if (sizes.least < 1 || sizes.most < sizes.least)
    node.fail("min_ngram_size must be 1 or more and at most max_ngram_size; got {} and {}",
              sizes.least, sizes.most);
  return sizes;
}

constexpr int source = 0, current = 1, previous_match = 2, predicted = 3;

void infer_bifurcation(InferContext& ctx) {
  ngrams_of(ctx);
  for (const int i : {source, current, predicted}) require_rank(ctx, i, 1);
  const auto size = [&](int i) { return ctx.shape(i) ? ctx.shape(i)->front() : ctx.unknown(); };
  const Dim now = size(current);
  ctx.set(0, ElementType::int64,
          {ctx.has_input(predicted) ? ctx.unknown(now + size(predicted)) : now});
  if (ctx.has_output(1)) ctx.set(1, ctx.type(previous_match));
}

// How many of the predicted tokens are taken: those that the source has from `from` on, and one.
size_t accepted(Tokens source, Tokens predicted, int64_t from) {
  const auto length = static_cast<int64_t>(source.size());
  if (from < 0 || from > length)
    fail(ErrorCode::run_failed, "prev_suffix_match_idx must be in [0, {}]; it is {}", length, from);
  const Tokens rest = source.subspan(static_cast<size_t>(from));
  if (predicted.size() != rest.size() + 1)
    fail(ErrorCode::run_failed,
         "pred_tokens must be one more than the {} of src_tokens from prev_suffix_match_idx on; "
         "there are {}",
         rest.size(), predicted.size());
  const auto differs = std::mismatch(rest.begin(), rest.end(), predicted.begin()).first;
  return static_cast<size_t>(differs - rest.begin()) + 1;
}

// Past the place in the source of the longest end of `tokens` that is there once; -1 where there is
// none.
int64_t match_of_suffix(Tokens source, Tokens tokens, NGrams sizes) {
  int64_t match = -1;
  const auto length = static_cast<int64_t>(source.size());
  for (int64_t n = sizes.least; n <= std::min<int64_t>(sizes.most, std::ssize(tokens)); ++n) {
    const Tokens suffix = tokens.last(static_cast<size_t>(n));
    const auto found = std::search(source.begin(), source.end(), suffix.begin(), suffix.end());
    if (found == source.end()) break;
    match = found - source.begin() + n;
    if (match >= length) break;
    if (std::search(found + 1, source.end(), suffix.begin(), suffix.end()) != source.end())
      match = -1;
  }
  return match;
}

std::unique_ptr<Step> prepare_bifurcation(PrepareContext& ctx) {
  const bool predicts = ctx.has_input(predicted);
  return make_allocating_step("ngrams", [sizes = ngrams_of(ctx), predicts](RunContext& run) {
    const auto tokens_of = [&](int i) {
      return Tokens(run.in<int64_t>(i), static_cast<size_t>(run.in_size(i)));
    };
    if (run.in_size(previous_match) != 1)
      fail(ErrorCode::run_failed, "prev_suffix_match_idx must be one element; it has shape {}",
           to_string(run.in_shape(previous_match)));
    const Tokens now = tokens_of(current);
    std::vector<int64_t> tokens(now.begin(), now.end());
    if (predicts) {
      const Tokens taken = tokens_of(predicted);
      const size_t count = accepted(tokens_of(source), taken, *run.in<int64_t>(previous_match));
      tokens.insert(tokens.end(), taken.begin(), taken.begin() + static_cast<int64_t>(count));
    }
    if (run.has_output(0)) {
      void* to = run.allocate_output(0, {std::ssize(tokens)});
      if (!tokens.empty()) std::memcpy(to, tokens.data(), tokens.size() * sizeof(int64_t));
    }
    if (run.has_output(1)) {
      const auto shape = run.in_shape(previous_match);
      *static_cast<int64_t*>(run.allocate_output(1, Shape(shape.begin(), shape.end()))) =
          match_of_suffix(tokens_of(source), tokens, sizes);
    }
  });
}

constexpr Operator operators[] = {
    {.name = "BifurcationDetector",
     .domain = "com.microsoft",
     .infer = infer_bifurcation,
     .prepare = prepare_bifurcation},
    {.name = "NGramRepeatBlock",
     .domain = "com.microsoft",
     .infer = infer_block,
     .prepare = prepare_block},
};

}  // namespace
}  // namespace contrib_ngrams_unit

std::span<const Operator> contrib_ngrams_operators() { return contrib_ngrams_unit::operators; }

}  // namespace sardonyx::ops
