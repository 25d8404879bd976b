#include "kernels/trees/tree_groups.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace sardonyx::kernels {
namespace {

constexpr uint32_t sign_flag = TreeNodes<float>::sign_flag;

// The tests of a word of a tree's leaves: [begin, end) of all, from `sign_flipped` on those that
// values at least the bound pass.
struct TestRange {
  size_t begin = 0, sign_flipped = 0, end = 0;
  size_t size() const { return end - begin; }
};
TestRange tests_of(const SmallTrees& small, size_t tree, size_t word) {
  const LeafTree& made = small.tree(tree);
  const auto words = small.words(made);
  if (word >= words.size()) return {};
  const int32_t begin = word == 0 ? made.first_test : words[word - 1].end;
  return {static_cast<size_t>(begin), static_cast<size_t>(words[word].at_most_end),
          static_cast<size_t>(words[word].end)};
}

// Tests that no value passes.
SideTests no_tests() {
  SideTests none{};
  for (auto& bounds : none.bounds)
    std::fill(std::begin(bounds), std::end(bounds), std::numeric_limits<float>::quiet_NaN());
  return none;
}

}  // namespace

TreeGroups::TreeGroups(const TreeNodes<float>& trees, const SmallTrees& small) {
  const int lanes = vector_lanes();
  if (lanes < min_lanes) return;
  const auto most = static_cast<size_t>(lanes * max_vectors);
  Laying laying{small, std::vector<int32_t>(2 * small.features().size(), -1)};
  for (size_t first = 0; first < trees.roots.size(); first += trees_together) {
    const size_t count = std::min<size_t>(trees_together, trees.roots.size() - first);
    if (add(laying, first, count) && features_.size() <= most && has_room(small)) continue;
    groups_.clear();
    return;
  }
}

// The tests of small trees beside large ones are mostly none.
bool TreeGroups::has_room(const SmallTrees& small) const {
  const size_t made = tests_.size() * tests_together * trees_together;
  return made <= 4 * small.tests().size() + 4096;
}

double TreeGroups::cycles() const {
  const auto tests = static_cast<double>(tests_.size() * tests_together);
  constexpr double ends = 48;  // of a group
  return tests * side_test_cycles(features_.size()) + ends * static_cast<double>(groups_.size());
}

size_t TreeGroups::step() const {
  constexpr size_t cached = 12 << 10;
  const size_t group = tests_.size() * sizeof(SideTests) / groups_.size();
  return std::clamp<size_t>(cached / std::max<size_t>(1, group), 1, max_step);
}

// False where a tree has many leaves.
bool TreeGroups::add(Laying& laying, size_t first, size_t count) {
  const SmallTrees& small = laying.small;
  TreeGroup& group = groups_.emplace_back();
  group.first_word = static_cast<int32_t>(word_ends_.size());
  group.first_test = static_cast<int32_t>(tests_.size());
  size_t words = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!small.has(first + i)) return false;
    const LeafTree& tree = small.tree(first + i);
    words = std::max(words, small.words(tree).size());
    group.first_leaves[i] = tree.first_leaf;
  }
  group.words = static_cast<int32_t>(words);
  for (size_t word = 0; word < words; ++word) add_word(laying, first, count, word);
  return true;
}

void TreeGroups::add_word(Laying& laying, size_t first, size_t count, size_t word) {
  const size_t begin = tests_.size();
  for (size_t i = 0; i < count; ++i) {
    const TestRange range = tests_of(laying.small, first + i, word);
    const size_t blocks = (range.size() + tests_together - 1) / tests_together;
    tests_.resize(std::max(tests_.size(), begin + blocks), no_tests());
    for (size_t t = range.begin; t < range.end; ++t) {
      const LeafTest& test = laying.small.tests()[t];
      const bool sign_flipped = t >= range.sign_flipped;
      SideTests& side = tests_[begin + (t - range.begin) / tests_together];
      const size_t at = (t - range.begin) % tests_together;
      side.features[at][i] = number(laying, test, sign_flipped);
      side.bounds[at][i] = sign_flipped ? -test.bound : test.bound;
      side.kept[at][i] = test.kept;
    }
  }
  word_ends_.push_back(static_cast<int32_t>(tests_.size()));
}

// Of a test's feature among features_; where those are too many, of none.
uint8_t TreeGroups::number(Laying& laying, const LeafTest& test, bool sign_flipped) {
  const size_t feature = test.place / static_cast<size_t>(laying.small.width());
  int32_t& found = laying.numbers[2 * feature + (sign_flipped ? 1 : 0)];
  if (found < 0) {
    found = static_cast<int32_t>(features_.size());
    features_.push_back(laying.small.features()[feature] | (sign_flipped ? sign_flag : 0));
  }
  return static_cast<uint8_t>(found);
}

void TreeGroups::fill(Row& row, const float* x) const {
  for (size_t i = 0; i < features_.size(); ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[features_[i] & ~sign_flag]);
    row.values[i] = std::bit_cast<float>(bits ^ (features_[i] & sign_flag));
  }
}

}  // namespace sardonyx::kernels
