// Decision trees: nodes in arrays, walked for many samples or many trees at a time; trees of few
// leaves are not walked but tested as a whole, for many samples at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/trees/leaf_sets.h"

namespace sardonyx::kernels {

enum class TreeTest : uint8_t {
  less_equal,
  less,
  greater_equal,
  greater,
  equal,
  not_equal,
  member
};
enum class TreeAggregate : int32_t { average, sum, min, max };

// A node as whoever builds a forest describes it. `yes` and `no` are indices of nodes, or of leaves
// where the flag says so.
struct TreeNode {
  TreeTest test = TreeTest::less_equal;
  bool missing_is_yes = false;  // NaN follows `yes`
  bool yes_is_leaf = false;
  bool no_is_leaf = false;
  int64_t feature = 0;
  int64_t yes = 0;
  int64_t no = 0;
  double threshold = 0;  // the split; for member: the index of a set
};

struct LeafWeight {
  int32_t target;
  double weight;
};

struct ForestParts {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  std::vector<bool> root_is_leaf;
  std::vector<int64_t> leaf_begins;  // leaf i owns weights [leaf_begins[i], leaf_begins[i + 1])
  std::vector<LeafWeight> weights;
  std::vector<std::vector<double>> sets;  // of member nodes
};

// Trees for samples of T, float or double. Built once, run from many threads.
template <class T>
class Forest {
 public:
  // Throws Error (invalid_model) for an index out of range, a target outside [0, targets), or a
  // tree that leads back to a node above.
  Forest(ForestParts parts, int64_t targets);

  int64_t targets() const { return targets_; }
  int64_t tree_count() const { return static_cast<int64_t>(roots_.size()); }
  // Features a sample must have.
  int64_t feature_count() const { return features_; }

  // Entries of `leaves` that a run of so many rows needs.
  int64_t leaves_needed(int64_t rows) const { return rows < lanes ? rows * tree_count() : 0; }
  // y[rows, targets]: the weights of the leaves that each row of x[rows, columns] reaches, put
  // together tree after tree. A target that no leaf names is 0. The sum is the same for every
  // number of threads and rows. columns >= feature_count().
  void run(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns, double* y,
           int32_t* leaves, ThreadPool& pool) const;

 private:
  static constexpr int lanes = 8;

  // One test for every kind of node: the second of the two nodes at `next` where the value, its
  // sign turned where the top bit of `feature` says so, is at most `bound`; else the first, NaN
  // too. A leaf's bound is NaN and its `next` is itself, so that a walk may go on below it.
  struct Node {
    T bound;
    uint32_t feature;
    int32_t next;
    int32_t leaf;  // -1: no leaf
  };
  class Builder;
  class Sets;  // the trees of few leaves, as kernels/trees/leaf_sets takes them

  template <class SampleOf>
  void walk(int32_t (&at)[lanes], int steps, SampleOf&& sample) const;
  void walk_rows(size_t tree, const T* x, int64_t columns, int64_t count,
                 int32_t (&leaves)[lanes]) const;
  void walk_trees(size_t first, size_t count, const T* x, int32_t* leaves) const;
  void find_values();
  void run_rows(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns,
                double* y) const;
  void add(TreeAggregate aggregate, int32_t leaf, double* y) const;
  void finish(TreeAggregate aggregate, double* y) const;

  std::vector<Node> nodes_;
  std::vector<int32_t> roots_;
  std::vector<int32_t> heights_;  // of the trees: 0 for a leaf alone
  std::vector<int64_t> leaf_begins_;
  std::vector<LeafWeight> weights_;
  // Of the leaves and of the trees, where each leaf has one weight and each tree one target.
  std::vector<double> values_;
  std::vector<int32_t> tree_targets_;
  std::shared_ptr<const Sets> sets_;  // null where no tree is of few leaves
  int64_t targets_;
  int64_t features_ = 0;
};

}  // namespace sardonyx::kernels
