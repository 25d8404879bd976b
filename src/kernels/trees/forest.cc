#include "kernels/trees/forest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <unordered_map>

#include "base/fail.h"

namespace sardonyx::kernels {
namespace {

constexpr uint32_t sign_flag = 1u << 31;
constexpr int64_t row_block = 128, tree_block = 256;
// Rows through trees that are worth handing to another thread, by walks and by tests.
constexpr int64_t block_walks = 1024, block_tests = 4096;
constexpr size_t most_nodes = size_t{1} << 29;
// Trees up to this height are walked to their end; in higher ones most paths are shorter.
constexpr int32_t low_height = 8;

void check_index(int64_t index, int64_t count, const char* what) {
  if (index < 0 || index >= count)
    fail(ErrorCode::invalid_model, "a tree names {} {}, but there are {}", what, index, count);
}

int32_t encoded(int64_t child, bool is_leaf) {
  return static_cast<int32_t>(is_leaf ? ~child : child);
}

bool is_sum(TreeAggregate aggregate) {
  return aggregate == TreeAggregate::sum || aggregate == TreeAggregate::average;
}

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T never = std::numeric_limits<T>::quiet_NaN();  // nothing is at most NaN

// The greatest T that is at most `threshold` (less than it): samples of T pass both tests alike.
template <class T>
T greatest(double threshold, bool less) {
  if (std::isnan(threshold)) return never<T>;
  T bound = static_cast<T>(threshold);
  if (static_cast<double>(bound) > threshold) bound = std::nextafter(bound, -infinity<T>);
  if (!less || static_cast<double>(bound) < threshold) return bound;
  return bound == -infinity<T> ? never<T> : std::nextafter(bound, -infinity<T>);
}

template <class T>
T with_sign_turned(T value, uint32_t flag) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ flag);
  else
    return std::bit_cast<double>(std::bit_cast<uint64_t>(value) ^ static_cast<uint64_t>(flag)
                                                                      << 32);
}

}  // namespace

// Brings all tests to one, and lays the nodes of a tree side by side.
template <class T>
class Forest<T>::Builder {
 public:
  Builder(ForestParts parts, Forest& forest) : parts_(std::move(parts)), forest_(forest) {}

  void build() {
    check();
    splits_.resize(parts_.nodes.size());
    for (size_t i = 0; i < parts_.nodes.size(); ++i) add_node(i);
    measure();
    pairs_.assign(splits_.size(), -1);
    for (const int32_t root : roots_) add_tree(root);
  }

 private:
  // A node by what it compares with; children: >= 0 a split, else ~leaf.
  struct Split {
    T bound;
    uint32_t feature;
    int32_t first, second;
  };
  struct Question {
    int64_t feature;
    double threshold;
    bool less;  // than the threshold, or equal too
  };

  void check() {
    const auto node_count = static_cast<int64_t>(parts_.nodes.size()),
               leaf_count = static_cast<int64_t>(parts_.leaf_begins.size()) - 1;
    if (node_count >= static_cast<int64_t>(most_nodes) || leaf_count >= INT32_MAX)
      fail(ErrorCode::unsupported, "a forest of {} nodes and {} leaves", node_count, leaf_count);
    for (const LeafWeight& weight : parts_.weights)
      check_index(weight.target, forest_.targets_, "target");
    for (const TreeNode& node : parts_.nodes) {
      check_index(node.yes, node.yes_is_leaf ? leaf_count : node_count,
                  node.yes_is_leaf ? "leaf" : "node");
      check_index(node.no, node.no_is_leaf ? leaf_count : node_count,
                  node.no_is_leaf ? "leaf" : "node");
      check_index(node.feature, sign_flag, "feature");
      if (node.test == TreeTest::member)
        check_index(static_cast<int64_t>(node.threshold), static_cast<int64_t>(parts_.sets.size()),
                    "set");
      forest_.features_ = std::max(forest_.features_, node.feature + 1);
    }
    for (size_t i = 0; i < parts_.roots.size(); ++i) {
      check_index(parts_.roots[i], parts_.root_is_leaf[i] ? leaf_count : node_count, "root");
      roots_.push_back(encoded(parts_.roots[i], parts_.root_is_leaf[i]));
    }
    for (auto& set : parts_.sets) {
      std::sort(set.begin(), set.end());
      set.erase(std::unique(set.begin(), set.end()), set.end());
    }
  }

  // Asks whether a value is at most (less than) a threshold. A threshold of NaN: no value is.
  static Split split_of(const Question& question, int32_t yes, int32_t no, bool nan_is_yes) {
    const T limit = greatest<T>(question.threshold, question.less);
    return split_at(limit, question.feature, yes, no, nan_is_yes);
  }
  static Split split_at(T limit, int64_t feature, int32_t yes, int32_t no, bool nan_is_yes) {
    if (!nan_is_yes) return {limit, static_cast<uint32_t>(feature), no, yes};
    // Above the limit is: the opposite of the value is at most that of the next number.
    T bound = -std::nextafter(limit, infinity<T>);
    if (std::isnan(limit)) bound = infinity<T>;
    if (limit == infinity<T>) bound = never<T>;
    return {bound, static_cast<uint32_t>(feature) | sign_flag, yes, no};
  }

  int32_t added(const Split& split) {
    if (splits_.size() >= most_nodes) fail(ErrorCode::unsupported, "a forest of too many nodes");
    splits_.push_back(split);
    return static_cast<int32_t>(splits_.size()) - 1;
  }

  // Whether a value equals the threshold.
  Split equality(const TreeNode& node, int32_t yes, int32_t no, bool nan_is_yes) {
    const int32_t below =
        added(split_of({node.feature, node.threshold, true}, no, yes, /*nan_is_yes=*/false));
    return split_of({node.feature, node.threshold, false}, below, no, nan_is_yes);
  }

  // Whether a value is one of set[begin, end): NaN goes to the left of all where it is none.
  int32_t membership(const TreeNode& node, const std::vector<double>& set, size_t begin, size_t end,
                     int32_t yes, int32_t no) {
    if (begin == end) return no;
    return added(middle_of(node, set, begin, end, yes, no));
  }
  Split middle_of(const TreeNode& node, const std::vector<double>& set, size_t begin, size_t end,
                  int32_t yes, int32_t no) {
    const size_t middle = begin + (end - begin) / 2;
    const int32_t left = membership(node, set, begin, middle, yes, no),
                  right = membership(node, set, middle + 1, end, yes, no);
    const int32_t rest =
        added(split_of({node.feature, set[middle], false}, yes, right, /*nan_is_yes=*/true));
    return split_of({node.feature, set[middle], true}, left, rest, !node.missing_is_yes);
  }

  void add_node(size_t i) {
    const TreeNode& node = parts_.nodes[i];
    const int32_t yes = encoded(node.yes, node.yes_is_leaf), no = encoded(node.no, node.no_is_leaf);
    const bool nan_is_yes = node.missing_is_yes, less = node.test == TreeTest::less;
    Split split{};
    switch (node.test) {
      case TreeTest::less_equal:
      case TreeTest::less:
        split = split_of({node.feature, node.threshold, less}, yes, no, nan_is_yes);
        break;
      case TreeTest::greater_equal:
      case TreeTest::greater: {
        const bool greater_equal = node.test == TreeTest::greater_equal;
        const T limit =
            std::isnan(node.threshold) ? infinity<T> : greatest<T>(node.threshold, greater_equal);
        split = split_at(limit, node.feature, no, yes, !nan_is_yes);
        break;
      }
      case TreeTest::equal: split = equality(node, yes, no, nan_is_yes); break;
      case TreeTest::not_equal: split = equality(node, no, yes, !nan_is_yes); break;
      case TreeTest::member: {
        const auto& set = parts_.sets[static_cast<size_t>(node.threshold)];
        split = set.empty() ? split_at(never<T>, node.feature, yes, no, nan_is_yes)
                            : middle_of(node, set, 0, set.size(), yes, no);
        break;
      }
    }
    splits_[i] = split;
  }

  // Heights, from below; a walk that never meets a node below itself ends.
  void measure() {
    enum State : uint8_t { unseen, open, done };
    std::vector<State> states(splits_.size(), unseen);
    heights_.assign(splits_.size(), 0);
    std::vector<int32_t> path;
    for (const int32_t root : roots_) {
      if (root >= 0) path.push_back(root);
      while (!path.empty()) {
        const auto at = static_cast<size_t>(path.back());
        const Split& split = splits_[at];
        if (states[at] != unseen) {  // back from below, or reached twice
          if (states[at] == open)
            heights_[at] = 1 + std::max(height_of(split.first), height_of(split.second));
          states[at] = done;
          path.pop_back();
          continue;
        }
        states[at] = open;
        for (const int32_t child : {split.first, split.second}) {
          if (child < 0) continue;
          const State state = states[static_cast<size_t>(child)];
          if (state == open)
            fail(ErrorCode::invalid_model, "a tree leads back to node {} from below it", child);
          if (state == unseen) path.push_back(child);
        }
      }
    }
  }
  int32_t height_of(int32_t child) const {
    return child < 0 ? 0 : heights_[static_cast<size_t>(child)];
  }

  // From the root down, level by level, the two children of a node side by side.
  void add_tree(int32_t root) {
    forest_.roots_.push_back(static_cast<int32_t>(forest_.nodes_.size()));
    forest_.heights_.push_back(height_of(root));
    forest_.nodes_.emplace_back();
    fill(forest_.roots_.back(), root);
    for (; next_ < waiting_.size(); ++next_) {
      const int32_t node = waiting_[next_], pair = pairs_[static_cast<size_t>(node)];
      fill(pair, splits_[static_cast<size_t>(node)].first);
      fill(pair + 1, splits_[static_cast<size_t>(node)].second);
    }
  }

  void fill(int32_t place, int32_t child) {
    Node& node = forest_.nodes_[static_cast<size_t>(place)];
    if (child < 0) {
      node = {never<T>, 0, place, ~child};
      return;
    }
    const Split& split = splits_[static_cast<size_t>(child)];
    int32_t& pair = pairs_[static_cast<size_t>(child)];
    if (pair < 0) {
      pair = static_cast<int32_t>(forest_.nodes_.size());
      waiting_.push_back(child);
    }
    node = {split.bound, split.feature, pair, -1};
    if (static_cast<size_t>(pair) == forest_.nodes_.size())
      forest_.nodes_.resize(forest_.nodes_.size() + 2);
  }

  ForestParts parts_;
  Forest& forest_;
  std::vector<int32_t> roots_;
  std::vector<Split> splits_;  // those of parts_.nodes first
  std::vector<int32_t> heights_, pairs_, waiting_;
  size_t next_ = 0;
};

// The trees of few leaves, as kernels/trees/leaf_sets takes them, for samples of float. Their
// leaves lie in the order in which failed tests come first: a test that is passed takes those away
// that are below its node's first child.
template <class T>
class Forest<T>::Sets {
 public:
  static constexpr int32_t most_leaves = 256;  // with more, walks are shorter
  static constexpr int64_t most_rows = 128;    // of one block

  explicit Sets(const Forest& forest) {
    Laying laying{forest, {}, {}};
    for (size_t tree = 0; tree < forest.roots_.size(); ++tree) add(laying, tree);
    const auto used = static_cast<int64_t>(features_.size());
    if (used > most_floats / 16) {  // a block has no room for them
      words_.clear();
      return;
    }
    width_ = std::clamp<int64_t>(most_floats / std::max<int64_t>(1, used) / 16 * 16, 16, most_rows);
    for (LeafTest& test : tests_) test.place *= static_cast<uint32_t>(width_);
    if (forest.values_.empty()) return;
    for (const int32_t leaf : leaves_) values_.push_back(forest.values_[static_cast<size_t>(leaf)]);
  }

  bool any() const { return !words_.empty(); }
  bool has(size_t tree) const { return trees_[tree].words > 0; }

  // Rows of one block.
  int64_t width() const { return width_; }

  // The features that tests ask for, those of a row one below the other.
  struct Block {
    alignas(64) float values[8192];
  };
  void fill(Block& block, const float* x, int64_t rows, int64_t columns) const {
    for (int64_t r = 0; r < (rows + 15) / 16 * 16; ++r) {
      const float* row = x + std::min(r, rows - 1) * columns;
      float* to = block.values + r;
      for (const uint32_t feature : features_) {
        *to = row[feature];
        to += width_;
      }
    }
  }

  // Which of its leaves each row of a block reaches in `tree`, and what those are.
  struct Exits {
    int32_t places[most_rows];
    const int32_t* leaves;
    const double* values;  // null where the forest has none

    int32_t leaf(int64_t row) const { return leaves[places[row]]; }
    double value(int64_t row) const { return values[places[row]]; }
  };
  void find(size_t tree, const Block& block, int64_t rows, Exits& exits) const {
    const LeafTree& made = trees_[tree];
    find_exits(made, words_.data(), tests_.data(), block.values, rows, exits.places);
    exits.leaves = leaves_.data() + made.first_leaf;
    exits.values = values_.empty() ? nullptr : values_.data() + made.first_leaf;
  }

 private:
  static constexpr int64_t most_floats = std::size(Block{}.values);

  // A node by the leaves [begin, end) below its first child.
  struct Split {
    const Node* node;
    int32_t begin, end;
  };
  struct Laying {
    const Forest& forest;
    std::unordered_map<uint32_t, uint32_t> places;  // of the features
    std::vector<Split> splits;                      // of one tree
  };

  void add(Laying& laying, size_t tree) {
    LeafTree& made = trees_.emplace_back();
    made.first_leaf = static_cast<int32_t>(leaves_.size());
    made.first_word = static_cast<int32_t>(words_.size());
    made.first_test = static_cast<int32_t>(tests_.size());
    laying.splits.clear();
    // Trees that share their nodes must not be laid out again and again.
    const bool has_room =
        leaves_.size() <= laying.forest.nodes_.size() && tests_.size() < most_nodes;
    if (!has_room || laying.forest.heights_[tree] >= most_leaves ||
        !collect(laying, laying.forest.roots_[tree], made.first_leaf)) {
      leaves_.resize(static_cast<size_t>(made.first_leaf));
      return;
    }
    made.words = (static_cast<int32_t>(leaves_.size()) - made.first_leaf + 31) / 32;
    for (int32_t word = 0; word < made.words; ++word) {
      add_tests(laying, word, /*turned=*/false);
      const auto at_most_end = static_cast<int32_t>(tests_.size());
      add_tests(laying, word, /*turned=*/true);
      words_.push_back({at_most_end, static_cast<int32_t>(tests_.size())});
    }
  }

  // False where there are too many leaves. A tree is no higher than its leaves are many.
  bool collect(Laying& laying, int32_t at, int32_t first) {
    const Node& node = laying.forest.nodes_[static_cast<size_t>(at)];
    const auto count = [&] { return static_cast<int32_t>(leaves_.size()) - first; };
    if (node.leaf >= 0) {
      leaves_.push_back(node.leaf);
      return count() <= most_leaves;
    }
    const int32_t begin = count();
    if (!collect(laying, node.next, first)) return false;
    laying.splits.push_back({&node, begin, count()});
    return collect(laying, node.next + 1, first);
  }

  void add_tests(Laying& laying, int32_t word, bool turned) {
    for (const auto& [node, begin, end] : laying.splits) {
      const int32_t low = std::max(begin - 32 * word, 0), high = std::min(end - 32 * word, 32);
      const bool passes = !std::isnan(node->bound);  // for some value
      if (((node->feature & sign_flag) != 0) != turned || low >= high || !passes) continue;
      const auto below = [](int32_t n) { return (uint64_t{1} << n) - 1; };
      const auto bound = static_cast<float>(node->bound);
      tests_.push_back({turned ? -bound : bound, place(laying, node->feature & ~sign_flag),
                        static_cast<uint32_t>(~(below(high) ^ below(low)))});
    }
  }

  uint32_t place(Laying& laying, uint32_t feature) {
    const auto next = static_cast<uint32_t>(features_.size());
    const auto [found, is_new] = laying.places.try_emplace(feature, next);
    if (is_new) features_.push_back(feature);
    return found->second;
  }

  std::vector<LeafTree> trees_;
  std::vector<LeafWord> words_;
  std::vector<LeafTest> tests_;
  std::vector<int32_t> leaves_;
  std::vector<double> values_;
  std::vector<uint32_t> features_;
  int64_t width_ = 16;
};

template <class T>
Forest<T>::Forest(ForestParts parts, int64_t targets) : targets_(targets) {
  leaf_begins_ = parts.leaf_begins;
  weights_ = parts.weights;
  Builder(std::move(parts), *this).build();
  find_values();
  if constexpr (std::is_same_v<T, float>) {
    if (const auto sets = std::make_shared<const Sets>(*this); sets->any()) sets_ = sets;
  }
}

// Fills values_ and tree_targets_ where each leaf has one weight and all leaves of a tree one
// target.
template <class T>
void Forest<T>::find_values() {
  for (size_t i = 0; i + 1 < leaf_begins_.size(); ++i)
    if (leaf_begins_[i + 1] - leaf_begins_[i] != 1) return;
  // The nodes of a tree follow those of the tree before it, but trees may share some.
  for (size_t tree = 0; tree < roots_.size(); ++tree) {
    const auto begin = static_cast<size_t>(roots_[tree]);
    const auto end =
        tree + 1 < roots_.size() ? static_cast<size_t>(roots_[tree + 1]) : nodes_.size();
    int32_t target = -1;
    for (size_t i = begin; i < end; ++i) {
      const int32_t leaf = nodes_[i].leaf, next = nodes_[i].next;
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

// Several walks in step: each waits for its own memory, together they keep the processor busy.
template <class T>
template <class SampleOf>
void Forest<T>::walk(int32_t (&at)[lanes], int steps, SampleOf&& sample) const {
  const Node* const nodes = nodes_.data();
  const auto step = [&] {
    for (int l = 0; l < lanes; ++l) {
      const Node& node = nodes[at[l]];
      const T value =
          with_sign_turned(sample(l)[node.feature & ~sign_flag], node.feature & sign_flag);
      at[l] = node.next + static_cast<int32_t>(value <= node.bound);
    }
  };
  if (steps <= low_height) {
    for (int i = 0; i < steps; ++i) step();
    return;
  }
  for (int i = 0; i < steps; i += 4) {
    for (int k = 0; k < 4; ++k) step();
    int32_t open = 0;
    for (int l = 0; l < lanes; ++l) open |= nodes[at[l]].leaf < 0;
    if (open == 0) return;
  }
}

// The leaves that `count` rows, at most `lanes`, reach in one tree.
template <class T>
void Forest<T>::walk_rows(size_t tree, const T* x, int64_t columns, int64_t count,
                          int32_t (&leaves)[lanes]) const {
  const T* rows[lanes];
  for (int l = 0; l < lanes; ++l) rows[l] = x + std::min<int64_t>(l, count - 1) * columns;
  std::fill_n(leaves, lanes, roots_[tree]);
  walk(leaves, heights_[tree], [&](int l) { return rows[l]; });
  for (int l = 0; l < lanes; ++l) leaves[l] = nodes_[static_cast<size_t>(leaves[l])].leaf;
}

// The leaves that one row reaches in `count` trees, at most `lanes`.
template <class T>
void Forest<T>::walk_trees(size_t first, size_t count, const T* x, int32_t* leaves) const {
  int32_t at[lanes], height = 0;
  for (size_t l = 0; l < static_cast<size_t>(lanes); ++l) {
    const size_t tree = first + std::min(l, count - 1);
    at[l] = roots_[tree];
    height = std::max(height, heights_[tree]);
  }
  walk(at, height, [&](int) { return x; });
  for (size_t l = 0; l < count; ++l) leaves[l] = nodes_[static_cast<size_t>(at[l])].leaf;
}

template <class T>
void Forest<T>::add(TreeAggregate aggregate, int32_t leaf, double* y) const {
  const auto at = static_cast<size_t>(leaf);
  for (int64_t w = leaf_begins_[at]; w < leaf_begins_[at + 1]; ++w) {
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

template <class T>
void Forest<T>::finish(TreeAggregate aggregate, double* y) const {
  for (int64_t i = 0; i < targets_; ++i) {
    if (aggregate == TreeAggregate::average) y[i] /= static_cast<double>(roots_.size());
    if (!is_sum(aggregate) && std::isinf(y[i])) y[i] = 0;
  }
}

// At most a block of rows, whose results have been begun. Tree by tree, so that a tree stays in the
// cache for the whole block.
template <class T>
void Forest<T>::run_rows(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns,
                         double* y) const {
  const bool plain = is_sum(aggregate) && !values_.empty();
  typename Sets::Block block;
  if constexpr (std::is_same_v<T, float>) {
    if (sets_ != nullptr) sets_->fill(block, x, rows, columns);
  }
  for (size_t tree = 0; tree < roots_.size(); ++tree) {
    double* const to = plain ? y + tree_targets_[tree] : y;
    if (sets_ != nullptr && sets_->has(tree)) {
      typename Sets::Exits exits;
      sets_->find(tree, block, rows, exits);
      for (int64_t r = 0; r < rows; ++r) {
        if (plain)
          to[r * targets_] += exits.value(r);
        else
          add(aggregate, exits.leaf(r), to + r * targets_);
      }
      continue;
    }
    for (int64_t row = 0; row < rows; row += lanes) {
      const int64_t count = std::min<int64_t>(lanes, rows - row);
      int32_t found[lanes];
      walk_rows(tree, x + row * columns, columns, count, found);
      for (int64_t l = 0; l < count; ++l) {
        double* const sum = to + (row + l) * targets_;
        if (plain)
          *sum += values_[static_cast<size_t>(found[l])];
        else
          add(aggregate, found[l], sum);
      }
    }
  }
  for (int64_t row = 0; row < rows; ++row) finish(aggregate, y + row * targets_);
}

template <class T>
void Forest<T>::run(TreeAggregate aggregate, const T* x, int64_t rows, int64_t columns, double* y,
                    int32_t* leaves, ThreadPool& pool) const {
  if (columns < features_)
    fail(ErrorCode::run_failed, "the trees look at feature {}; the input has {} columns",
         features_ - 1, columns);
  const double start = is_sum(aggregate)                 ? 0
                       : aggregate == TreeAggregate::min ? HUGE_VAL
                                                         : -HUGE_VAL;
  std::fill_n(y, rows * targets_, start);
  const size_t trees = roots_.size();
  const bool plain = is_sum(aggregate) && !values_.empty();
  if (rows < lanes) {  // side by side: the trees of a row
    for (int64_t row = 0; row < rows; ++row) {
      int32_t* const found = leaves + row * tree_count();
      pool.parallel_for(tree_count(), tree_block, [&](int64_t begin, int64_t end, int) {
        for (auto tree = static_cast<size_t>(begin); tree < static_cast<size_t>(end); tree += lanes)
          walk_trees(tree, std::min<size_t>(lanes, static_cast<size_t>(end) - tree),
                     x + row * columns, found + tree);
      });
      double* const to = y + row * targets_;
      for (size_t tree = 0; tree < trees; ++tree) {
        if (plain)
          to[tree_targets_[tree]] += values_[static_cast<size_t>(found[tree])];
        else
          add(aggregate, found[tree], to);
      }
      finish(aggregate, to);
    }
    return;
  }
  // Large blocks use a tree again and again while it is near; small ones keep more threads busy. A
  // row's sums are the same in any block.
  const int64_t step = sets_ != nullptr ? rows_together : lanes,
                least = (sets_ != nullptr ? block_tests : block_walks) /
                        std::max<int64_t>(1, tree_count()),
                wanted = (rows + 2 * pool.threads() - 1) / (2 * pool.threads());
  const int64_t block =
      pool.threads() == 1
          ? row_block
          : std::clamp((std::max(least, wanted) + step - 1) / step * step, step, row_block);
  pool.parallel_for(rows, block, [&](int64_t begin, int64_t end, int) {
    const int64_t most = sets_ != nullptr ? sets_->width() : end - begin;
    for (int64_t row = begin; row < end; row += most) {
      run_rows(aggregate, x + row * columns, std::min(most, end - row), columns,
               y + row * targets_);
    }
  });
}

template class Forest<float>;
template class Forest<double>;

}  // namespace sardonyx::kernels
