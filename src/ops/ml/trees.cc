// TreeEnsemble, and its older forms TreeEnsembleRegressor and TreeEnsembleClassifier, which keep
// their attributes in the newest version too. One kernel walks the trees of all three.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "base/checked.h"
#include "kernels/convert/cast.h"
#include "kernels/rows/grain.h"
#include "kernels/trees/forest.h"
#include "ops/ml/classic.h"
#include "ops/ml/forest_attributes.h"
#include "ops/objections.h"

namespace sardonyx::ops {
namespace ml_trees_unit {
namespace {

using kernels::Forest;
using kernels::ForestParts;
using kernels::TreeAggregate;

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
      kernels::to_float16(run.out_type(output), results.data(), run.out<uint16_t>(output) + at,
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
  const auto base = ml::numbers_of_attribute(ctx, "base_values");
  if (base.size() > 1 && static_cast<int64_t>(base.size()) != targets)
    ctx.fail("base_values must have 1 element or one per target, {}; it has {}", targets,
             base.size());
  Trees trees(ml::forest_of_numbers(ctx, "target"), targets, ctx.in_element(0));
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
  const std::vector<int64_t> ids = ml::ints_of(node, "class_ids");
  const bool alike =
      std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == ids.front(); });
  classes.second = classes.labels.size() == 2 && alike && !ids.empty() && ids.front() == 1;
  classes.single = classes.labels.size() <= 2 && alike && !classes.second;
  for (const double weight : ml::numbers_of_attribute(node, "class_weights"))
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
  const std::vector<int64_t> ids = ml::ints_of(ctx, "class_ids");
  const int64_t only = ids.empty() ? 0 : ids.front();
  const auto base = ml::numbers_of_attribute(ctx, "base_values");
  if (base.size() > 1 && static_cast<int64_t>(base.size()) != targets)
    ctx.fail("base_values must have 1 element or one per class, {}; it has {}", targets,
             base.size());
  const auto transform = ml::transform_of(ctx);
  Trees trees(ml::forest_of_numbers(ctx, "class"), std::max<int64_t>(targets, only + 1),
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

// All attributes are at hand where objections are wanted.
void object_to_ensemble(const InferContext& ctx) {
  if (!wants_objections()) return;
  try {
    ml::forest_of_places(ctx, target_count(ctx));
  } catch (const Error& error) {
    object(ctx, "{}", error.message());
  }
}

void infer_ensemble(InferContext& ctx) {
  if (const auto rank = ctx.rank(0); rank && *rank != 2)
    object(ctx, "X must be of rank 2; it is of rank {}", *rank);
  object_to_ensemble(ctx);
  infer_rows(ctx, ctx.element(0), target_count(ctx), 0);
}

std::unique_ptr<Step> prepare_ensemble(PrepareContext& ctx) {
  const int64_t targets = target_count(ctx);
  Trees trees(ml::forest_of_places(ctx, targets), targets, ctx.in_element(0));
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
}  // namespace ml_trees_unit

std::span<const Operator> ml_trees_operators() { return ml_trees_unit::operators; }

}  // namespace sardonyx::ops
