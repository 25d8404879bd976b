// Forests against each tree walked node by node, on every instruction set.
#include "kernels/trees/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/rows_support.h"

#ifndef _WIN32
#include <malloc.h>
#endif

namespace sardonyx::kernels {
namespace {

// What the heap has given away; 0 where nobody counts.
size_t allocated_bytes() {
#ifdef _WIN32
  return 0;
#else
  return mallinfo2().uordblks;
#endif
}

using test::each_target;
using test::one_thread;
using test::two_threads;

struct Case {
  ForestParts parts;
  int64_t targets = 1, columns = 1;
};

struct Wanted {
  int max_leaves = 8;
  int64_t targets = 1;
  bool several_weights = false;
  int max_columns = 12, max_trees = 6;
};

// Trees of every test; some leaves and nodes belong to two parents, some trees are another one
// again.
class RandomForest {
 public:
  RandomForest(uint32_t seed, const Wanted& wanted)
      : random_(seed), several_weights_(wanted.several_weights) {
    made_.targets = wanted.targets;
    made_.columns = 1 + below(wanted.max_columns);
    made_.parts.leaf_begins.push_back(0);
    made_.parts.sets = {{}, {1}, {-1, 0, 0.5, 3}};
    const int trees = 1 + below(wanted.max_trees);
    for (int tree = 0; tree < trees; ++tree) {
      if (tree > 0 && below(20) == 0) {
        const auto other = static_cast<size_t>(below(tree));
        made_.parts.roots.push_back(made_.parts.roots[other]);
        made_.parts.root_is_leaf.push_back(made_.parts.root_is_leaf[other]);
        continue;
      }
      target_ = below(static_cast<int>(wanted.targets));
      const auto [index, is_leaf] = child(1 + below(wanted.max_leaves));
      made_.parts.roots.push_back(index);
      made_.parts.root_is_leaf.push_back(is_leaf);
    }
  }

  Case take() { return std::move(made_); }

 private:
  struct Child {
    int64_t index;
    bool is_leaf;
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  // Values that samples have too, so that thresholds are met.
  double threshold() { return (below(9) - 4) * 0.5; }

  Child leaf() {
    ForestParts& parts = made_.parts;
    const int weights = several_weights_ ? below(3) : 1;
    for (int i = 0; i < weights; ++i) {
      const int target = several_weights_ ? below(static_cast<int>(made_.targets)) : target_;
      parts.weights.push_back({target, (below(2000) - 1000) * 0.001});
    }
    parts.leaf_begins.push_back(static_cast<int64_t>(parts.weights.size()));
    return {static_cast<int64_t>(parts.leaf_begins.size()) - 2, true};
  }

  Child child(int leaves) {
    ForestParts& parts = made_.parts;
    if (leaves > 1 && below(40) == 0 && !parts.nodes.empty())
      return {below(static_cast<int>(parts.nodes.size())), false};  // its children are there
    if (leaves == 1) return leaf();
    const int left = 1 + below(leaves - 1);
    const Child yes = child(left), no = child(leaves - left);
    TreeNode node;
    node.test = static_cast<TreeTest>(below(below(3) == 0 ? 7 : 2));
    node.missing_is_yes = below(2) == 0;
    node.yes = yes.index, node.yes_is_leaf = yes.is_leaf;
    node.no = no.index, node.no_is_leaf = no.is_leaf;
    node.feature = below(static_cast<int>(made_.columns));
    node.threshold = node.test == TreeTest::member ? below(3) : threshold();
    if (node.test != TreeTest::member && below(30) == 0)
      node.threshold = below(2) == 0 ? std::nan("") : std::numeric_limits<double>::infinity();
    parts.nodes.push_back(node);
    return {static_cast<int64_t>(parts.nodes.size()) - 1, false};
  }

  std::mt19937 random_;
  Case made_;
  int target_ = 0;
  bool several_weights_;
};

bool is_yes(const ForestParts& parts, const TreeNode& node, double x) {
  if (std::isnan(x)) return node.missing_is_yes;
  switch (node.test) {
    case TreeTest::less_equal: return x <= node.threshold;
    case TreeTest::less: return x < node.threshold;
    case TreeTest::greater_equal: return x >= node.threshold;
    case TreeTest::greater: return x > node.threshold;
    case TreeTest::equal: return x == node.threshold;
    case TreeTest::not_equal: return x != node.threshold;
    case TreeTest::member: break;
  }
  const auto& set = parts.sets[static_cast<size_t>(node.threshold)];
  return std::ranges::find(set, x) != set.end();
}

template <class T>
std::vector<double> walked(const Case& c, TreeAggregate aggregate, const std::vector<T>& x,
                           int64_t rows) {
  const bool sums = aggregate == TreeAggregate::sum || aggregate == TreeAggregate::average;
  const double start = sums ? 0 : aggregate == TreeAggregate::min ? HUGE_VAL : -HUGE_VAL;
  std::vector<double> y(static_cast<size_t>(rows * c.targets), start);
  for (int64_t row = 0; row < rows; ++row) {
    double* const to = y.data() + row * c.targets;
    for (size_t tree = 0; tree < c.parts.roots.size(); ++tree) {
      int64_t at = c.parts.roots[tree];
      bool is_leaf = c.parts.root_is_leaf[tree];
      while (!is_leaf) {
        const TreeNode& node = c.parts.nodes[static_cast<size_t>(at)];
        const bool yes =
            is_yes(c.parts, node,
                   static_cast<double>(x[static_cast<size_t>(row * c.columns + node.feature)]));
        at = yes ? node.yes : node.no;
        is_leaf = yes ? node.yes_is_leaf : node.no_is_leaf;
      }
      const auto leaf = static_cast<size_t>(at);
      for (int64_t w = c.parts.leaf_begins[leaf]; w < c.parts.leaf_begins[leaf + 1]; ++w) {
        const LeafWeight& weight = c.parts.weights[static_cast<size_t>(w)];
        double& sum = to[weight.target];
        if (sums) sum += weight.weight;
        if (aggregate == TreeAggregate::min) sum = std::min(sum, weight.weight);
        if (aggregate == TreeAggregate::max) sum = std::max(sum, weight.weight);
      }
    }
    for (int64_t i = 0; i < c.targets; ++i) {
      if (aggregate == TreeAggregate::average) to[i] /= static_cast<double>(c.parts.roots.size());
      if (!sums && std::isinf(to[i])) to[i] = 0;
    }
  }
  return y;
}

template <class T>
void compare(uint32_t seed, const Case& c, const Forest<T>& forest, int64_t rows) {
  std::mt19937 random(seed);
  std::vector<T> x(static_cast<size_t>(rows * c.columns));
  for (T& v : x) {
    v = static_cast<T>(static_cast<int>(random() % 9) - 4) / 2;
    if (random() % 4 == 0) v += static_cast<T>(random() % 100) / 1000;
    if (random() % 20 == 0) v = std::numeric_limits<T>::quiet_NaN();
    if (random() % 40 == 0) v = -std::numeric_limits<T>::infinity();
    if (random() % 40 == 0) v = std::numeric_limits<T>::infinity();
    if (random() % 40 == 0) v = -T{0};
  }
  const auto aggregate = static_cast<TreeAggregate>(random() % 4);
  const std::vector<double> expected = walked(c, aggregate, x, rows);
  for (ThreadPool* pool : {&one_thread(), &two_threads()}) {
    std::vector<double> y(expected.size(), -7);
    std::vector<int32_t> leaves(static_cast<size_t>(forest.leaves_needed(rows)));
    forest.run(aggregate, x.data(), rows, c.columns, y.data(), leaves.data(), *pool);
    ASSERT_EQ(y, expected) << "seed " << seed << ", " << rows << " rows";
  }
}

TEST(Forest, GivesTheLeavesThatWalksReach) {
  each_target([] {
    for (uint32_t seed = 0; seed < 240; ++seed) {
      const int leaves[] = {1, 8, 31, 32, 33, 64, 255, 400};
      const int64_t sizes[] = {0, 1, 7, 8, 15, 16, 17, 33, 128, 129, 300};
      const Wanted wanted{.max_leaves = leaves[seed % 8],
                          .targets = seed % 3 == 0 ? 1 : 3,
                          .several_weights = seed % 2 == 0};
      const Case c = RandomForest(seed, wanted).take();
      const int64_t rows = sizes[seed % std::size(sizes)];
      compare<float>(seed, c, Forest<float>(c.parts, c.targets), rows);
      compare<double>(seed, c, Forest<double>(c.parts, c.targets), rows);
    }
  });
}

// Rows that are few go through trees side by side.
TEST(Forest, FewRowsReachTheLeavesThatWalksReach) {
  each_target([] {
    for (uint32_t seed = 0; seed < 120; ++seed) {
      const int leaves[] = {2, 4, 8, 16, 31, 32, 33, 64, 120, 300};
      const int columns[] = {1, 8, 9, 16, 17, 33, 70, 130, 200};
      const Wanted wanted{.max_leaves = leaves[seed % 10],
                          .targets = seed % 4 == 0 ? 3 : 1,
                          .several_weights = seed % 5 == 0,
                          .max_columns = columns[seed % 9],
                          .max_trees = 100};
      const Case c = RandomForest(seed, wanted).take();
      const Forest<float> forest(c.parts, c.targets);
      for (int64_t rows = 1; rows <= 40; rows += rows < 9 ? 1 : 5)
        compare<float>(seed, c, forest, rows);
    }
  });
}

// Trees that are many enough for a row to be shared by threads.
TEST(Forest, ThreadsShareARow) {
  each_target([] {
    for (const int leaves : {16, 31, 400}) {
      const Wanted wanted{.max_leaves = leaves, .max_columns = 40, .max_trees = 3000};
      const Case c = RandomForest(5, wanted).take();
      ASSERT_GT(c.parts.roots.size(), 1000U);
      const Forest<float> forest(c.parts, c.targets);
      for (const int64_t rows : {1, 2, 9}) compare<float>(7, c, forest, rows);
    }
  });
}

TEST(Forest, TreesOfManyFeaturesAreWalked) {
  Case c;
  c.columns = 2000;
  c.parts.leaf_begins = {0};
  for (int64_t i = 0; i < c.columns; ++i) {
    const int64_t leaf = 2 * i;
    for (int k = 0; k < 2; ++k) {
      c.parts.weights.push_back({0, static_cast<double>(leaf + k)});
      c.parts.leaf_begins.push_back(static_cast<int64_t>(c.parts.weights.size()));
    }
    TreeNode node;
    node.yes_is_leaf = node.no_is_leaf = true;
    node.feature = i, node.yes = leaf, node.no = leaf + 1, node.threshold = 0.25;
    c.parts.nodes.push_back(node);
    c.parts.roots.push_back(i);
    c.parts.root_is_leaf.push_back(false);
  }
  for (const int64_t rows : {1, 33}) compare<float>(1, c, Forest<float>(c.parts, c.targets), rows);
}

// A short file may name one tree a million times.
TEST(Forest, RootsOfOneTreeShareItsMemory) {
  Case c;
  c.parts.leaf_begins = {0};
  for (int64_t leaf = 0; leaf < 200; ++leaf) {
    c.parts.weights.push_back({0, static_cast<double>(leaf)});
    c.parts.leaf_begins.push_back(leaf + 1);
  }
  for (int64_t i = 0; i + 1 < 200; ++i) {  // node i: leaf i, or the node before it
    TreeNode node;
    node.threshold = static_cast<double>(i) / 100 - 1;
    node.yes = i, node.yes_is_leaf = i == 0;
    if (i > 0) node.yes = i - 1;
    node.no = i + 1, node.no_is_leaf = true;
    c.parts.nodes.push_back(node);
  }
  constexpr size_t roots = 100'000;
  c.parts.roots.assign(roots, 198);
  c.parts.root_is_leaf.assign(roots, false);
  const size_t before = allocated_bytes();
  const Forest<float> forest(c.parts, 1);
  EXPECT_LT(allocated_bytes(), before + (size_t{32} << 20));
  c.parts.roots.resize(300);
  c.parts.root_is_leaf.resize(300);
  for (const int64_t rows : {1, 128}) compare<float>(3, c, Forest<float>(c.parts, 1), rows);
}

// Large trees among stumps would be mostly empty side by side.
TEST(Forest, TreesOfDifferentSizesTakeLittleMemory) {
  Case c;
  c.parts.leaf_begins = {0};
  const auto add_leaf = [&] {
    c.parts.weights.push_back({0, static_cast<double>(c.parts.weights.size())});
    c.parts.leaf_begins.push_back(static_cast<int64_t>(c.parts.weights.size()));
    return static_cast<int64_t>(c.parts.weights.size()) - 1;
  };
  for (int tree = 0; tree < 3200; ++tree) {
    const int leaves = tree % 16 == 0 ? 200 : 2;
    int64_t below = add_leaf();
    for (int i = 1; i < leaves; ++i) {
      TreeNode node;
      node.threshold = (i % 17) * 0.25 - 2;
      node.yes = below, node.yes_is_leaf = i == 1;
      node.no = add_leaf(), node.no_is_leaf = true;
      below = static_cast<int64_t>(c.parts.nodes.size());
      c.parts.nodes.push_back(node);
    }
    c.parts.roots.push_back(below);
    c.parts.root_is_leaf.push_back(false);
  }
  const size_t before = allocated_bytes();
  const Forest<float> forest(c.parts, 1);
  EXPECT_LT(allocated_bytes(), before + (size_t{12} << 20));
  for (const int64_t rows : {1, 40}) compare<float>(9, c, forest, rows);
}

}  // namespace
}  // namespace sardonyx::kernels
