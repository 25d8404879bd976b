#include "ops/contrib/generation/scores.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace sardonyx::ops::generation {
namespace {

constexpr float lowest = std::numeric_limits<float>::lowest();
using Row = std::span<float>;

// Tokens that have no score, as inputs may hold, are nothing to any rule.
void forbid(Row scores, int64_t token) {
  if (token >= 0 && token < static_cast<int64_t>(scores.size()))
    scores[static_cast<size_t>(token)] = lowest;
}

// From `first` up to but without `end`.
void forbid(Row scores, int64_t first, int64_t end) {
  const auto count = static_cast<int64_t>(scores.size());
  first = std::clamp<int64_t>(first, 0, count), end = std::clamp<int64_t>(end, first, count);
  std::fill(scores.begin() + first, scores.begin() + end, lowest);
}

// `seen` is all false before and after.
void penalize_repetition(float penalty, std::span<const int32_t> sequence, std::vector<bool>& seen,
                         Row scores) {
  const auto is_new = [&](int32_t token) {
    return token >= 0 && static_cast<size_t>(token) < scores.size();
  };
  for (const int32_t token : sequence) {
    if (!is_new(token) || seen[static_cast<size_t>(token)]) continue;
    seen[static_cast<size_t>(token)] = true;
    float& score = scores[static_cast<size_t>(token)];
    score = score < 0 ? score * penalty : score / penalty;
  }
  for (const int32_t token : sequence) {
    if (is_new(token)) seen[static_cast<size_t>(token)] = false;
  }
}

// Tokens that would end an n-gram that the sequence has.
void forbid_ngrams(int64_t n, std::span<const int32_t> sequence, Row scores) {
  const auto length = static_cast<int64_t>(sequence.size());
  if (n < 1 || n > length) return;
  const auto prefix = sequence.last(static_cast<size_t>(n - 1));
  for (int64_t i = 0; i + n <= length; ++i) {
    if (std::equal(prefix.begin(), prefix.end(), sequence.begin() + i))
      forbid(scores, sequence[static_cast<size_t>(i + n - 1)]);
  }
}

void forbid_masked(std::span<const int32_t> mask, Row scores) {
  for (size_t k = 0; k < scores.size(); ++k) {
    if (mask[k] == 0) scores[k] = lowest;
  }
}

// Whisper's tokens after the one that ends a text.
struct TimestampTokens {
  int64_t eos, start, translate, transcribe, start_of_lm, no_timestamps, first;

  explicit TimestampTokens(const Settings& s)
      : eos(s.eos),
        start(s.start >= 0 ? s.start : s.eos + 1),
        translate(s.translate >= 0 ? s.translate : s.eos + 101),
        transcribe(s.transcribe >= 0 ? s.transcribe : s.eos + 102),
        start_of_lm(s.start_of_lm >= 0 ? s.start_of_lm : s.eos + 105),
        no_timestamps(s.no_timestamps >= 0 ? s.no_timestamps : s.eos + 106),
        first(s.first_timestamp >= 0 ? s.first_timestamp : s.eos + 107) {}
};

// How far the first timestamp may be from 0.
constexpr int64_t max_initial_timestamp = 50;

// Where text is as likely as less than all timestamps together, a timestamp comes.
void prefer_timestamps(const TimestampTokens& tokens, Row scores) {
  const auto first = static_cast<size_t>(tokens.first);
  if (first == 0 || first >= scores.size()) return;
  const float text = *std::max_element(scores.begin(), scores.begin() + tokens.first);
  const float top = *std::max_element(scores.begin() + tokens.first, scores.end());
  double sum = 0;
  for (size_t k = first; k < scores.size(); ++k) sum += std::exp(scores[k] - top);
  if (top + std::log(sum) > text) forbid(scores, 0, tokens.first);
}

void constrain_timestamps(const TimestampTokens& tokens, std::span<const int32_t> sequence,
                          Row scores) {
  const auto length = static_cast<int64_t>(sequence.size());
  const auto is_timestamp = [&](int64_t i) {
    return sequence[static_cast<size_t>(i)] >= tokens.first;
  };
  int64_t begin = 0;  // past the first timestamp, or the whole
  while (begin < length && !is_timestamp(begin++)) {
  }
  const auto end = static_cast<int64_t>(scores.size());
  forbid(scores, tokens.no_timestamps);
  forbid(scores, tokens.start_of_lm);
  if (length > begin) {
    for (const int64_t token : {tokens.start, tokens.translate, tokens.transcribe})
      forbid(scores, token);
  }
  const bool last = length > 0 && is_timestamp(length - 1);
  const bool before = length <= begin || is_timestamp(length - 2);
  if (last && before) forbid(scores, tokens.first, end);
  if (last && !before) forbid(scores, 0, tokens.eos);
  const auto latest = std::find_if(sequence.rbegin(), sequence.rend(),
                                   [&](int32_t token) { return token >= tokens.first; });
  if (latest != sequence.rend()) forbid(scores, tokens.first, *latest + (last && !before ? 0 : 1));
  if (length == begin) forbid(scores, tokens.first + max_initial_timestamp + 1, end);
  prefer_timestamps(tokens, scores);
}

}  // namespace

void process_scores(const Settings& settings, const Request& request, const Sequences& sequences,
                    int64_t vocab, int64_t step, std::span<float> scores) {
  std::vector<bool> seen(request.repetition_penalty == 1 ? 0 : static_cast<size_t>(vocab));
  const TimestampTokens timestamps(settings);
  for (int64_t i = 0; i < request.rows(); ++i) {
    const Row row = scores.subspan(static_cast<size_t>(i * vocab), static_cast<size_t>(vocab));
    const auto sequence = sequences.row(i);
    const auto of_batch = [&](std::span<const int32_t> mask) {
      return mask.subspan(static_cast<size_t>(i / request.beams * vocab),
                          static_cast<size_t>(vocab));
    };
    if (!seen.empty()) penalize_repetition(request.repetition_penalty, sequence, seen, row);
    forbid_ngrams(settings.ngram, sequence, row);
    if (!request.vocab_mask.empty()) forbid_masked(request.vocab_mask, row);
    if (!request.prefix_mask.empty() && step == 1)
      forbid_masked(of_batch(request.prefix_mask), row);
    if (sequences.length() < request.min_length) forbid(row, settings.eos);
    if (request.temperature > 0 && request.temperature != 1) {
      for (float& score : row) score /= request.temperature;
    }
    if (!request.presence_mask.empty() && settings.presence_penalty != 0) {
      const auto mask = of_batch(request.presence_mask);
      for (size_t k = 0; k < row.size(); ++k)
        row[k] -= static_cast<float>(mask[k]) * settings.presence_penalty;
    }
    if (request.timestamps) constrain_timestamps(timestamps, sequence, row);
  }
}

void log_softmax(std::span<float> scores, int64_t vocab) {
  for (; !scores.empty(); scores = scores.subspan(static_cast<size_t>(vocab))) {
    const Row row = scores.first(static_cast<size_t>(vocab));
    const float top = *std::max_element(row.begin(), row.end());
    float sum = 0;
    for (const float score : row) sum += std::exp(score - top);
    const float log_sum = std::log(sum);
    for (float& score : row) score = score - top - log_sum;
  }
}

namespace {

// `order` holds the row's tokens, likeliest last (custom: first).
void filter(const Settings& s, std::span<const int32_t> order, std::vector<float>& mass,
            Row scores) {
  const size_t count = order.size();
  const float top = scores[static_cast<size_t>(s.custom ? order.front() : order.back())];
  float total = 0;
  for (size_t j = 0; j < count; ++j)
    total += mass[j] = std::exp(scores[static_cast<size_t>(order[j])] - top);
  float sum = 0;
  if (s.custom) {
    for (size_t j = 0; j + 1 < count; ++j) {
      sum += mass[j] / total;
      if (sum > s.top_p) scores[static_cast<size_t>(order[j + 1])] = s.filter_value;
    }
    return;
  }
  const size_t kept = std::min(static_cast<size_t>(s.min_kept), count);
  for (size_t j = 0; j < std::max<size_t>(count - kept, 1); ++j) {
    sum += mass[j] / total;
    if (sum <= 1 - s.top_p) scores[static_cast<size_t>(order[j])] = s.filter_value;
  }
}

}  // namespace

void keep_likeliest(const Settings& settings, int64_t vocab, std::span<float> scores) {
  std::vector<int32_t> order(static_cast<size_t>(vocab));
  std::vector<float> mass(static_cast<size_t>(vocab));
  for (; !scores.empty(); scores = scores.subspan(static_cast<size_t>(vocab))) {
    const Row row = scores.first(static_cast<size_t>(vocab));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const float x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
      return settings.custom ? x > y : x < y;
    });
    filter(settings, order, mass, row);
  }
}

}  // namespace sardonyx::ops::generation
