#include "ops/contrib/generation/beams.h"

#include <cmath>

#include "base/fail.h"

namespace sardonyx::ops::generation {
namespace {

float weighted(float sum, int64_t length, const Request& request) {
  return sum / std::pow(static_cast<float>(length), request.length_penalty);
}

}  // namespace

std::vector<Candidate> best_candidates(std::span<const float> scores, int64_t vocab,
                                       int64_t count) {
  if (static_cast<int64_t>(scores.size()) < count)
    fail(ErrorCode::run_failed, "a search for {} candidates needs more than {} tokens", count,
         scores.size());
  std::vector<int64_t> best;  // sorted
  best.reserve(static_cast<size_t>(count) + 1);
  const auto at = [&](int64_t i) { return scores[static_cast<size_t>(i)]; };
  for (int64_t i = 0; i < static_cast<int64_t>(scores.size()); ++i) {
    if (static_cast<int64_t>(best.size()) == count && !(at(i) > at(best.back()))) continue;
    const auto place = std::upper_bound(best.begin(), best.end(), i,
                                        [&](int64_t a, int64_t b) { return at(a) > at(b); });
    best.insert(place, i);
    if (static_cast<int64_t>(best.size()) > count) best.pop_back();
  }
  std::vector<Candidate> candidates;
  for (const int64_t i : best)
    candidates.push_back({at(i), static_cast<int32_t>(i / vocab), static_cast<int32_t>(i % vocab)});
  return candidates;
}

void Hypotheses::add(std::span<const int32_t> tokens, float sum, const Request& request) {
  const float score = weighted(sum, static_cast<int64_t>(tokens.size()), request);
  const bool full = static_cast<int64_t>(finished_.size()) == request.beams;
  if (full && !(score > finished_.back().score)) return;
  if (full) finished_.pop_back();
  const auto place = std::find_if(finished_.begin(), finished_.end(),
                                  [&](const Finished& other) { return score > other.score; });
  finished_.insert(place, {{tokens.begin(), tokens.end()}, score});
}

void Hypotheses::end_if_settled(float best, int64_t length, const Settings& settings,
                                const Request& request) {
  if (static_cast<int64_t>(finished_.size()) < request.beams) return;
  done_ = settings.early_stopping || !(finished_.back().score < weighted(best, length, request));
}

// Of beams that are the same at first, only one counts.
BeamSearch::BeamSearch(const Settings& settings, const Request& request)
    : settings_(settings),
      request_(request),
      hypotheses_(static_cast<size_t>(request.batch)),
      sums_(static_cast<size_t>(request.rows()), -1e9f),
      parents_(static_cast<size_t>(request.rows())),
      tokens_(static_cast<size_t>(request.rows())) {
  for (int64_t i = 0; i < request.batch; ++i) sums_[static_cast<size_t>(i * request.beams)] = 0;
}

void BeamSearch::advance(const Sequences& sequences, std::span<const float> scores, int64_t vocab) {
  const auto each = static_cast<size_t>(request_.beams * vocab);
  for (int64_t batch = 0; batch < request_.batch; ++batch) {
    if (hypotheses_[static_cast<size_t>(batch)].is_done()) {
      const auto first = static_cast<size_t>(batch * request_.beams);
      for (size_t i = first; i < first + static_cast<size_t>(request_.beams); ++i) {
        sums_[i] = 0;
        tokens_[i] = static_cast<int32_t>(settings_.pad);
        parents_[i] = static_cast<int32_t>(i);
      }
      continue;
    }
    choose(batch,
           best_candidates(scores.subspan(static_cast<size_t>(batch) * each, each), vocab,
                           2 * request_.beams),
           sequences);
  }
}

void BeamSearch::choose(int64_t batch, std::span<const Candidate> candidates,
                        const Sequences& sequences) {
  Hypotheses& hypotheses = hypotheses_[static_cast<size_t>(batch)];
  const auto first = static_cast<int32_t>(batch * request_.beams);
  int64_t chosen = 0;
  for (size_t j = 0; j < candidates.size() && chosen < request_.beams; ++j) {
    const auto [score, beam, token] = candidates[j];
    if (token == settings_.eos) {
      if (static_cast<int64_t>(j) < request_.beams)
        hypotheses.add(sequences.row(first + beam), score, request_);
      continue;
    }
    const auto row = static_cast<size_t>(first + chosen++);
    sums_[row] = score, tokens_[row] = token, parents_[row] = first + beam;
  }
  hypotheses.end_if_settled(candidates.front().score, sequences.length(), settings_, request_);
}

bool BeamSearch::is_done() const {
  return std::all_of(hypotheses_.begin(), hypotheses_.end(),
                     [](const Hypotheses& h) { return h.is_done(); });
}

void BeamSearch::finish(const Sequences& sequences) {
  for (int64_t row = 0; row < request_.rows(); ++row) {
    Hypotheses& hypotheses = hypotheses_[static_cast<size_t>(row / request_.beams)];
    if (!hypotheses.is_done())
      hypotheses.add(sequences.row(row), sums_[static_cast<size_t>(row)], request_);
  }
}

}  // namespace sardonyx::ops::generation
