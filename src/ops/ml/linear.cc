// LinearRegressor and LinearClassifier: scores that are weighted sums of features.
#include <algorithm>
#include <memory>
#include <type_traits>

#include "kernels/rows/support_vectors.h"
#include "ops/ml/classic.h"

namespace sardonyx::ops {
namespace {

// coefficients[targets, features] and an intercept for each target.
struct Weights {
  std::vector<float> coefficients, intercepts;
  size_t targets = 0;

  // The scores of one sample, summed as doubles.
  template <class T>
  void score(const T* x, size_t features, float* y) const {
    for (size_t t = 0; t < targets; ++t) {
      const double from = intercepts.empty() ? 0 : intercepts[intercepts.size() == 1 ? 0 : t];
      const float* row = coefficients.data() + t * features;
      double sum = 0;
      if constexpr (std::is_same_v<T, float>) {
        sum = kernels::weighted_sum(x, row, static_cast<int64_t>(features));
      } else {
        sum = ml::sum_of_products(x, row, features);
      }
      y[t] = static_cast<float>(from + sum);
    }
  }
};

Weights weights_of(const NodeView& node, size_t targets) {
  Weights w;
  w.coefficients = node.attr_floats("coefficients").value_or(std::vector<float>());
  w.intercepts = node.attr_floats("intercepts").value_or(std::vector<float>());
  w.targets = targets;
  if (targets == 0 || w.coefficients.size() % targets != 0) {
    node.fail("coefficients must be a multiple of the {} targets; there are {}", targets,
              w.coefficients.size());
  }
  if (w.intercepts.size() > 1 && w.intercepts.size() != targets)
    node.fail("intercepts must have 1 element or one per target, {}; it has {}", targets,
              w.intercepts.size());
  return w;
}

void check_features(InferContext& ctx, const Weights& w) {
  if (const auto samples = ml::samples_of(ctx)) {
    ctx.require_equal(samples->features,
                      Dim(static_cast<int64_t>(w.coefficients.size() / w.targets)),
                      "the input must have one column per coefficient of a target");
  }
}

// Calls row(i, scores) for every sample.
template <class Row>
void for_samples(RunContext& run, const Weights& w, Row&& row) {
  const auto [rows, features] = ml::rows_of(run.in_shape(0));
  run.pool().parallel_for(rows, 256, [&, features = features](int64_t begin, int64_t end, int) {
    const auto count = static_cast<size_t>(features);
    const float* floats = run.in_type(0) == ElementType::float32 ? run.in<float>(0) : nullptr;
    std::vector<double> x(floats ? 0 : count);
    std::vector<float> scores;
    for (int64_t i = begin; i < end; ++i) {
      scores.resize(w.targets);
      if (floats) {
        w.score(floats + i * features, count, scores.data());
      } else {
        ml::read_numbers(run.in_type(0), run.data(0), i * features, features, x.data());
        w.score(x.data(), count, scores.data());
      }
      row(i, scores);
    }
  });
}

// --- LinearRegressor
// ------------------------------------------------------------------------------

size_t target_count(const NodeView& node) {
  const int64_t targets = node.attr_int("targets", 1);
  if (targets < 1) node.fail("targets must be 1 or more; got {}", targets);
  return static_cast<size_t>(targets);
}

void infer_regressor(InferContext& ctx) {
  const Weights w = weights_of(ctx, target_count(ctx));
  check_features(ctx, w);
  const auto samples = ml::samples_of(ctx);
  ctx.set(0, ElementType::float32,
          {samples ? samples->rows : ctx.unknown(), Dim(static_cast<int64_t>(w.targets))});
}

std::unique_ptr<Step> prepare_regressor(PrepareContext& ctx) {
  return make_step("ml.linear_regressor", [w = weights_of(ctx, target_count(ctx)),
                                           transform = ml::transform_of(ctx)](RunContext& run) {
    for_samples(run, w, [&](int64_t i, std::vector<float>& scores) {
      ml::apply(transform, scores);
      std::copy(scores.begin(), scores.end(),
                run.out<float>(0) + i * static_cast<int64_t>(scores.size()));
    });
  });
}

// --- LinearClassifier
// -----------------------------------------------------------------------------

struct Classifier {
  Weights weights;
  ml::Labels labels;
  // One row of coefficients for two classes: it speaks for the second.
  bool single() const { return weights.targets == 1 && labels.size() == 2; }
  size_t columns() const { return single() ? 2 : weights.targets; }
};

Classifier classifier_of(const NodeView& node) {
  Classifier c;
  c.labels = ml::labels_of(node, "classlabels_ints", "classlabels_strings");
  const auto intercepts = node.attr_floats("intercepts").value_or(std::vector<float>());
  c.weights = weights_of(
      node, intercepts.empty() ? std::max<size_t>(c.labels.size(), 1) : intercepts.size());
  if (c.labels.size() > 0 && c.labels.size() != c.columns() && c.weights.targets > 1) {
    node.fail("there must be one label per class, {}; there are {}", c.weights.targets,
              c.labels.size());
  }
  return c;
}

void infer_classifier(InferContext& ctx) {
  const Classifier c = classifier_of(ctx);
  check_features(ctx, c.weights);
  const auto samples = ml::samples_of(ctx);
  const Dim rows = samples ? samples->rows : ctx.unknown();
  ctx.set(0, c.labels.type(), {rows});
  ctx.set(1, ElementType::float32, {rows, Dim(static_cast<int64_t>(c.columns()))});
}

std::unique_ptr<Step> prepare_classifier(PrepareContext& ctx) {
  const auto transform = ml::transform_of(ctx);
  return make_step("ml.linear_classifier", [c = classifier_of(ctx), transform](RunContext& run) {
    for_samples(run, c.weights, [&](int64_t i, std::vector<float>& scores) {
      int64_t label = std::max_element(scores.begin(), scores.end()) - scores.begin();
      if (scores.size() == 1) label = scores[0] > 0 ? 1 : 0;
      if (c.single()) scores.insert(scores.begin(), -scores[0]);
      ml::apply(transform, scores);
      if (c.labels.size() == 1)
        c.labels.write_only(run, i, label == 1);
      else
        c.labels.write(run, i, label);
      if (run.has_output(1))
        std::copy(scores.begin(), scores.end(),
                  run.out<float>(1) + i * static_cast<int64_t>(scores.size()));
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

std::span<const Operator> ml_linear_operators() { return operators; }

}  // namespace sardonyx::ops
