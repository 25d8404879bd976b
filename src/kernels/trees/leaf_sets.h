// Trees of few leaves without walking them: every test that a row passes takes away the leaves on
// its other side; of those that remain the first one is the row's. Part of kernels/trees/forest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

// places[r], r < rows: the first leaf that remains of `tree` for row r, counted on from first_leaf.
// The values of a feature for all rows lie side by side in `block`, which like `places` has room
// for a multiple of 16 rows.
void find_places(const LeafTree& tree, const LeafWord* words, const LeafTest* tests,
                 const float* block, int64_t rows, int32_t* places);

// For few rows, trees stand side by side instead: four tests of each of 16 trees, all of which
// values at most the bound pass.
constexpr int trees_together = 16, tests_together = 4;
struct alignas(64) SideTests {
  uint8_t features[tests_together][trees_together];
  float bounds[tests_together][trees_together];
  uint32_t kept[tests_together][trees_together];
};

// 16 trees. The tests of a word of their leaves follow those of the word before, and go up to
// its entry of a list of ends.
struct TreeGroup {
  int32_t first_word = 0, words = 0;
  int32_t first_test = 0;
  int32_t first_leaves[trees_together] = {};
};

// Rows and trees that are tested at once: floats in a vector, 16 at most.
int vector_lanes();

// What find_places_of_row needs of the processor: lanes, and so many vectors for a row's features.
constexpr int min_lanes = 8, max_vectors = 16;
// Cycles that a test of 16 trees takes for a row of so many features, about.
double side_test_cycles(size_t features);

// places[i], i < 16 groups.size(): the first leaf that remains of each tree for a row of so many
// features, at most max_vectors full. `row` has room for that many and is aligned to 64 bytes.
void find_places_of_row(std::span<const TreeGroup> groups, const int32_t* word_ends,
                        const SideTests* tests, const float* row, size_t features, int32_t* places);

}  // namespace sardonyx::kernels
