// Decision trees: walked for many samples or many trees at a time. Trees of few leaves are not
// walked but tested as a whole: many samples side by side, or many trees for one sample.
#pragma once

#include <cstdint>
#include <memory>

#include "base/thread_pool.h"
#include "kernels/trees/leaf_weights.h"
#include "kernels/trees/nodes.h"
#include "kernels/trees/parts.h"
#include "kernels/trees/small_trees.h"
#include "kernels/trees/tree_groups.h"

namespace sardonyx::kernels {

// Trees for samples of T, float or double. Built once, run from many threads.
template <class T>
class Forest {
 public:
  // Throws Error (invalid_model) for an index out of range, a target outside [0, targets), or a
  // tree that leads back to a node above.
  Forest(ForestParts parts, int64_t targets);

  int64_t targets() const { return weights_.targets(); }
  int64_t tree_count() const { return static_cast<int64_t>(trees_.roots.size()); }
  // Features a sample must have.
  int64_t feature_count() const { return trees_.features; }

  // Entries of `leaves` that a run of so many rows needs.
  int64_t leaves_needed(int64_t rows) const;
  // y[rows, targets]: the weights of the leaves that each row of x[rows, columns] reaches, put
  // together tree after tree. A target that no leaf names is 0. The sum is the same for every
  // number of threads and rows. columns >= feature_count().
  void run(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns, double* y,
           int32_t* leaves, ThreadPool& pool) const;

 private:
  void find(const T* x, const TreeGroups::Row& row, int64_t begin, int64_t end,
            int32_t* found) const;
  void add(TreeAggregate aggregate, int64_t begin, int64_t end, const int32_t* found,
           double* y) const;
  void fill(TreeGroups::Row& row, const T* x) const;
  void run_row(TreeAggregate aggregate, const T* x, double* y, int32_t* leaves,
               ThreadPool& pool) const;
  void run_few(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns, double* y) const;
  void run_rows(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns,
                double* y) const;

  LeafWeights weights_;
  TreeNodes<T> trees_;
  std::shared_ptr<const SmallTrees> small_;   // null where no tree is of few leaves
  std::shared_ptr<const TreeGroups> groups_;  // null where trees are not tested side by side
  double row_cycles_ = 0;                     // that a row takes alone, about
  int64_t few_rows_ = 0;                      // so many at most are taken one by one
};

}  // namespace sardonyx::kernels
