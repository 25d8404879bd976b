// The trees of few leaves of a forest for samples of float, as kernels/trees/leaf_sets tests them
// for many rows at a time.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/trees/leaf_sets.h"
#include "kernels/trees/nodes.h"

namespace sardonyx::kernels {

// The leaves of a tree lie in the order in which failed tests come first: a test that is passed
// takes those away that are below its node's first child. Where they lie among the leaves of all
// trees are their places.
class SmallTrees {
 public:
  static constexpr int32_t max_leaves = 256;  // with more, walks are shorter
  static constexpr int64_t max_rows = 128;    // of one block

  // `values`: of the forest's leaves, or none.
  SmallTrees(const TreeNodes<float>& trees, std::span<const double> values);

  // None where trees have many leaves, or tests more features than a block has room for.
  bool any() const { return !words_.empty(); }
  bool has(size_t tree) const { return trees_[tree].words > 0; }

  // The leaf at a place, and its value where the forest has values.
  int32_t leaf(int32_t place) const { return leaves_[static_cast<size_t>(place)]; }
  const double* values() const { return values_.data(); }

  // What is laid out. LeafTest::place is an index of features(), times width().
  const LeafTree& tree(size_t tree) const { return trees_[tree]; }
  std::span<const LeafWord> words(const LeafTree& tree) const {
    return std::span(words_).subspan(static_cast<size_t>(tree.first_word),
                                     static_cast<size_t>(tree.words));
  }
  std::span<const LeafTest> tests() const { return tests_; }
  std::span<const uint32_t> features() const { return features_; }

  // Rows of one block.
  int64_t width() const { return width_; }

  // Cycles that the tests of 16 rows take, about.
  double cycles() const;

  // The features that tests ask for, those of a row one below the other.
  struct Block {
    alignas(64) float values[8192];
  };
  void fill(Block& block, const float* x, int64_t rows, int64_t columns) const;

  // places[r]: of the leaf that row r of a block reaches in `tree`. Room for max_rows.
  void find(size_t tree, const Block& block, int64_t rows, int32_t* places) const {
    find_places(trees_[tree], words_.data(), tests_.data(), block.values, rows, places);
  }

 private:
  static constexpr size_t max_floats = std::size(Block{}.values);
  using Node = TreeNodes<float>::Node;

  // A node by the leaves [begin, end) below its first child.
  struct Split {
    const Node* node;
    int32_t begin, end;
  };
  struct Laying {
    const TreeNodes<float>& trees;
    std::unordered_map<uint32_t, uint32_t> places;  // of the features
    std::vector<Split> splits;                      // of one tree
  };

  void add(Laying& laying, size_t tree);
  bool collect(Laying& laying, int32_t at, int32_t first);
  void add_tests(Laying& laying, int32_t word, bool sign_flipped);
  uint32_t place(Laying& laying, uint32_t feature);

  std::vector<LeafTree> trees_;
  std::vector<LeafWord> words_;
  std::vector<LeafTest> tests_;
  std::vector<int32_t> leaves_;
  std::vector<double> values_;
  std::vector<uint32_t> features_;
  int64_t width_ = 16;
};

}  // namespace sardonyx::kernels
