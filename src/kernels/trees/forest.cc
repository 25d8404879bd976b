#include "kernels/trees/forest.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/fail.h"
#include "kernels/trees/walk.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t row_block = 128;
// Walks of rows through trees, and cycles of tests, that are worth handing to another thread.
constexpr int64_t block_walks = 1024;
constexpr double block_cycles = 8000;
// Rows that may be few, and trees that one of them takes at a time.
constexpr int64_t max_few = 16, max_trees = TreeGroups::max_step * trees_together;

// y[r * step] += values[places[r]], for `rows` results.
void add_values(const double* values, const int32_t* places, int64_t rows, int64_t step,
                double* y) {
  constexpr int64_t together = 4;
  int64_t r = 0;
  for (; r + together <= rows; r += together) {
    for (int64_t k = 0; k < together; ++k, y += step) *y += values[places[r + k]];
  }
  for (; r < rows; ++r, y += step) *y += values[places[r]];
}

}  // namespace

template <class T>
Forest<T>::Forest(ForestParts parts, int64_t targets) : weights_(parts, targets) {
  trees_ = tree_nodes<T>(std::move(parts), targets);
  weights_.find_values(trees_);
  row_cycles_ = walk_cycles(trees_);
  few_rows_ = walks_together - 1;
  if constexpr (std::is_same_v<T, float>) {
    if (vector_lanes() == 1) return;  // walks are faster
    const auto small = std::make_shared<const SmallTrees>(trees_, weights_.values());
    if (!small->any()) return;
    small_ = small;
    const auto groups = std::make_shared<const TreeGroups>(trees_, *small);
    if (!groups->any() || groups->cycles() > row_cycles_) return;
    groups_ = groups;
    row_cycles_ = groups->cycles();
    few_rows_ =
        std::clamp<int64_t>(static_cast<int64_t>(small->cycles() / row_cycles_), 1, max_few);
  }
}

template <class T>
int64_t Forest<T>::leaves_needed(int64_t rows) const {
  return rows == 1 ? (tree_count() + trees_together - 1) / trees_together * trees_together : 0;
}

// What one row reaches in the trees [begin, end), of which `begin` is the first of a group: places
// of leaves where there are groups, else leaves.
template <class T>
void Forest<T>::find(const T* x, const TreeGroups::Row& row, int64_t begin, int64_t end,
                     int32_t* found) const {
  if (groups_ != nullptr) {
    const int64_t groups = (end - begin + trees_together - 1) / trees_together;
    return groups_->find(row, static_cast<size_t>(begin / trees_together),
                         static_cast<size_t>(groups), found);
  }
  for (int64_t tree = begin; tree < end; tree += walks_together) {
    const int64_t count = std::min<int64_t>(walks_together, end - tree);
    walk_trees(trees_, static_cast<size_t>(tree), static_cast<size_t>(count), x, found);
    found += count;
  }
}

// Adds what `find` has found to the result of the row.
template <class T>
void Forest<T>::add(TreeAggregate aggregate, int64_t begin, int64_t end, const int32_t* found,
                    double* y) const {
  const int64_t count = end - begin;
  if (!weights_.adds_values(aggregate)) {
    for (int64_t i = 0; i < count; ++i)
      weights_.add(aggregate, groups_ != nullptr ? small_->leaf(found[i]) : found[i], y);
    return;
  }
  const double* const values = groups_ != nullptr ? small_->values() : weights_.values().data();
  int64_t i = 0;
  if (targets() > 1) {
    for (; i < count; ++i) y[weights_.target(static_cast<size_t>(begin + i))] += values[found[i]];
    return;
  }
  double sum = *y;
  for (; i + 8 <= count; i += 8) {
    for (int64_t k = 0; k < 8; ++k) sum += values[found[i + k]];
  }
  for (; i < count; ++i) sum += values[found[i]];
  *y = sum;
}

template <class T>
void Forest<T>::fill(TreeGroups::Row& row, const T* x) const {
  if constexpr (std::is_same_v<T, float>) {
    if (groups_ != nullptr) groups_->fill(row, x);
  }
}

// One row, whose result has been begun, by several threads.
template <class T>
void Forest<T>::run_row(TreeAggregate aggregate, const T* x, double* y, int32_t* leaves,
                        ThreadPool& pool) const {
  TreeGroups::Row row;
  fill(row, x);
  const auto blocks = std::max<int64_t>(1, static_cast<int64_t>(row_cycles_ / block_cycles));
  const int64_t groups = (tree_count() + trees_together - 1) / trees_together,
                block = (groups + blocks - 1) / blocks * trees_together;
  pool.parallel_for(tree_count(), block, [&](int64_t begin, int64_t end, int) {
    find(x, row, begin, end, leaves + begin);
  });
  add(aggregate, 0, tree_count(), leaves, y);
  weights_.finish(aggregate, trees_.roots.size(), y);
}

// At most max_few rows, whose results have been begun, one by one. Some trees at a time, so that
// they stay in the cache for all rows.
template <class T>
void Forest<T>::run_few(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns,
                        double* y) const {
  TreeGroups::Row made[max_few];
  for (int64_t r = 0; r < rows; ++r) fill(made[r], x + r * columns);
  const int64_t step =
      groups_ != nullptr ? static_cast<int64_t>(groups_->step()) * trees_together : trees_together;
  for (int64_t begin = 0; begin < tree_count(); begin += step) {
    const int64_t end = std::min(begin + step, tree_count());
    for (int64_t r = 0; r < rows; ++r) {
      int32_t found[max_trees];
      find(x + r * columns, made[r], begin, end, found);
      add(aggregate, begin, end, found, y + r * targets());
    }
  }
  for (int64_t r = 0; r < rows; ++r)
    weights_.finish(aggregate, trees_.roots.size(), y + r * targets());
}

// At most a block of rows, whose results have been begun. Tree by tree, so that a tree stays in the
// cache for the whole block.
template <class T>
void Forest<T>::run_rows(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns,
                         double* y) const {
  const bool plain = weights_.adds_values(aggregate);
  typename SmallTrees::Block block;
  if constexpr (std::is_same_v<T, float>) {
    if (small_ != nullptr) small_->fill(block, x, rows, columns);
  }
  const int64_t targets = this->targets();
  for (size_t tree = 0; tree < trees_.roots.size(); ++tree) {
    double* const to = plain ? y + weights_.target(tree) : y;
    if (small_ != nullptr && small_->has(tree)) {
      int32_t places[SmallTrees::max_rows];
      small_->find(tree, block, rows, places);
      if (plain) {
        add_values(small_->values(), places, rows, targets, to);
      } else {
        for (int64_t r = 0; r < rows; ++r)
          weights_.add(aggregate, small_->leaf(places[r]), to + r * targets);
      }
      continue;
    }
    for (int64_t row = 0; row < rows; row += walks_together) {
      const int64_t count = std::min<int64_t>(walks_together, rows - row);
      int32_t found[walks_together];
      walk_rows(trees_, tree, x + row * columns, columns, count, found);
      for (int64_t l = 0; l < count; ++l) {
        double* const sum = to + (row + l) * targets;
        if (plain)
          *sum += weights_.values()[static_cast<size_t>(found[l])];
        else
          weights_.add(aggregate, found[l], sum);
      }
    }
  }
  for (int64_t row = 0; row < rows; ++row)
    weights_.finish(aggregate, trees_.roots.size(), y + row * targets);
}

template <class T>
void Forest<T>::run(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns, double* y,
                    int32_t* leaves, ThreadPool& pool) const {
  if (columns < feature_count())
    fail(ErrorCode::run_failed, "the trees look at feature {}; the input has {} columns",
         feature_count() - 1, columns);
  std::fill_n(y, rows * targets(), LeafWeights::start(aggregate));
  if (rows == 1 && pool.threads() > 1 && row_cycles_ >= 2 * block_cycles)
    return run_row(aggregate, x, y, leaves, pool);
  if (rows <= few_rows_) {
    const auto block = static_cast<int64_t>(block_cycles / std::max(1., row_cycles_)) + 1;
    pool.parallel_for(rows, block, [&](int64_t begin, int64_t end, int) {
      run_few(aggregate, x + begin * columns, end - begin, columns, y + begin * targets());
    });
    return;
  }
  // Large blocks use a tree again and again while it is near; small ones keep more threads busy. A
  // row's sums are the same in any block.
  const int64_t step = small_ != nullptr ? rows_together : walks_together,
                least = small_ != nullptr
                            ? static_cast<int64_t>(16 * block_cycles / small_->cycles())
                            : block_walks / std::max<int64_t>(1, tree_count()),
                wanted = (rows + 2 * pool.threads() - 1) / (2 * pool.threads());
  const int64_t block =
      pool.threads() == 1
          ? row_block
          : std::clamp((std::max(least, wanted) + step - 1) / step * step, step, row_block);
  pool.parallel_for(rows, block, [&](int64_t begin, int64_t end, int) {
    const int64_t most = small_ != nullptr ? small_->width() : end - begin;
    for (int64_t row = begin; row < end; row += most) {
      run_rows(aggregate, x + row * columns, std::min(most, end - row), columns,
               y + row * targets());
    }
  });
}

template class Forest<float>;
template class Forest<double>;

}  // namespace sardonyx::kernels
