// TreeEnsemble, and its older forms TreeEnsembleRegressor and TreeEnsembleClassifier, which keep
// their attributes in the newest version too. One kernel walks the trees of all three.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "ir/tensor.h"
#include "kernels/convert/cast.h"
#include "kernels/trees/forest.h"
#include "ops/ml/classic.h"

namespace sardonyx::ops {
namespace {

using kernels::Forest;
using kernels::LeafWeight;
using kernels::TreeAggregate;
using kernels::TreeNode;
using kernels::TreeTest;
using Integers = std::vector<int64_t>;

constexpr std::string_view test_names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",   "BRANCH_GT",
                                           "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER"};

Integers ints_of(const NodeView& node, std::string_view name) {
  return node.attr_ints(name).value_or(Integers());
}

std::vector<double> doubles_of(const Tensor& given) {
  const Tensor tensor = ir::aligned(given);
  std::vector<double> values(static_cast<size_t>(tensor.size()));
  ml::read_numbers(tensor.element_type(), tensor.data(), 0, tensor.size(), values.data());
  return values;
}

// A list of numbers: attribute `name` as floats, or `name`_as_tensor.
std::vector<double> numbers_of_attribute(const NodeView& node, const std::string& name) {
  if (const auto* proto = node.attr_tensor(name + "_as_tensor"))
    return doubles_of(ir::to_tensor(*proto));
  const auto floats = node.attr_floats(name).value_or(std::vector<float>());
  return {floats.begin(), floats.end()};
}

void check_lengths(const NodeView& node, size_t expected,
                   std::initializer_list<std::pair<const char*, size_t>> lists) {
  for (const auto& [name, size] : lists) {
    if (size != expected)
      node.fail("the nodes_… attributes must have one length, {}; {} has {}", expected, name, size);
  }
}

// --- The old form
// ---------------------------------------------------------------------------------

// Trees whose nodes, leaves among them, have numbers of their own in each tree.
struct OldForm {
  std::vector<TreeNode> nodes;
  Integers roots, leaf_begins{0};
  std::vector<bool> root_is_leaf;
  std::vector<LeafWeight> weights;
};

class OldFormReader {
 public:
  OldFormReader(const NodeView& node, const std::string& prefix) : node_(node), prefix_(prefix) {}

  std::shared_ptr<const Forest> read(int64_t targets) {
    read_attributes();
    number_nodes();
    std::map<Key, std::vector<LeafWeight>> leaves = leaf_weights();
    OldForm form;
    for (size_t i = 0; i < modes_.size(); ++i) {
      if (modes_[i] == "LEAF") {
        // A leaf without a weight adds nothing.
        const auto& weights = leaves[{trees_[i], ids_[i]}];
        form.weights.insert(form.weights.end(), weights.begin(), weights.end());
        form.leaf_begins.push_back(static_cast<int64_t>(form.weights.size()));
      } else {
        form.nodes.push_back(node_at(i));
      }
    }
    // A tree's root is its first node; trees count in the order of their numbers.
    std::map<int64_t, size_t> roots;
    for (size_t i = 0; i < trees_.size(); ++i) roots.try_emplace(trees_[i], i);
    for (const auto& [tree, first] : roots) {
      form.roots.push_back(position_[first]);
      form.root_is_leaf.push_back(modes_[first] == "LEAF");
    }
    return std::make_shared<const Forest>(std::move(form.nodes), std::move(form.roots),
                                          std::move(form.root_is_leaf), std::move(form.leaf_begins),
                                          std::move(form.weights),
                                          std::vector<std::vector<double>>(), targets);
  }

 private:
  using Key = std::pair<int64_t, int64_t>;  // tree, node

  void read_attributes() {
    trees_ = ints_of(node_, "nodes_treeids"), ids_ = ints_of(node_, "nodes_nodeids");
    features_ = ints_of(node_, "nodes_featureids");
    yes_ = ints_of(node_, "nodes_truenodeids"), no_ = ints_of(node_, "nodes_falsenodeids");
    missing_ = ints_of(node_, "nodes_missing_value_tracks_true");
    modes_ = node_.attr_strings("nodes_modes").value_or(std::vector<std::string>());
    values_ = numbers_of_attribute(node_, "nodes_values");
    const size_t n = modes_.size();
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

  // Where each entry stands among the inner nodes, or among the leaves.
  void number_nodes() {
    int64_t inner = 0, leaves = 0;
    for (size_t i = 0; i < modes_.size(); ++i) {
      position_.push_back(modes_[i] == "LEAF" ? leaves++ : inner++);
      if (!entries_.emplace(Key{trees_[i], ids_[i]}, i).second)
        node_.fail("tree {} has two nodes of number {}", trees_[i], ids_[i]);
    }
  }

  size_t entry(int64_t tree, int64_t id) const {
    const auto found = entries_.find({tree, id});
    if (found == entries_.end()) node_.fail("tree {} has no node {}", tree, id);
    return found->second;
  }

  TreeNode node_at(size_t i) const {
    const auto name = std::find(std::begin(test_names), std::end(test_names) - 1, modes_[i]);
    if (name == std::end(test_names) - 1)
      node_.fail("nodes_modes must be LEAF or BRANCH_LEQ, _LT, _GTE, _GT, _EQ, _NEQ; got '{}'",
                 modes_[i]);
    const size_t yes = entry(trees_[i], yes_[i]), no = entry(trees_[i], no_[i]);
    TreeNode node;
    node.test = static_cast<TreeTest>(name - std::begin(test_names));
    node.missing_is_yes = missing_[i] != 0;
    node.feature = features_[i];
    node.threshold = values_[i];
    node.yes = position_[yes], node.yes_is_leaf = modes_[yes] == "LEAF";
    node.no = position_[no], node.no_is_leaf = modes_[no] == "LEAF";
    return node;
  }

  std::map<Key, std::vector<LeafWeight>> leaf_weights() const {
    const Integers trees = ints_of(node_, prefix_ + "_treeids"),
                   ids = ints_of(node_, prefix_ + "_nodeids"),
                   targets = ints_of(node_, prefix_ + "_ids");
    const auto weights = numbers_of_attribute(node_, prefix_ + "_weights");
    if (trees.size() != ids.size() || trees.size() != targets.size() ||
        trees.size() != weights.size()) {
      node_.fail("the {}_… attributes must have one length; they have {}, {}, {} and {}", prefix_,
                 trees.size(), ids.size(), targets.size(), weights.size());
    }
    std::map<Key, std::vector<LeafWeight>> leaves;
    for (size_t i = 0; i < trees.size(); ++i) {
      if (targets[i] < 0 || targets[i] > INT32_MAX)
        node_.fail("{}_ids must not be negative; got {}", prefix_, targets[i]);
      leaves[{trees[i], ids[i]}].push_back({static_cast<int32_t>(targets[i]), weights[i]});
    }
    return leaves;
  }

  const NodeView& node_;
  std::string prefix_;
  Integers trees_, ids_, features_, yes_, no_, missing_, position_;
  std::vector<std::string> modes_;
  std::vector<double> values_;
  std::map<Key, size_t> entries_;
};

// --- Walking
// --------------------------------------------------------------------------------------

// All samples' scores, as doubles.
std::vector<double> scores_of(RunContext& run, const Forest& forest, TreeAggregate aggregate) {
  const auto [rows, features] = ml::rows_of(run.in_shape(0));
  std::vector<double> scores(static_cast<size_t>(rows * forest.targets()));
  const ElementType type = run.in_type(0);
  if (type == ElementType::float32) {
    forest.run(aggregate, run.in<float>(0), rows, features, scores.data(), run.pool());
  } else if (type == ElementType::float64) {
    forest.run(aggregate, run.in<double>(0), rows, features, scores.data(), run.pool());
  } else {
    std::vector<double> x(static_cast<size_t>(rows * features));
    ml::read_numbers(type, run.data(0), 0, rows * features, x.data());
    forest.run(aggregate, x.data(), rows, features, scores.data(), run.pool());
  }
  return scores;
}

void write_scores(RunContext& run, int output, std::span<const float> row, int64_t at) {
  if (!run.has_output(output)) return;
  switch (run.out_type(output)) {
    case ElementType::float32:
      std::copy(row.begin(), row.end(), run.out<float>(output) + at);
      break;
    case ElementType::float64:
      std::copy(row.begin(), row.end(), run.out<double>(output) + at);
      break;
    default:
      kernels::to_halves(run.out_type(output), row.data(), run.out<uint16_t>(output) + at,
                         static_cast<int64_t>(row.size()));
  }
}

// Regression: scores with base values added, transformed, as the output. Without a transform
// doubles stay doubles.
void write_regression(RunContext& run, std::vector<double> scores, const std::vector<double>& base,
                      ml::Transform transform, size_t targets) {
  for (size_t i = 0; i < scores.size() && !base.empty(); ++i)
    scores[i] += base[base.size() == 1 ? 0 : i % targets];
  if (transform == ml::Transform::none && run.out_type(0) == ElementType::float64) {
    std::copy(scores.begin(), scores.end(), run.out<double>(0));
    return;
  }
  std::vector<float> row(targets);
  for (size_t at = 0; at < scores.size(); at += targets) {
    std::transform(scores.begin() + static_cast<std::ptrdiff_t>(at),
                   scores.begin() + static_cast<std::ptrdiff_t>(at + targets), row.begin(),
                   [](double s) { return static_cast<float>(s); });
    ml::apply(transform, row);
    write_scores(run, 0, row, static_cast<int64_t>(at));
  }
}

void infer_rows(InferContext& ctx, ElementType type, int64_t columns, int output) {
  const auto samples = ml::samples_of(ctx);
  ctx.set(output, type, {samples ? samples->rows : ctx.unknown(), Dim(columns)});
}

// --- TreeEnsembleRegressor
// ------------------------------------------------------------------------

int64_t target_count(const NodeView& node) {
  const int64_t targets = node.attr_int("n_targets", 1);
  if (targets < 1 || targets > (1 << 24)) node.fail("n_targets must be 1 or more; got {}", targets);
  return targets;
}

TreeAggregate aggregate_named(const NodeView& node) {
  const std::string name = node.attr_string("aggregate_function", "SUM");
  if (name == "SUM") return TreeAggregate::sum;
  if (name == "AVERAGE") return TreeAggregate::average;
  if (name == "MIN") return TreeAggregate::min;
  if (name == "MAX") return TreeAggregate::max;
  node.fail("aggregate_function must be SUM, AVERAGE, MIN or MAX; got '{}'", name);
}

void infer_regressor(InferContext& ctx) {
  infer_rows(ctx, ElementType::float32, target_count(ctx), 0);
}

std::unique_ptr<Step> prepare_regressor(PrepareContext& ctx) {
  const int64_t targets = target_count(ctx);
  const auto base = numbers_of_attribute(ctx, "base_values");
  if (base.size() > 1 && static_cast<int64_t>(base.size()) != targets)
    ctx.fail("base_values must have 1 element or one per target, {}; it has {}", targets,
             base.size());
  return make_step(
      "ml.trees.regressor",
      [forest = OldFormReader(ctx, "target").read(targets), aggregate = aggregate_named(ctx),
       transform = ml::transform_of(ctx), base, targets](RunContext& run) {
        write_regression(run, scores_of(run, *forest, aggregate), base, transform,
                         static_cast<size_t>(targets));
      });
}

// --- TreeEnsembleClassifier
// -----------------------------------------------------------------------

struct Classes {
  ml::Labels labels;
  bool single = false;   // all weights are of class 0 of two: one score that speaks for the second
  bool second = false;   // all weights are of class 1 of two
  bool positive = true;  // no weight is negative: a single score is a probability
};

Classes classes_of(const NodeView& node) {
  Classes classes{ml::labels_of(node, "classlabels_int64s", "classlabels_strings")};
  if (classes.labels.size() == 0)
    node.fail("needs one of the attributes classlabels_int64s and classlabels_strings");
  const Integers ids = ints_of(node, "class_ids");
  const bool alike =
      std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == ids.front(); });
  classes.second = classes.labels.size() == 2 && alike && !ids.empty() && ids.front() == 1;
  classes.single = classes.labels.size() <= 2 && alike && !classes.second;
  for (const double weight : numbers_of_attribute(node, "class_weights"))
    classes.positive &= weight >= 0;
  return classes;
}

void infer_classifier(InferContext& ctx) {
  const Classes classes = classes_of(ctx);
  const auto samples = ml::samples_of(ctx);
  const Dim rows = samples ? samples->rows : ctx.unknown();
  ctx.set(0, classes.labels.type(), {rows});
  ctx.set(1, ElementType::float32,
          {rows, Dim(std::max<int64_t>(2, static_cast<int64_t>(classes.labels.size())))});
}

// Where a score of two classes, the only one, turns from the first to the second.
bool is_second(const Classes& classes, float score) {
  return score > (classes.positive ? 0.5f : 0.0f);
}

// The standard does not say how one score becomes two. As runtimes have it: a probability leaves
// the rest to the first class, any other score gives it the opposite, and so does one that is
// transformed.
void spread(const Classes& classes, ml::Transform transform, float score, std::vector<float>& row) {
  const bool rest =
      transform == ml::Transform::probit || (transform == ml::Transform::none && classes.positive);
  row = {rest ? 1 - score : -score, score};
  ml::apply(transform, row);
}

std::unique_ptr<Step> prepare_classifier(PrepareContext& ctx) {
  const Classes classes = classes_of(ctx);
  const auto targets = static_cast<int64_t>(classes.labels.size());
  const Integers ids = ints_of(ctx, "class_ids");
  const int64_t only = ids.empty() ? 0 : ids.front();
  const auto base = numbers_of_attribute(ctx, "base_values");
  if (base.size() > 1 && static_cast<int64_t>(base.size()) != targets)
    ctx.fail("base_values must have 1 element or one per class, {}; it has {}", targets,
             base.size());
  const auto transform = ml::transform_of(ctx);
  const auto forest = OldFormReader(ctx, "class").read(std::max<int64_t>(targets, only + 1));
  return make_step("ml.trees.classifier", [=](RunContext& run) {
    const std::vector<double> scores = scores_of(run, *forest, TreeAggregate::sum);
    const auto width = static_cast<size_t>(forest->targets());
    std::vector<float> row;
    for (size_t at = 0, i = 0; at < scores.size(); at += width, ++i) {
      row.resize(width);
      for (size_t k = 0; k < width; ++k)
        row[k] = static_cast<float>(scores[at + k] +
                                    (base.empty() ? 0 : base[base.size() == 1 ? 0 : k]));
      int64_t label = std::max_element(row.begin(), row.end()) - row.begin();
      if (classes.single || classes.second) {
        const float score = row[static_cast<size_t>(only)];
        label = classes.labels.size() == 2 && is_second(classes, score);
        if (classes.single)
          spread(classes, transform, score, row);
        else
          ml::apply(transform, row);
      } else {
        ml::apply(transform, row);
      }
      if (classes.labels.size() == 1) {
        classes.labels.write_only(
            run, static_cast<int64_t>(i),
            is_second(classes, static_cast<float>(scores[at] + (base.empty() ? 0 : base[0]))));
      } else {
        classes.labels.write(run, static_cast<int64_t>(i), label);
      }
      write_scores(run, 1, row, static_cast<int64_t>(i * row.size()));
    }
  });
}

// --- TreeEnsemble
// ---------------------------------------------------------------------------------

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

std::vector<TreeNode> new_nodes(const NodeView& node) {
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

std::shared_ptr<const Forest> new_forest(const NodeView& node, int64_t targets) {
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
  const Integers roots = ints_of(node, "tree_roots");
  return std::make_shared<const Forest>(new_nodes(node), roots,
                                        std::vector<bool>(roots.size(), false), std::move(begins),
                                        std::move(leaves), member_sets(node), targets);
}

TreeAggregate aggregate_numbered(const NodeView& node) {
  const int64_t number = node.attr_int("aggregate_function", 1);
  if (number < 0 || number > 3)
    node.fail("aggregate_function must be 0 (AVERAGE), 1 (SUM), 2 (MIN) or 3 (MAX); got {}",
              number);
  return static_cast<TreeAggregate>(number);
}

ml::Transform transform_numbered(const NodeView& node) {
  const int64_t number = node.attr_int("post_transform", 0);
  if (number < 0 || number > 4)
    node.fail(
        "post_transform must be 0 (NONE), 1 (SOFTMAX), 2 (LOGISTIC), 3 (SOFTMAX_ZERO) or 4 "
        "(PROBIT); got {}",
        number);
  return static_cast<ml::Transform>(number);
}

void infer_ensemble(InferContext& ctx) { infer_rows(ctx, ctx.element(0), target_count(ctx), 0); }

std::unique_ptr<Step> prepare_ensemble(PrepareContext& ctx) {
  const int64_t targets = target_count(ctx);
  return make_step("ml.trees.ensemble",
                   [forest = new_forest(ctx, targets), aggregate = aggregate_numbered(ctx),
                    transform = transform_numbered(ctx), targets](RunContext& run) {
                     write_regression(run, scores_of(run, *forest, aggregate), {}, transform,
                                      static_cast<size_t>(targets));
                   });
}

constexpr Operator operators[] = {
    {.name = "TreeEnsemble",
     .domain = ml::domain,
     .infer = infer_ensemble,
     .prepare = prepare_ensemble},
    {.name = "TreeEnsembleRegressor",
     .domain = ml::domain,
     .infer = infer_regressor,
     .prepare = prepare_regressor},
    {.name = "TreeEnsembleClassifier",
     .domain = ml::domain,
     .infer = infer_classifier,
     .prepare = prepare_classifier},
};

}  // namespace

std::span<const Operator> ml_trees_operators() { return operators; }

}  // namespace sardonyx::ops
