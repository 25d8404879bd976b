#include "kernels/trees/leaf_weights.h"

#include <algorithm>
#include <cmath>

namespace sardonyx::kernels {

template <class T>
void LeafWeights::find_values(const TreeNodes<T>& trees) {
  for (size_t i = 0; i + 1 < begins_.size(); ++i)
    if (begins_[i + 1] - begins_[i] != 1) return;
  // The nodes of a tree follow those of the tree before it, but trees may share some.
  for (size_t tree = 0; tree < trees.roots.size(); ++tree) {
    const auto begin = static_cast<size_t>(trees.roots[tree]);
    const auto end = tree + 1 < trees.roots.size() ? static_cast<size_t>(trees.roots[tree + 1])
                                                   : trees.nodes.size();
    int32_t target = -1;
    for (size_t i = begin; i < end; ++i) {
      const int32_t leaf = trees.nodes[i].leaf, next = trees.nodes[i].next;
      if (leaf < 0) {
        const bool inside = static_cast<size_t>(next) > begin && static_cast<size_t>(next) < end;
        if (!inside && targets_ > 1) return tree_targets_.clear();
        continue;
      }
      const int32_t own = weights_[static_cast<size_t>(leaf)].target;
      if (target >= 0 && own != target) return tree_targets_.clear();
      target = own;
    }
    tree_targets_.push_back(std::max(target, 0));
  }
  for (const LeafWeight& weight : weights_) values_.push_back(weight.weight);
}

double LeafWeights::start(TreeAggregate aggregate) {
  if (is_sum(aggregate)) return 0;
  return aggregate == TreeAggregate::min ? HUGE_VAL : -HUGE_VAL;
}

void LeafWeights::finish(TreeAggregate aggregate, size_t trees, double* y) const {
  for (int64_t i = 0; i < targets_; ++i) {
    if (aggregate == TreeAggregate::average) y[i] /= static_cast<double>(trees);
    if (!is_sum(aggregate) && std::isinf(y[i])) y[i] = 0;
  }
}

template void LeafWeights::find_values(const TreeNodes<float>& trees);
template void LeafWeights::find_values(const TreeNodes<double>& trees);

}  // namespace sardonyx::kernels
