// TreeEnsemble, and its older forms TreeEnsembleRegressor and TreeEnsembleClassifier, which keep
// their attributes in the newest version too. One kernel walks the trees of all three.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <span>

#include "base/checked.h"
#include "ir/tensor.h"
#include "kernels/convert/cast.h"
#include "kernels/rows/grain.h"
#include "kernels/trees/forest.h"
#include "ops/ml/classic.h"

namespace sardonyx::ops {
namespace {

using kernels::Forest;
using kernels::ForestParts;
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

// --- The old form -------------------------------------------------------------------------------

// Trees whose nodes, leaves among them, have numbers of their own in each tree.
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

class OldFormReader {
 public:
  OldFormReader(const NodeView& node, const std::string& prefix) : node_(node), prefix_(prefix) {}

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

// --- Walking ------------------------------------------------------------------------------------

// A forest for the samples of one node, and the memory its runs take.
class Trees {
 public:
  Trees(ForestParts parts, int64_t targets, ElementType samples) : targets_(targets) {
    if (samples == ElementType::float32 || samples == ElementType::float16 ||
        samples == ElementType::bfloat16)
      narrow_ = std::make_shared<const Forest<float>>(std::move(parts), targets);
    else
      wide_ = std::make_shared<const Forest<double>>(std::move(parts), targets);
  }

  int64_t targets() const { return targets_; }

  // Where things lie in the scratch memory of a run.
  struct State {
    int64_t rows, columns;
    int64_t results, leaves, samples;  // after the scores of all rows
  };
  void bind(BindContext& context, State& state) const {
    const auto [rows, columns] = ml::rows_of(context.in_shape(0));
    state.rows = rows, state.columns = columns;
    int64_t bytes = 0;
    const auto take = [&](int64_t count, int64_t size) {
      const int64_t at = bytes;
      const auto needed = checked_mul(count, size);
      const auto end = needed ? checked_add(bytes, *needed + 63) : std::nullopt;
      if (!end) throw Error(ErrorCode::run_failed, "the scores do not fit into memory");
      bytes = *end / 64 * 64;
      return at;
    };
    const auto scores = checked_mul(rows, targets_);
    take(scores.value_or(INT64_MAX), sizeof(double));
    const auto results = checked_mul(rows, std::max<int64_t>(2, targets_));
    state.results = take(results.value_or(INT64_MAX), sizeof(float));
    state.leaves =
        take(narrow_ ? narrow_->leaves_needed(rows) : wide_->leaves_needed(rows), sizeof(int32_t));
    state.samples = is_plain(context.in_type(0)) ? 0 : take(rows * columns, sizeof(double));
    context.need_scratch(bytes);
  }

  // All samples' scores.
  std::span<double> scores(RunContext& run, const State& state, TreeAggregate aggregate) const {
    auto* const scratch = static_cast<std::byte*>(run.scratch());
    auto* const scores = reinterpret_cast<double*>(scratch);
    auto* const leaves = reinterpret_cast<int32_t*>(scratch + state.leaves);
    const ElementType type = run.in_type(0);
    const int64_t count = state.rows * state.columns;
    if (narrow_) {
      const float* x = run.in<float>(0);
      if (!is_plain(type)) {
        auto* const samples = reinterpret_cast<float*>(scratch + state.samples);
        kernels::to_floats(type, run.data(0), samples, count);
        x = samples;
      }
      narrow_->run(aggregate, x, state.rows, state.columns, scores, leaves, run.pool());
    } else {
      const double* x = run.in<double>(0);
      if (!is_plain(type)) {
        auto* const samples = reinterpret_cast<double*>(scratch + state.samples);
        ml::read_numbers(type, run.data(0), 0, count, samples);
        x = samples;
      }
      wide_->run(aggregate, x, state.rows, state.columns, scores, leaves, run.pool());
    }
    return {scores, static_cast<size_t>(state.rows * targets_)};
  }
  // Room for results as floats, two of a row at least: those of an output where it holds floats.
  static float* results(RunContext& run, const State& state, int output) {
    if (run.has_output(output) && run.out_type(output) == ElementType::float32)
      return run.out<float>(output);
    return reinterpret_cast<float*>(static_cast<std::byte*>(run.scratch()) + state.results);
  }

 private:
  static bool is_plain(ElementType type) {
    return type == ElementType::float32 || type == ElementType::float64;
  }

  std::shared_ptr<const Forest<float>> narrow_;  // one of the two
  std::shared_ptr<const Forest<double>> wide_;
  int64_t targets_;
};

// A step of a forest: write(run, state, scores).
template <class Write>
std::unique_ptr<Step> make_tree_step(std::string kernel, Trees trees, TreeAggregate aggregate,
                                     Write write) {
  return make_step<Trees::State>(
      std::move(kernel),
      [trees](BindContext& context, Trees::State& state) { trees.bind(context, state); },
      [trees, aggregate, write](RunContext& run, const Trees::State& state) {
        write(run, state, trees.scores(run, state, aggregate));
      });
}

// Calls some(first, n) for some rows at a time, on several threads.
constexpr int64_t rows_at_once = 256;
template <class Some>
void for_results(RunContext& run, const Trees::State& state, int64_t columns, Some&& some) {
  kernels::for_rows_of(state.rows, 4 * columns, run.pool(), [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += rows_at_once) some(begin, std::min(rows_at_once, end - begin));
  });
}

// Results to elements [at, …) of an output; floats are there already.
void write_results(RunContext& run, int output, std::span<const float> results, int64_t at) {
  if (!run.has_output(output)) return;
  switch (run.out_type(output)) {
    case ElementType::float32: break;
    case ElementType::float64: std::ranges::copy(results, run.out<double>(output) + at); break;
    default:
      kernels::to_halves(run.out_type(output), results.data(), run.out<uint16_t>(output) + at,
                         static_cast<int64_t>(results.size()));
  }
}

double base_of(std::span<const double> base, int64_t target) {
  return base.empty() ? 0 : base[base.size() == 1 ? 0 : static_cast<size_t>(target)];
}

// Regression: scores with base values added, transformed, as the output. Without a transform
// doubles stay doubles.
void write_regression(RunContext& run, const Trees::State& state, int64_t targets,
                      std::span<const double> scores, std::span<const double> base,
                      ml::Transform transform) {
  const bool as_doubles =
      transform == ml::Transform::none && run.out_type(0) == ElementType::float64;
  float* const results = Trees::results(run, state, 0);
  for_results(run, state, targets, [&](int64_t first, int64_t rows) {
    const int64_t at = first * targets, n = rows * targets;
    const double* from = scores.data() + at;
    const auto each = [&](auto* to) {
      using To = std::remove_pointer_t<decltype(to)>;
      for (int64_t i = 0; i < n; i += targets) {
        for (int64_t k = 0; k < targets; ++k)
          to[i + k] = static_cast<To>(from[i + k] + base_of(base, k));
      }
    };
    if (as_doubles) return each(run.out<double>(0) + at);
    each(results + at);
    const std::span<float> some(results + at, static_cast<size_t>(n));
    ml::apply(transform, some, targets);
    write_results(run, 0, some, at);
  });
}

void infer_rows(InferContext& ctx, ElementType type, int64_t columns, int output) {
  const auto samples = ml::samples_of(ctx);
  ctx.set(output, type, {samples ? samples->rows : ctx.unknown(), Dim(columns)});
}

// --- TreeEnsembleRegressor ----------------------------------------------------------------------

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
  Trees trees(OldFormReader(ctx, "target").read(), targets, ctx.in_element(0));
  return make_tree_step("ml.trees.regressor", std::move(trees), aggregate_named(ctx),
                        [transform = ml::transform_of(ctx), base, targets](
                            RunContext& run, const Trees::State& state, std::span<double> scores) {
                          write_regression(run, state, targets, scores, base, transform);
                        });
}

// --- TreeEnsembleClassifier ---------------------------------------------------------------------

struct Classes {
  ml::Labels labels;
  bool single = false;   // all weights are of class 0 of two: one score that speaks for the second
  bool second = false;   // all weights are of class 1 of two
  bool positive = true;  // no weight is negative: a single score is a probability
};

ml::Labels class_labels(const NodeView& node) {
  ml::Labels labels = ml::labels_of(node, "classlabels_int64s", "classlabels_strings");
  if (labels.size() == 0)
    node.fail("needs one of the attributes classlabels_int64s and classlabels_strings");
  return labels;
}

Classes classes_of(const NodeView& node) {
  Classes classes{class_labels(node)};
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
  const ml::Labels labels = class_labels(ctx);
  const auto samples = ml::samples_of(ctx);
  const Dim rows = samples ? samples->rows : ctx.unknown();
  ctx.set(0, labels.type(), {rows});
  ctx.set(1, ElementType::float32,
          {rows, Dim(std::max<int64_t>(2, static_cast<int64_t>(labels.size())))});
}

// Where a score of two classes, the only one, turns from the first to the second.
bool is_second(const Classes& classes, float score) {
  return score > (classes.positive ? 0.5f : 0.0f);
}

// The standard does not say how one score becomes two. As runtimes have it: a probability leaves
// the rest to the first class, any other score gives it the opposite, and so does one that is
// transformed.
float opposite(const Classes& classes, ml::Transform transform, float score) {
  const bool rest =
      transform == ml::Transform::probit || (transform == ml::Transform::none && classes.positive);
  return rest ? 1 - score : -score;
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
  Trees trees(OldFormReader(ctx, "class").read(), std::max<int64_t>(targets, only + 1),
              ctx.in_element(0));
  const int64_t width = trees.targets(), columns = classes.single ? 2 : width;
  const auto write = [=](RunContext& run, const Trees::State& state, std::span<double> scores) {
    float* const results = Trees::results(run, state, 1);
    for_results(run, state, width, [&](int64_t first, int64_t rows) {
      int64_t labels[rows_at_once];
      const auto score = [&](int64_t i, int64_t k) {
        return static_cast<float>(scores[static_cast<size_t>((first + i) * width + k)] +
                                  base_of(base, k));
      };
      for (int64_t i = 0; i < rows; ++i) {
        float* const row = results + (first + i) * columns;
        if (classes.single) {
          row[1] = score(i, only);
          row[0] = opposite(classes, transform, row[1]);
        } else {
          for (int64_t k = 0; k < width; ++k) row[k] = score(i, k);
        }
        labels[i] = classes.single || classes.second
                        ? classes.labels.size() == 2 && is_second(classes, score(i, only))
                        : std::max_element(row, row + width) - row;
        if (classes.labels.size() == 1)
          classes.labels.write_only(run, first + i, is_second(classes, score(i, 0)));
      }
      if (classes.labels.size() != 1)
        classes.labels.write(run, first, {labels, static_cast<size_t>(rows)});
      const std::span<float> some(results + first * columns, static_cast<size_t>(rows * columns));
      ml::apply(transform, some, columns);
      write_results(run, 1, some, first * columns);
    });
  };
  return make_tree_step("ml.trees.classifier", std::move(trees), TreeAggregate::sum, write);
}

// --- TreeEnsemble -------------------------------------------------------------------------------

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

ForestParts new_forest(const NodeView& node, int64_t targets) {
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
  parts.nodes = new_nodes(node);
  parts.roots = ints_of(node, "tree_roots");
  parts.root_is_leaf.assign(parts.roots.size(), false);
  parts.leaf_begins = std::move(begins);
  parts.weights = std::move(leaves);
  parts.sets = member_sets(node);
  return parts;
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
  Trees trees(new_forest(ctx, targets), targets, ctx.in_element(0));
  return make_tree_step("ml.trees.ensemble", std::move(trees), aggregate_numbered(ctx),
                        [transform = transform_numbered(ctx), targets](
                            RunContext& run, const Trees::State& state, std::span<double> scores) {
                          write_regression(run, state, targets, scores, {}, transform);
                        });
}

constexpr std::string_view target_attributes[] = {"n_targets"};
constexpr std::string_view label_attributes[] = {"classlabels_int64s", "classlabels_strings"};

constexpr Operator operators[] = {
    {.name = "TreeEnsemble",
     .domain = ml::domain,
     .infer = infer_ensemble,
     .prepare = prepare_ensemble,
     .infer_reads = target_attributes},
    {.name = "TreeEnsembleRegressor",
     .domain = ml::domain,
     .infer = infer_regressor,
     .prepare = prepare_regressor,
     .infer_reads = target_attributes},
    {.name = "TreeEnsembleClassifier",
     .domain = ml::domain,
     .infer = infer_classifier,
     .prepare = prepare_classifier,
     .infer_reads = label_attributes},
};

}  // namespace

std::span<const Operator> ml_trees_operators() { return operators; }

}  // namespace sardonyx::ops
