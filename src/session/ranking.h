// The answers of a classifier, best first.
#pragma once

#include <cstdint>
#include <vector>

#include "sardonyx/value.h"

namespace sardonyx {

struct Answer {
  int64_t index = 0;
  double probability = 0;
};

struct Ranking {
  // True where the output held probabilities; false where they are the softmax of its scores.
  bool given = true;
  std::vector<std::vector<Answer>> rows;  // one for each index of the leading dimensions
};

// The `top` greatest elements along the last dimension, for the first `max_rows` rows. The tensor
// holds numbers, and its last dimension is not empty.
Ranking rank_answers(const Tensor& scores, int64_t top, int64_t max_rows = 16);

}  // namespace sardonyx
