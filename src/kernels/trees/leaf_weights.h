// What the leaves of a forest weigh, and how their weights are put together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/trees/nodes.h"
#include "kernels/trees/parts.h"

namespace sardonyx::kernels {

enum class TreeAggregate : int32_t { average, sum, min, max };

inline bool is_sum(TreeAggregate aggregate) {
  return aggregate == TreeAggregate::sum || aggregate == TreeAggregate::average;
}

class LeafWeights {
 public:
  LeafWeights(const ForestParts& parts, int64_t targets)
      : begins_(parts.leaf_begins), weights_(parts.weights), targets_(targets) {}

  // Finds out whether each leaf has one weight and each tree one target.
  template <class T>
  void find_values(const TreeNodes<T>& trees);

  int64_t targets() const { return targets_; }

  // Whether a tree adds the value of its leaf to its target.
  bool adds_values(TreeAggregate aggregate) const { return is_sum(aggregate) && !values_.empty(); }
  std::span<const double> values() const { return values_; }  // of the leaves
  int32_t target(size_t tree) const { return tree_targets_[tree]; }

  // y[targets], the result of a row: what it begins with, the weights of a leaf, and the end.
  static double start(TreeAggregate aggregate);
  void add(TreeAggregate aggregate, int32_t leaf, double* y) const {
    const auto at = static_cast<size_t>(leaf);
    for (int64_t w = begins_[at]; w < begins_[at + 1]; ++w) {
      const LeafWeight& weight = weights_[static_cast<size_t>(w)];
      double& to = y[weight.target];
      if (aggregate == TreeAggregate::min)
        to = std::min(to, weight.weight);
      else if (aggregate == TreeAggregate::max)
        to = std::max(to, weight.weight);
      else
        to += weight.weight;
    }
  }
  void finish(TreeAggregate aggregate, size_t trees, double* y) const;

 private:
  std::vector<int64_t> begins_;
  std::vector<LeafWeight> weights_;
  std::vector<double> values_;  // none where find_values found otherwise
  std::vector<int32_t> tree_targets_;
  int64_t targets_ = 0;
};

}  // namespace sardonyx::kernels
