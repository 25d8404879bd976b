// A forest as whoever reads one describes it: nodes, leaves and what those weigh.
#pragma once

#include <cstdint>
#include <vector>

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

// `yes` and `no` are indices of nodes, or of leaves
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

}  // namespace sardonyx::kernels
