#include "ops/ml/forest_attributes.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "ir/tensor.h"
#include "ops/ml/classic.h"

namespace sardonyx::ops::ml {
namespace {

using kernels::ForestParts;
using kernels::LeafWeight;
using kernels::TreeNode;
using kernels::TreeTest;
using Integers = std::vector<int64_t>;

constexpr std::string_view test_names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",   "BRANCH_GT",
                                           "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER"};

std::vector<double> doubles_of(const Tensor& given) {
  const Tensor tensor = ir::aligned(given);
  std::vector<double> values(static_cast<size_t>(tensor.size()));
  read_numbers(tensor.element_type(), tensor.data(), 0, tensor.size(), values.data());
  return values;
}

void check_lengths(const NodeView& node, size_t expected,
                   std::initializer_list<std::pair<const char*, size_t>> lists) {
  for (const auto& [name, size] : lists) {
    if (size != expected)
      node.fail("the nodes_… attributes must have one length, {}; {} has {}", expected, name, size);
  }
}

// --- By numbers ---------------------------------------------------------------------------------

// Where the node with some number of some tree stands in the lists. Files nearly always list trees
// one after the other and their nodes by number, so that one is as far from another as its number.
class TreeEntries {
 public:
  static constexpr size_t none = SIZE_MAX;

  TreeEntries() = default;
  TreeEntries(std::span<const int64_t> trees, std::span<const int64_t> ids)
      : trees_(trees), ids_(ids) {
    bool ordered = true;
    for (size_t i = 1; i < trees.size() && ordered; ++i) ordered = key(i - 1) < key(i);
    if (ordered) return;
    order_.resize(trees.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::sort(order_, {}, [this](size_t i) { return key(i); });
  }

  // A node whose tree and number another one has, too.
  size_t repeated() const {
    for (size_t i = 1; i < order_.size(); ++i) {
      if (key(order_[i - 1]) == key(order_[i])) return order_[i];
    }
    return none;
  }

  // `near` is tried first: a node of the same tree, maybe.
  size_t find(int64_t tree, int64_t id, size_t near) const {
    if (near < trees_.size()) {
      const auto guess =
          static_cast<size_t>(static_cast<uint64_t>(near) +
                              (static_cast<uint64_t>(id) - static_cast<uint64_t>(ids_[near])));
      if (guess < trees_.size() && key(guess) == Key{tree, id}) return guess;
    }
    size_t low = 0, high = trees_.size();
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (key(at(middle)) < Key{tree, id})
        low = middle + 1;
      else
        high = middle;
    }
    return low < trees_.size() && key(at(low)) == Key{tree, id} ? at(low) : none;
  }

 private:
  using Key = std::pair<int64_t, int64_t>;
  Key key(size_t i) const { return {trees_[i], ids_[i]}; }
  size_t at(size_t place) const { return order_.empty() ? place : order_[place]; }

  std::span<const int64_t> trees_, ids_;
  std::vector<size_t> order_;  // empty: they are in order
};

class NumbersReader {
 public:
  NumbersReader(const NodeView& node, const std::string& prefix) : node_(node), prefix_(prefix) {}

  ForestParts read() {
    read_attributes();
    number_nodes();
    ForestParts form;
    add_leaves(form);
    for (size_t i = 0; i < tests_.size(); ++i) {
      if (!is_leaf(i)) form.nodes.push_back(node_at(i));
    }
    // A tree's root is its first node; trees count in the order of their numbers.
    std::map<int64_t, size_t> roots;
    for (size_t i = 0; i < trees_.size(); ++i) {
      if (i == 0 || trees_[i] != trees_[i - 1]) roots.try_emplace(trees_[i], i);
    }
    for (const auto& [tree, first] : roots) {
      form.roots.push_back(position_[first]);
      form.root_is_leaf.push_back(is_leaf(first));
    }
    return form;
  }

 private:
  static constexpr TreeTest leaf = static_cast<TreeTest>(std::size(test_names));

  void read_attributes() {
    trees_ = ints_of(node_, "nodes_treeids"), ids_ = ints_of(node_, "nodes_nodeids");
    features_ = ints_of(node_, "nodes_featureids");
    yes_ = ints_of(node_, "nodes_truenodeids"), no_ = ints_of(node_, "nodes_falsenodeids");
    missing_ = ints_of(node_, "nodes_missing_value_tracks_true");
    values_ = numbers_of_attribute(node_, "nodes_values");
    for (const std::string& mode :
         node_.attr_strings("nodes_modes").value_or(std::vector<std::string>()))
      tests_.push_back(test_of(mode));
    const size_t n = tests_.size();
    if (missing_.empty()) missing_.assign(n, 0);
    check_lengths(node_, n,
                  {{"nodes_treeids", trees_.size()},
                   {"nodes_nodeids", ids_.size()},
                   {"nodes_featureids", features_.size()},
                   {"nodes_truenodeids", yes_.size()},
                   {"nodes_falsenodeids", no_.size()},
                   {"nodes_values", values_.size()},
                   {"nodes_missing_value_tracks_true", missing_.size()}});
  }

  TreeTest test_of(const std::string& mode) const {
    if (mode == "LEAF") return leaf;
    const auto name = std::find(std::begin(test_names), std::end(test_names) - 1, mode);
    if (name == std::end(test_names) - 1)
      node_.fail("nodes_modes must be LEAF or BRANCH_LEQ, _LT, _GTE, _GT, _EQ, _NEQ; got '{}'",
                 mode);
    return static_cast<TreeTest>(name - std::begin(test_names));
  }
  bool is_leaf(size_t i) const { return tests_[i] == leaf; }

  // Where each entry stands among the inner nodes, or among the leaves.
  void number_nodes() {
    int64_t inner = 0, leaves = 0;
    position_.reserve(tests_.size());
    for (size_t i = 0; i < tests_.size(); ++i) position_.push_back(is_leaf(i) ? leaves++ : inner++);
    entries_ = TreeEntries(trees_, ids_);
    if (const size_t i = entries_.repeated(); i != TreeEntries::none)
      node_.fail("tree {} has two nodes of number {}", trees_[i], ids_[i]);
  }

  TreeNode node_at(size_t i) const {
    const auto child = [&](int64_t id) {
      const size_t found = entries_.find(trees_[i], id, i);
      if (found == TreeEntries::none) node_.fail("tree {} has no node {}", trees_[i], id);
      return found;
    };
    const size_t yes = child(yes_[i]), no = child(no_[i]);
    TreeNode node;
    node.test = tests_[i];
    node.missing_is_yes = missing_[i] != 0;
    node.feature = features_[i];
    node.threshold = values_[i];
    node.yes = position_[yes], node.yes_is_leaf = is_leaf(yes);
    node.no = position_[no], node.no_is_leaf = is_leaf(no);
    return node;
  }

  // A leaf without a weight adds nothing; weights of what is no leaf count for nothing.
  void add_leaves(ForestParts& form) const {
    const Integers trees = ints_of(node_, prefix_ + "_treeids"),
                   ids = ints_of(node_, prefix_ + "_nodeids"),
                   targets = ints_of(node_, prefix_ + "_ids");
    const auto weights = numbers_of_attribute(node_, prefix_ + "_weights");
    if (trees.size() != ids.size() || trees.size() != targets.size() ||
        trees.size() != weights.size()) {
      node_.fail("the {}_… attributes must have one length; they have {}, {}, {} and {}", prefix_,
                 trees.size(), ids.size(), targets.size(), weights.size());
    }
    const auto leaves = static_cast<size_t>(std::ranges::count(tests_, leaf));
    std::vector<size_t> leaf_of(trees.size(), TreeEntries::none);
    std::vector<int64_t> begins(leaves + 1, 0);  // of leaf i at i + 1 while they are counted
    for (size_t i = 0, near = 0; i < trees.size(); ++i) {
      if (targets[i] < 0 || targets[i] > INT32_MAX)
        node_.fail("{}_ids must not be negative; got {}", prefix_, targets[i]);
      const size_t found = entries_.find(trees[i], ids[i], near);
      if (found == TreeEntries::none) continue;
      near = found;
      if (!is_leaf(found)) continue;
      leaf_of[i] = static_cast<size_t>(position_[found]);
      ++begins[leaf_of[i] + 1];
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    form.leaf_begins = begins;
    form.weights.resize(static_cast<size_t>(begins.back()));
    for (size_t i = 0; i < trees.size(); ++i) {
      if (leaf_of[i] == TreeEntries::none) continue;
      const auto place = static_cast<size_t>(begins[leaf_of[i]]++);
      form.weights[place] = {static_cast<int32_t>(targets[i]), weights[i]};
    }
  }

  const NodeView& node_;
  std::string prefix_;
  Integers trees_, ids_, features_, yes_, no_, missing_, position_;
  std::vector<TreeTest> tests_;
  std::vector<double> values_;
  TreeEntries entries_;
};

// --- By places ----------------------------------------------------------------------------------

Tensor tensor_of(const NodeView& node, std::string_view name) {
  const auto* proto = node.attr_tensor(name);
  if (proto == nullptr)
    node.fail("attribute '{}' is required and absent; add it to the node", name);
  return ir::aligned(ir::to_tensor(*proto));
}

// The sets of member nodes, in their order, parted by NaN.
std::vector<std::vector<double>> member_sets(const NodeView& node) {
  std::vector<std::vector<double>> sets;
  const auto* proto = node.attr_tensor("membership_values");
  if (proto == nullptr) return sets;
  bool open = false;
  for (const double value : doubles_of(ir::to_tensor(*proto))) {
    if (!open) sets.emplace_back();
    open = !std::isnan(value);
    if (open) sets.back().push_back(value);
  }
  return sets;
}

std::vector<TreeNode> nodes_of(const NodeView& node) {
  const Tensor modes = tensor_of(node, "nodes_modes");
  const auto splits = doubles_of(tensor_of(node, "nodes_splits"));
  const Integers features = ints_of(node, "nodes_featureids"),
                 yes = ints_of(node, "nodes_truenodeids"), no = ints_of(node, "nodes_falsenodeids");
  const Integers yes_leafs = ints_of(node, "nodes_trueleafs"),
                 no_leafs = ints_of(node, "nodes_falseleafs");
  Integers missing = ints_of(node, "nodes_missing_value_tracks_true");
  const auto n = static_cast<size_t>(modes.size());
  if (missing.empty()) missing.assign(n, 0);
  check_lengths(node, n,
                {{"nodes_splits", splits.size()},
                 {"nodes_featureids", features.size()},
                 {"nodes_truenodeids", yes.size()},
                 {"nodes_falsenodeids", no.size()},
                 {"nodes_trueleafs", yes_leafs.size()},
                 {"nodes_falseleafs", no_leafs.size()},
                 {"nodes_missing_value_tracks_true", missing.size()}});
  std::vector<TreeNode> nodes(n);
  double sets = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint8_t mode = modes.elements<uint8_t>()[i];
    if (mode >= std::size(test_names))
      node.fail("nodes_modes must be in [0, {}]; got {}", std::size(test_names) - 1, mode);
    nodes[i] = {static_cast<TreeTest>(mode),
                missing[i] != 0,
                yes_leafs[i] != 0,
                no_leafs[i] != 0,
                features[i],
                yes[i],
                no[i],
                splits[i]};
    if (nodes[i].test == TreeTest::member) nodes[i].threshold = sets++;
  }
  return nodes;
}

}  // namespace

Integers ints_of(const NodeView& node, std::string_view name) {
  return node.attr_ints(name).value_or(Integers());
}

std::vector<double> numbers_of_attribute(const NodeView& node, const std::string& name) {
  if (const auto* proto = node.attr_tensor(name + "_as_tensor"))
    return doubles_of(ir::to_tensor(*proto));
  const auto floats = node.attr_floats(name).value_or(std::vector<float>());
  return {floats.begin(), floats.end()};
}

ForestParts forest_of_places(const NodeView& node, int64_t targets) {
  const auto weights = doubles_of(tensor_of(node, "leaf_weights"));
  const Integers ids = ints_of(node, "leaf_targetids");
  if (ids.size() != weights.size())
    node.fail("leaf_weights and leaf_targetids must have one length; they have {} and {}",
              weights.size(), ids.size());
  std::vector<LeafWeight> leaves;
  Integers begins{0};
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= targets)
      node.fail("leaf_targetids must be in [0, {}]; got {}", targets - 1, ids[i]);
    leaves.push_back({static_cast<int32_t>(ids[i]), weights[i]});
    begins.push_back(static_cast<int64_t>(leaves.size()));
  }
  ForestParts parts;
  parts.nodes = nodes_of(node);
  parts.roots = ints_of(node, "tree_roots");
  parts.root_is_leaf.assign(parts.roots.size(), false);
  parts.leaf_begins = std::move(begins);
  parts.weights = std::move(leaves);
  parts.sets = member_sets(node);
  return parts;
}

ForestParts forest_of_numbers(const NodeView& node, const std::string& weights) {
  return NumbersReader(node, weights).read();
}

}  // namespace sardonyx::ops::ml
