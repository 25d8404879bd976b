// Trees of few leaves without walking them: every test that a row passes takes away the leaves on
// its other side; of those that remain the first one is the row's. Part of kernels/trees/forest.
#pragma once

#include <cstdint>
#include <vector>

namespace sardonyx::kernels {

// Takes leaves away from those whose value passes: leaves `kept` of a word remain.
struct LeafTest {
  float bound;
  uint32_t place;  // where the feature's values begin in a block of rows
  uint32_t kept;
};

// 32 leaves of a tree. Its tests follow those of the word before: first those that values at most
// `bound` pass, up to `at_most_end`, then those that values at least `bound` pass, up to `end`.
struct LeafWord {
  int32_t at_most_end, end;
};

struct LeafTree {
  int32_t first_word = 0, words = 0;
  int32_t first_test = 0;
  int32_t first_leaf = 0;
};

// Rows that are tested at once; 16 at the end of others.
constexpr int64_t rows_together = 32;

// exits[r], r < rows: the first leaf that remains of `tree` for row r. The values of a feature for
// all rows lie side by side in `block`, which like `exits` has room for a multiple of 16 rows.
void find_exits(const LeafTree& tree, const LeafWord* words, const LeafTest* tests,
                const float* block, int64_t rows, int32_t* exits);

}  // namespace sardonyx::kernels
