// Beam search: which hypotheses are followed, and which are finished.
#pragma once

#include <span>
#include <vector>

#include "ops/contrib/generation/sequences.h"
#include "ops/contrib/generation/settings.h"

namespace sardonyx::ops::generation {

// A token that would follow a beam of one sequence of the batch.
struct Candidate {
  float score;
  int32_t beam, token;
};

// The `count` best of `scores`, `[beams, vocab]`, the best first; of equal ones the first first.
std::vector<Candidate> best_candidates(std::span<const float> scores, int64_t vocab, int64_t count);

// The finished hypotheses of one sequence of the batch, best first, up to `beams` of them.
class Hypotheses {
 public:
  struct Finished {
    std::vector<int32_t> tokens;
    float score;
  };

  bool is_done() const { return done_; }
  const std::vector<Finished>& finished() const { return finished_; }
  void add(std::span<const int32_t> tokens, float sum, const Request& request);
  // No beam can become better than what is finished. `best`: of the candidates' sums.
  void end_if_settled(float best, int64_t length, const Settings& settings, const Request& request);

 private:
  std::vector<Finished> finished_;
  bool done_ = false;
};

class BeamSearch {
 public:
  BeamSearch(const Settings& settings, const Request& request);

  // What each row's next tokens' scores begin with.
  std::span<const float> sums() const { return sums_; }
  // Chooses the next beams by `scores`, `[rows, vocab]`, which include the sums.
  void advance(const Sequences& sequences, std::span<const float> scores, int64_t vocab);
  // For each row: the row it continues, and the token.
  std::span<const int32_t> parents() const { return parents_; }
  std::span<const int32_t> tokens() const { return tokens_; }
  bool is_done() const;
  // Ends with the beams as they are.
  void finish(const Sequences& sequences);
  const Hypotheses& hypotheses(int64_t batch) const {
    return hypotheses_[static_cast<size_t>(batch)];
  }

 private:
  void choose(int64_t batch, std::span<const Candidate> candidates, const Sequences& sequences);

  const Settings& settings_;
  const Request& request_;
  std::vector<Hypotheses> hypotheses_;
  std::vector<float> sums_;
  std::vector<int32_t> parents_, tokens_;
};

}  // namespace sardonyx::ops::generation
