// Decision trees: nodes in arrays, walked for many samples at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

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

// Built once, run from many threads.
class Forest {
 public:
  // Leaf i owns weights [leaf_begins[i], leaf_begins[i + 1]). Throws Error (invalid_model) for an
  // index out of range, a target outside [0, targets), or a tree that leads back to a node above.
  Forest(std::vector<TreeNode> nodes, std::vector<int64_t> roots, std::vector<bool> root_is_leaf,
         std::vector<int64_t> leaf_begins, std::vector<LeafWeight> weights,
         std::vector<std::vector<double>> sets, int64_t targets);

  int64_t targets() const { return targets_; }
  int64_t tree_count() const { return static_cast<int64_t>(roots_.size()); }
  // Features a sample must have.
  int64_t feature_count() const { return features_; }

  // y[rows, targets]: the weights of the leaves that each row of x[rows, columns] reaches, put
  // together. A target that no leaf names is 0. The sum is the same for every number of threads.
  // T is float or double; columns >= feature_count().
  template <class T>
  void run(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns, double* y,
           ThreadPool& pool) const;

 private:
  struct Packed {  // children: >= 0 a node, else ~leaf
    double threshold;
    uint32_t feature;  // the top bit: missing_is_yes
    int32_t yes, no;
    uint32_t test;
  };
  template <class T>
  int32_t leaf_of(int32_t at, const T* row) const;
  bool passes(const Packed& node, double value) const;
  void check_acyclic() const;

  std::vector<Packed> nodes_;
  std::vector<int32_t> roots_;
  std::vector<int64_t> leaf_begins_;
  std::vector<LeafWeight> weights_;
  std::vector<std::vector<double>> sets_;  // sorted
  int64_t targets_;
  int64_t features_ = 0;
  bool only_less_equal_ = true;
};

}  // namespace sardonyx::kernels
