#include "kernels/trees/small_trees.h"

#include <algorithm>
#include <cmath>

namespace sardonyx::kernels {
namespace {

constexpr size_t max_tests = size_t{1} << 29;
constexpr uint32_t sign_flag = TreeNodes<float>::sign_flag;

}  // namespace

SmallTrees::SmallTrees(const TreeNodes<float>& trees, std::span<const double> values) {
  Laying laying{trees, {}, {}};
  for (size_t tree = 0; tree < trees.roots.size(); ++tree) add(laying, tree);
  const size_t used = features_.size();
  if (used > max_floats / 16) {  // a block has no room for them
    words_.clear();
    return;
  }
  const auto fitting = static_cast<int64_t>(max_floats / std::max<size_t>(1, used) / 16 * 16);
  width_ = std::clamp<int64_t>(fitting, 16, max_rows);
  for (LeafTest& test : tests_) test.place *= static_cast<uint32_t>(width_);
  if (values.empty()) return;
  for (const int32_t leaf : leaves_) values_.push_back(values[static_cast<size_t>(leaf)]);
}

void SmallTrees::add(Laying& laying, size_t tree) {
  LeafTree& made = trees_.emplace_back();
  made.first_leaf = static_cast<int32_t>(leaves_.size());
  made.first_word = static_cast<int32_t>(words_.size());
  made.first_test = static_cast<int32_t>(tests_.size());
  laying.splits.clear();
  // Trees that share their nodes must not be laid out again and again.
  const bool has_room = leaves_.size() <= laying.trees.nodes.size() && tests_.size() < max_tests;
  if (!has_room || laying.trees.heights[tree] >= max_leaves ||
      !collect(laying, laying.trees.roots[tree], made.first_leaf)) {
    leaves_.resize(static_cast<size_t>(made.first_leaf));
    return;
  }
  made.words = (static_cast<int32_t>(leaves_.size()) - made.first_leaf + 31) / 32;
  for (int32_t word = 0; word < made.words; ++word) {
    add_tests(laying, word, /*sign_flipped=*/false);
    const auto at_most_end = static_cast<int32_t>(tests_.size());
    add_tests(laying, word, /*sign_flipped=*/true);
    words_.push_back({at_most_end, static_cast<int32_t>(tests_.size())});
  }
}

// False where there are too many leaves. A tree is no higher than its leaves are many.
bool SmallTrees::collect(Laying& laying, int32_t at, int32_t first) {
  const Node& node = laying.trees.nodes[static_cast<size_t>(at)];
  const auto count = [&] { return static_cast<int32_t>(leaves_.size()) - first; };
  if (node.leaf >= 0) {
    leaves_.push_back(node.leaf);
    return count() <= max_leaves;
  }
  const int32_t begin = count();
  if (!collect(laying, node.next, first)) return false;
  laying.splits.push_back({&node, begin, count()});
  return collect(laying, node.next + 1, first);
}

void SmallTrees::add_tests(Laying& laying, int32_t word, bool sign_flipped) {
  for (const auto& [node, begin, end] : laying.splits) {
    const int32_t low = std::max(begin - 32 * word, 0), high = std::min(end - 32 * word, 32);
    const bool passes = !std::isnan(node->bound);  // for some value
    if (((node->feature & sign_flag) != 0) != sign_flipped || low >= high || !passes) continue;
    const auto below = [](int32_t n) { return (uint64_t{1} << n) - 1; };
    tests_.push_back({sign_flipped ? -node->bound : node->bound,
                      place(laying, node->feature & ~sign_flag),
                      static_cast<uint32_t>(~(below(high) ^ below(low)))});
  }
}

uint32_t SmallTrees::place(Laying& laying, uint32_t feature) {
  const auto next = static_cast<uint32_t>(features_.size());
  const auto [found, is_new] = laying.places.try_emplace(feature, next);
  if (is_new) features_.push_back(feature);
  return found->second;
}

double SmallTrees::cycles() const {
  constexpr double test = 3, ends = 60;  // of a test and of a tree, as measured on Zen 4
  return test * static_cast<double>(tests_.size()) + ends * static_cast<double>(trees_.size());
}

void SmallTrees::fill(Block& block, const float* x, int64_t rows, int64_t columns) const {
  for (int64_t r = 0; r < (rows + 15) / 16 * 16; ++r) {
    const float* row = x + std::min(r, rows - 1) * columns;
    float* to = block.values + r;
    for (const uint32_t feature : features_) {
      *to = row[feature];
      to += width_;
    }
  }
}

}  // namespace sardonyx::kernels
