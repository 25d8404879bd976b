// The small trees of a forest 16 side by side, as kernels/trees/leaf_sets tests them for one row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/trees/leaf_sets.h"
#include "kernels/trees/nodes.h"
#include "kernels/trees/small_trees.h"

namespace sardonyx::kernels {

// Group g holds trees [16 g, 16 g + 16) of a forest. Features are those that its tests ask for, and
// once more with their signs sign_flipped where tests ask for that.
class TreeGroups {
 public:
  static constexpr size_t max_step = 4;

  TreeGroups(const TreeNodes<float>& trees, const SmallTrees& small);

  // None where some tree has many leaves, trees are of very different sizes, or the processor has
  // no means to look up so many features.
  bool any() const { return !groups_.empty(); }

  // Cycles that the tests of a row take, about.
  double cycles() const;
  // Groups, at most max_step, whose tests stay in the first-level cache while rows pass them one
  // by one.
  size_t step() const;

  // What tests ask for of one row.
  struct Row {
    alignas(64) float values[trees_together * max_vectors];
  };
  void fill(Row& row, const float* x) const;

  // places[i]: of the leaf that the row reaches in tree i of `count` groups from `first` on, as in
  // SmallTrees. Room for 16 trees a group.
  void find(const Row& row, size_t first, size_t count, int32_t* places) const {
    find_places_of_row(std::span(groups_).subspan(first, count), word_ends_.data(), tests_.data(),
                       row.values, features_.size(), places);
  }

 private:
  struct Laying {
    const SmallTrees& small;
    std::vector<int32_t> numbers;  // of its features, plain and sign_flipped; -1: not asked for
  };

  bool has_room(const SmallTrees& small) const;
  bool add(Laying& laying, size_t first, size_t count);
  void add_word(Laying& laying, size_t first, size_t count, size_t word);
  uint8_t number(Laying& laying, const LeafTest& test, bool sign_flipped);

  std::vector<TreeGroup> groups_;
  std::vector<int32_t> word_ends_;
  std::vector<SideTests> tests_;
  std::vector<uint32_t> features_;  // with their signs
};

}  // namespace sardonyx::kernels
