#include "kernels/trees/forest.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"

namespace sardonyx::kernels {
namespace {

constexpr uint32_t missing_bit = 1u << 31;
constexpr int64_t row_block = 64;

int32_t encoded(int64_t child, bool is_leaf) {
  return static_cast<int32_t>(is_leaf ? ~child : child);
}

void check_index(int64_t index, int64_t count, const char* what) {
  if (index < 0 || index >= count)
    fail(ErrorCode::invalid_model, "a tree names {} {}, but there are {}", what, index, count);
}

}  // namespace

Forest::Forest(std::vector<TreeNode> nodes, std::vector<int64_t> roots,
               std::vector<bool> root_is_leaf, std::vector<int64_t> leaf_begins,
               std::vector<LeafWeight> weights, std::vector<std::vector<double>> sets,
               int64_t targets)
    : leaf_begins_(std::move(leaf_begins)),
      weights_(std::move(weights)),
      sets_(std::move(sets)),
      targets_(targets) {
  const auto node_count = static_cast<int64_t>(nodes.size()),
             leaf_count = static_cast<int64_t>(leaf_begins_.size()) - 1;
  if (node_count >= INT32_MAX || leaf_count >= INT32_MAX)
    fail(ErrorCode::unsupported, "a forest of {} nodes and {} leaves", node_count, leaf_count);
  for (const LeafWeight& weight : weights_) check_index(weight.target, targets, "target");
  for (auto& set : sets_) std::sort(set.begin(), set.end());
  for (const TreeNode& node : nodes) {
    check_index(node.yes, node.yes_is_leaf ? leaf_count : node_count,
                node.yes_is_leaf ? "leaf" : "node");
    check_index(node.no, node.no_is_leaf ? leaf_count : node_count,
                node.no_is_leaf ? "leaf" : "node");
    check_index(node.feature, missing_bit, "feature");
    if (node.test == TreeTest::member)
      check_index(static_cast<int64_t>(node.threshold), static_cast<int64_t>(sets_.size()), "set");
    features_ = std::max(features_, node.feature + 1);
    only_less_equal_ &= node.test == TreeTest::less_equal;
    nodes_.push_back({node.threshold,
                      static_cast<uint32_t>(node.feature) | (node.missing_is_yes ? missing_bit : 0),
                      encoded(node.yes, node.yes_is_leaf), encoded(node.no, node.no_is_leaf),
                      static_cast<uint32_t>(node.test)});
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    check_index(roots[i], root_is_leaf[i] ? leaf_count : node_count, "root");
    roots_.push_back(encoded(roots[i], root_is_leaf[i]));
  }
  check_acyclic();
}

// A walk that never meets a node below itself ends.
void Forest::check_acyclic() const {
  enum State : uint8_t { unseen, open, done };
  std::vector<State> states(nodes_.size(), unseen);
  std::vector<int32_t> path;
  for (const int32_t root : roots_) {
    if (root >= 0) path.push_back(root);
    while (!path.empty()) {
      const auto at = static_cast<size_t>(path.back());
      if (states[at] != unseen) {  // back from below, or reached twice
        states[at] = done;
        path.pop_back();
        continue;
      }
      states[at] = open;
      for (const int32_t child : {nodes_[at].yes, nodes_[at].no}) {
        if (child < 0) continue;
        const State state = states[static_cast<size_t>(child)];
        if (state == open)
          fail(ErrorCode::invalid_model, "a tree leads from node {} back to node {}", at, child);
        if (state == unseen) path.push_back(child);
      }
    }
  }
}

bool Forest::passes(const Packed& node, double value) const {
  switch (static_cast<TreeTest>(node.test)) {
    case TreeTest::less_equal: return value <= node.threshold;
    case TreeTest::less: return value < node.threshold;
    case TreeTest::greater_equal: return value >= node.threshold;
    case TreeTest::greater: return value > node.threshold;
    case TreeTest::equal: return value == node.threshold;
    case TreeTest::not_equal: return value != node.threshold;
    case TreeTest::member: break;
  }
  const auto& set = sets_[static_cast<size_t>(node.threshold)];
  return std::binary_search(set.begin(), set.end(), value);
}

template <class T>
int32_t Forest::leaf_of(int32_t at, const T* row) const {
  if (only_less_equal_) {
    while (at >= 0) {
      const Packed& node = nodes_[static_cast<size_t>(at)];
      const auto value = static_cast<double>(row[node.feature & ~missing_bit]);
      const bool yes =
          value <= node.threshold || ((node.feature & missing_bit) != 0 && std::isnan(value));
      at = yes ? node.yes : node.no;
    }
    return ~at;
  }
  while (at >= 0) {
    const Packed& node = nodes_[static_cast<size_t>(at)];
    const auto value = static_cast<double>(row[node.feature & ~missing_bit]);
    const bool yes = std::isnan(value) ? (node.feature & missing_bit) != 0 : passes(node, value);
    at = yes ? node.yes : node.no;
  }
  return ~at;
}

template <class T>
void Forest::run(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns, double* y,
                 ThreadPool& pool) const {
  if (columns < features_)
    fail(ErrorCode::run_failed, "the trees look at feature {}; the input has {} columns",
         features_ - 1, columns);
  const bool sums = aggregate == TreeAggregate::sum || aggregate == TreeAggregate::average;
  const double start = sums ? 0 : aggregate == TreeAggregate::min ? HUGE_VAL : -HUGE_VAL;
  pool.parallel_for(rows, row_block, [&](int64_t begin, int64_t end, int) {
    std::fill(y + begin * targets_, y + end * targets_, start);
    // Tree by tree, so that a tree stays in the cache for the whole block.
    for (const int32_t root : roots_) {
      for (int64_t row = begin; row < end; ++row) {
        const auto leaf = static_cast<size_t>(leaf_of(root, x + row * columns));
        for (int64_t w = leaf_begins_[leaf]; w < leaf_begins_[leaf + 1]; ++w) {
          const LeafWeight& weight = weights_[static_cast<size_t>(w)];
          double& to = y[row * targets_ + weight.target];
          if (sums)
            to += weight.weight;
          else
            to = aggregate == TreeAggregate::min ? std::min(to, weight.weight)
                                                 : std::max(to, weight.weight);
        }
      }
    }
    for (int64_t i = begin * targets_; i < end * targets_; ++i) {
      if (aggregate == TreeAggregate::average) y[i] /= static_cast<double>(roots_.size());
      if (!sums && std::isinf(y[i])) y[i] = 0;
    }
  });
}

template void Forest::run<float>(TreeAggregate, const float*, int64_t, int64_t, double*,
                                 ThreadPool&) const;
template void Forest::run<double>(TreeAggregate, const double*, int64_t, int64_t, double*,
                                  ThreadPool&) const;

}  // namespace sardonyx::kernels
