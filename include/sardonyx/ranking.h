// The answers of a classifier, best first.
#pragma once

#include <cstdint>
#include <vector>

#include "sardonyx/value.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// One class and how likely it is.
struct Answer {
  int64_t index = 0;
  double probability = 0;
};

struct Ranking {
  // True where the output held probabilities; false where they are the softmax of its scores.
  bool given = true;
  std::vector<std::vector<Answer>> rows = {};  // one for each index of the leading dimensions
};

// The `top` greatest elements along the last dimension, for the first `max_rows` rows. Throws Error
// (bad_input) where the tensor holds no numbers or its last dimension is empty.
Ranking rank_answers(const Tensor& scores, int64_t top, int64_t max_rows = 16);

}  // namespace sardonyx

#pragma GCC visibility pop
