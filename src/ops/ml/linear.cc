// LinearRegressor and LinearClassifier: scores that are weighted sums of features.
#include <algorithm>
#include <memory>

#include "kernels/rows/linear_scores.h"
#include "ops/ml/classic.h"

namespace sardonyx::ops {
namespace ml_linear_unit {
namespace {

kernels::LinearTargets targets_of(const NodeView& node, size_t targets) {
  const auto coefficients = node.attr_floats("coefficients").value_or(std::vector<float>());
  const auto intercepts = node.attr_floats("intercepts").value_or(std::vector<float>());
  if (targets == 0 || coefficients.empty() || coefficients.size() % targets != 0) {
    node.fail("coefficients must be one or more for each of the {} targets; there are {}", targets,
              coefficients.size());
  }
  if (intercepts.size() > 1 && intercepts.size() != targets)
    node.fail("intercepts must have 1 element or one per target, {}; it has {}", targets,
              intercepts.size());
  kernels::LinearTargets linear;
  linear.targets = static_cast<int64_t>(targets);
  linear.features = static_cast<int64_t>(coefficients.size() / targets);
  linear.arrange(coefficients, intercepts);
  return linear;
}

void check_features(InferContext& ctx, const kernels::LinearTargets& linear) {
  if (const auto samples = ml::samples_of(ctx)) {
    ctx.require_equal(samples->features, Dim(linear.features),
                      "the input must have one column per coefficient of a target");
  }
}

// Calls take(first, scores) for the scores [n, targets] of samples from `first` on.
template <class Take>
void for_scores(RunContext& run, const kernels::LinearTargets& linear, Take&& take) {
  const int64_t rows = ml::rows_of(run.in_shape(0)).rows;
  const auto width = static_cast<size_t>(linear.targets);
  constexpr int64_t block = 256;
  run.pool().parallel_for(rows, block, [&](int64_t begin, int64_t end, int) {
    std::vector<float> scores;
    std::vector<double> numbers;
    for (int64_t first = begin; first < end; first += block) {
      const int64_t n = std::min(block, end - first);
      const int64_t at = first * linear.features;
      scores.resize(static_cast<size_t>(n) * width);
      if (run.in_type(0) == ElementType::float32) {
        kernels::linear_scores(linear, run.in<float>(0) + at, n, scores.data());
      } else {
        numbers.resize(static_cast<size_t>(n * linear.features));
        ml::read_numbers(run.in_type(0), run.data(0), at, n * linear.features, numbers.data());
        kernels::linear_scores(linear, numbers.data(), n, scores.data());
      }
      take(first, std::span<float>(scores));
    }
  });
}

// --- LinearRegressor ----------------------------------------------------------------------------

size_t target_count(const NodeView& node) {
  const int64_t targets = node.attr_int("targets", 1);
  if (targets < 1) node.fail("targets must be 1 or more; got {}", targets);
  return static_cast<size_t>(targets);
}

void infer_regressor(InferContext& ctx) {
  const kernels::LinearTargets linear = targets_of(ctx, target_count(ctx));
  check_features(ctx, linear);
  const auto samples = ml::samples_of(ctx);
  ctx.set(0, ElementType::float32, {samples ? samples->rows : ctx.unknown(), Dim(linear.targets)});
}

std::unique_ptr<Step> prepare_regressor(PrepareContext& ctx) {
  return make_step("ml.linear_regressor", [linear = targets_of(ctx, target_count(ctx)),
                                           transform = ml::transform_of(ctx)](RunContext& run) {
    for_scores(run, linear, [&](int64_t first, std::span<float> scores) {
      ml::apply(transform, scores, linear.targets);
      std::ranges::copy(scores, run.out<float>(0) + first * linear.targets);
    });
  });
}

// --- LinearClassifier ---------------------------------------------------------------------------

struct Classifier {
  kernels::LinearTargets linear;
  ml::Labels labels;
  // One row of coefficients for two classes: it speaks for the second.
  bool single() const { return linear.targets == 1 && labels.size() == 2; }
  int64_t columns() const { return single() ? 2 : linear.targets; }
};

Classifier classifier_of(const NodeView& node) {
  Classifier c;
  c.labels = ml::labels_of(node, "classlabels_ints", "classlabels_strings");
  const auto intercepts = node.attr_floats("intercepts").value_or(std::vector<float>());
  c.linear = targets_of(
      node, intercepts.empty() ? std::max<size_t>(c.labels.size(), 1) : intercepts.size());
  if (c.labels.size() > 0 && static_cast<int64_t>(c.labels.size()) != c.columns() &&
      c.linear.targets > 1) {
    node.fail("there must be one label per class, {}; there are {}", c.linear.targets,
              c.labels.size());
  }
  return c;
}

void infer_classifier(InferContext& ctx) {
  const Classifier c = classifier_of(ctx);
  check_features(ctx, c.linear);
  const auto samples = ml::samples_of(ctx);
  const Dim rows = samples ? samples->rows : ctx.unknown();
  ctx.set(0, c.labels.type(), {rows});
  ctx.set(1, ElementType::float32, {rows, Dim(c.columns())});
}

// The first of the greatest; no branch depends on the scores, which are anything.
int64_t greatest(const float* scores, size_t n) {
  float top = scores[0];
  int64_t at = 0;
  for (size_t i = 1; i < n; ++i) {
    at = scores[i] > top ? static_cast<int64_t>(i) : at;
    top = scores[i] > top ? scores[i] : top;
  }
  return at;
}

// Labels of the samples whose scores these are.
void write_labels(RunContext& run, const Classifier& c, int64_t first,
                  std::span<const float> scores) {
  const auto width = static_cast<size_t>(c.linear.targets);
  std::vector<int64_t> labels(scores.size() / width);
  for (size_t i = 0; i < labels.size(); ++i) {
    const float* row = scores.data() + i * width;
    labels[i] = width == 1 ? row[0] > 0 : greatest(row, width);
  }
  if (c.labels.size() != 1) return c.labels.write(run, first, labels);
  for (size_t i = 0; i < labels.size(); ++i)
    c.labels.write_only(run, first + static_cast<int64_t>(i), labels[i] == 1);
}

std::unique_ptr<Step> prepare_classifier(PrepareContext& ctx) {
  const auto transform = ml::transform_of(ctx);
  return make_step("ml.linear_classifier", [c = classifier_of(ctx), transform](RunContext& run) {
    for_scores(run, c.linear, [&](int64_t first, std::span<float> scores) {
      if (run.has_output(0)) write_labels(run, c, first, scores);
      if (!run.has_output(1)) return;
      float* const out = run.out<float>(1) + first * c.columns();
      if (c.single()) {
        for (size_t i = 0; i < scores.size(); ++i) {
          out[2 * i] = -scores[i];
          out[2 * i + 1] = scores[i];
        }
      } else {
        std::ranges::copy(scores, out);
      }
      const auto rows = static_cast<int64_t>(scores.size()) / c.linear.targets;
      ml::apply(transform, {out, static_cast<size_t>(rows * c.columns())}, c.columns());
    });
  });
}

constexpr Operator operators[] = {
    {.name = "LinearRegressor",
     .domain = ml::domain,
     .infer = infer_regressor,
     .prepare = prepare_regressor},
    {.name = "LinearClassifier",
     .domain = ml::domain,
     .infer = infer_classifier,
     .prepare = prepare_classifier},
};

}  // namespace
}  // namespace ml_linear_unit

std::span<const Operator> ml_linear_operators() { return ml_linear_unit::operators; }

}  // namespace sardonyx::ops
