#include "kernels/trees/nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.h"

namespace sardonyx::kernels {
namespace {

constexpr size_t max_nodes = size_t{1} << 29;

void check_index(int64_t index, int64_t count, const char* what) {
  if (index < 0 || index >= count)
    fail(ErrorCode::invalid_model, "a tree names {} {}, but there are {}", what, index, count);
}

int32_t encoded(int64_t child, bool is_leaf) {
  return static_cast<int32_t>(is_leaf ? ~child : child);
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

// Brings all tests to one, and lays the nodes of a tree side by side.
template <class T>
class NodesBuilder {
 public:
  explicit NodesBuilder(ForestParts parts) : parts_(std::move(parts)) {}

  TreeNodes<T> build(int64_t targets) {
    check(targets);
    splits_.resize(parts_.nodes.size());
    for (size_t i = 0; i < parts_.nodes.size(); ++i) add_node(i);
    measure();
    pairs_.assign(splits_.size(), -1);
    for (const int32_t root : roots_) add_tree(root);
    return std::move(made_);
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

  void check(int64_t targets) {
    const auto node_count = static_cast<int64_t>(parts_.nodes.size()),
               leaf_count = static_cast<int64_t>(parts_.leaf_begins.size()) - 1;
    if (node_count >= static_cast<int64_t>(max_nodes) || leaf_count >= INT32_MAX)
      fail(ErrorCode::unsupported, "a forest of {} nodes and {} leaves", node_count, leaf_count);
    for (const LeafWeight& weight : parts_.weights) check_index(weight.target, targets, "target");
    for (const TreeNode& node : parts_.nodes) {
      check_index(node.yes, node.yes_is_leaf ? leaf_count : node_count,
                  node.yes_is_leaf ? "leaf" : "node");
      check_index(node.no, node.no_is_leaf ? leaf_count : node_count,
                  node.no_is_leaf ? "leaf" : "node");
      check_index(node.feature, TreeNodes<T>::sign_flag, "feature");
      if (node.test == TreeTest::member)
        check_index(static_cast<int64_t>(node.threshold), static_cast<int64_t>(parts_.sets.size()),
                    "set");
      made_.features = std::max(made_.features, node.feature + 1);
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
    return {bound, static_cast<uint32_t>(feature) | TreeNodes<T>::sign_flag, yes, no};
  }

  int32_t added(const Split& split) {
    if (splits_.size() >= max_nodes) fail(ErrorCode::unsupported, "a forest of too many nodes");
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
    made_.roots.push_back(static_cast<int32_t>(made_.nodes.size()));
    made_.heights.push_back(height_of(root));
    made_.nodes.emplace_back();
    fill(made_.roots.back(), root);
    for (; next_ < waiting_.size(); ++next_) {
      const int32_t node = waiting_[next_], pair = pairs_[static_cast<size_t>(node)];
      fill(pair, splits_[static_cast<size_t>(node)].first);
      fill(pair + 1, splits_[static_cast<size_t>(node)].second);
    }
  }

  void fill(int32_t place, int32_t child) {
    typename TreeNodes<T>::Node& node = made_.nodes[static_cast<size_t>(place)];
    if (child < 0) {
      node = {never<T>, 0, place, ~child};
      return;
    }
    const Split& split = splits_[static_cast<size_t>(child)];
    int32_t& pair = pairs_[static_cast<size_t>(child)];
    if (pair < 0) {
      pair = static_cast<int32_t>(made_.nodes.size());
      waiting_.push_back(child);
    }
    node = {split.bound, split.feature, pair, -1};
    made_.any_flipped |= (split.feature & TreeNodes<T>::sign_flag) != 0;
    if (static_cast<size_t>(pair) == made_.nodes.size()) made_.nodes.resize(made_.nodes.size() + 2);
  }

  ForestParts parts_;
  TreeNodes<T> made_;
  std::vector<int32_t> roots_;
  std::vector<Split> splits_;  // those of parts_.nodes first
  std::vector<int32_t> heights_, pairs_, waiting_;
  size_t next_ = 0;
};

}  // namespace

template <class T>
TreeNodes<T> tree_nodes(ForestParts parts, int64_t targets) {
  return NodesBuilder<T>(std::move(parts)).build(targets);
}

template TreeNodes<float> tree_nodes(ForestParts parts, int64_t targets);
template TreeNodes<double> tree_nodes(ForestParts parts, int64_t targets);

}  // namespace sardonyx::kernels
