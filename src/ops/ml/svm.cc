// SVMRegressor and SVMClassifier.
#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/rows/support_vectors.h"
#include "ops/ml/classic.h"

namespace sardonyx::ops {
namespace ml_svm_unit {
namespace {

using kernels::SupportVectors;

// The kernel function's kind and parameters.
SupportVectors kernel_of(const NodeView& node) {
  SupportVectors made;
  const std::string name = node.attr_string("kernel_type", "LINEAR");
  if (name == "LINEAR")
    made.kernel = SupportVectors::Kernel::linear;
  else if (name == "POLY")
    made.kernel = SupportVectors::Kernel::poly;
  else if (name == "RBF")
    made.kernel = SupportVectors::Kernel::rbf;
  else if (name == "SIGMOID")
    made.kernel = SupportVectors::Kernel::sigmoid;
  else
    node.fail("kernel_type must be LINEAR, POLY, RBF or SIGMOID; got '{}'", name);
  const auto parameters = node.attr_floats("kernel_params").value_or(std::vector<float>());
  if (!parameters.empty() && parameters.size() != 3)
    node.fail("kernel_params must hold gamma, coef0 and degree; it has {} elements",
              parameters.size());
  if (parameters.size() == 3)
    made.gamma = parameters[0], made.coef0 = parameters[1], made.degree = parameters[2];
  return made;
}

std::vector<float> floats_of(const NodeView& node, std::string_view name) {
  return node.attr_floats(name).value_or(std::vector<float>());
}

// Floats that a worker needs for the sample, its kernels and `more`.
int64_t worker_floats(const SupportVectors& v, size_t features, int64_t more) {
  return (static_cast<int64_t>(features) + 15) / 16 * 16 + v.padded() + more;
}

struct State {
  int64_t worker_floats = 0;
};

auto bind_workers(const SupportVectors& v, size_t features, int64_t more) {
  return [floats = (worker_floats(v, features, more) + 15) / 16 * 16](BindContext& bind, State& s) {
    s.worker_floats = floats;
    bind.need_scratch(bind.threads() * floats * 4);
  };
}

// row(i, sample, memory): memory has room for v.padded() floats and what else was asked for.
template <class Row>
void for_samples(RunContext& run, const State& s, size_t expected, Row&& row) {
  const auto [rows, features] = ml::rows_of(run.in_shape(0));
  if (static_cast<size_t>(features) != expected) {
    throw Error(
        ErrorCode::run_failed,
        fmt::format("the support vectors have {} features; the input has {}", expected, features));
  }
  auto* scratch = static_cast<float*>(run.scratch());
  run.pool().parallel_for(
      rows, 64, [&, features = features](int64_t begin, int64_t end, int worker) {
        float* x = scratch + worker * s.worker_floats;
        for (int64_t i = begin; i < end; ++i) {
          ml::read_numbers(run.in_type(0), run.data(0), i * features, features, x);
          row(i, x, x + (features + 15) / 16 * 16);
        }
      });
}

// --- SVMRegressor -------------------------------------------------------------------------------

void infer_regressor(InferContext& ctx) {
  const auto samples = ml::samples_of(ctx);
  ctx.set(0, ElementType::float32, {samples ? samples->rows : ctx.unknown(), Dim(1)});
}

struct Regressor {
  SupportVectors vectors;  // none: one vector of weights
  std::vector<float> coefficients;
  size_t features = 0;
  double rho = 0;
  bool one_class = false;
};

Regressor regressor_of(const NodeView& node) {
  Regressor r;
  const int64_t supports = node.attr_int("n_supports", 0);
  const std::vector<float> vectors = floats_of(node, "support_vectors");
  r.coefficients = floats_of(node, "coefficients");
  const auto rho = floats_of(node, "rho");
  if (rho.empty()) node.fail("attribute 'rho' is required and absent; add it to the node");
  r.rho = rho[0];
  r.one_class = node.attr_int("one_class", 0) != 0;
  if (supports < 0) node.fail("n_supports must not be negative; got {}", supports);
  if (supports == 0) {
    r.features = r.coefficients.size();
    return r;
  }
  r.vectors = kernel_of(node);
  const auto count = static_cast<size_t>(supports);
  if (vectors.size() % count != 0 || r.coefficients.size() < count) {
    node.fail(
        "{} support vectors need as many coefficients and a multiple of numbers; found {} and {}",
        supports, r.coefficients.size(), vectors.size());
  }
  r.features = vectors.size() / count;
  r.vectors.count = supports, r.vectors.features = static_cast<int64_t>(r.features);
  r.vectors.arrange(vectors.data());
  return r;
}

float score_of(const Regressor& r, const float* x, float* memory) {
  const auto weighted = [&](const float* values, int64_t n) {
    return static_cast<float>(r.rho + kernels::weighted_sum(r.coefficients.data(), values, n));
  };
  if (r.vectors.count == 0) return weighted(x, static_cast<int64_t>(r.features));
  kernels::support_kernels(r.vectors, x, memory);
  return weighted(memory, r.vectors.count);
}

std::unique_ptr<Step> prepare_regressor(PrepareContext& ctx) {
  const Regressor regressor = regressor_of(ctx);
  return make_step<State>(
      "ml.svm_regressor", bind_workers(regressor.vectors, regressor.features, 0),
      [r = regressor, transform = ml::transform_of(ctx)](RunContext& run, const State& s) {
        for_samples(run, s, r.features, [&](int64_t i, const float* x, float* memory) {
          float score = score_of(r, x, memory);
          if (r.one_class)
            score = score > 0 ? 1.0f : -1.0f;
          else
            ml::apply(transform, std::span(&score, 1));
          run.out<float>(0)[i] = score;
        });
      });
}

// --- SVMClassifier ------------------------------------------------------------------------------

struct Classifier {
  SupportVectors support;
  ml::Labels labels;
  ml::Transform transform = ml::Transform::none;
  std::vector<float> coefficients, rho, prob_a, prob_b;
  std::vector<size_t> begins;  // of each class, its first support vector; and the end
  size_t classes = 1, features = 0;
  bool positive = true;  // no coefficient is negative

  size_t vector_count() const { return begins.empty() ? 0 : begins.back(); }
  size_t pairs() const { return classes * (classes - 1) / 2; }
  bool has_probabilities() const { return vector_count() > 0 && !prob_a.empty(); }
  size_t scores() const { return vector_count() == 0 || has_probabilities() ? classes : pairs(); }
  // A single score of two classes is written for both.
  size_t columns() const {
    return scores() == 1 && rho.size() == 1 && labels.size() == 2 ? 2 : scores();
  }
};

// `numbers`: of all support vectors together.
void check(const NodeView& node, const Classifier& c, size_t numbers) {
  const size_t vectors = c.vector_count();
  if (vectors == 0) {
    if (c.coefficients.empty() || c.coefficients.size() % c.classes != 0)
      node.fail("coefficients must be a multiple of the {} classes; there are {}", c.classes,
                c.coefficients.size());
    return;
  }
  if (c.begins.size() != c.classes + 1)
    node.fail("vectors_per_class must have one element per class, {}; it has {}", c.classes,
              c.begins.size() - 1);
  if (numbers % vectors != 0)
    node.fail("support_vectors must be a multiple of the {} vectors; it has {} numbers", vectors,
              numbers);
  if (c.classes > 1 && c.coefficients.size() < (c.classes - 1) * vectors)
    node.fail("coefficients must have {} elements; it has {}", (c.classes - 1) * vectors,
              c.coefficients.size());
  if (c.rho.size() < c.pairs())
    node.fail("rho must have one element per pair of classes, {}; it has {}", c.pairs(),
              c.rho.size());
  if (c.has_probabilities() && (c.prob_a.size() < c.pairs() || c.prob_b.size() < c.pairs())) {
    node.fail(
        "prob_a and prob_b must have one element per pair of classes, {}; they have {} and {}",
        c.pairs(), c.prob_a.size(), c.prob_b.size());
  }
}

Classifier classifier_of(const NodeView& node) {
  Classifier c;
  c.labels = ml::labels_of(node, "classlabels_ints", "classlabels_strings");
  c.transform = ml::transform_of(node);
  c.classes = std::max<size_t>(c.labels.size(), 1);
  const std::vector<float> numbers = floats_of(node, "support_vectors");
  c.coefficients = floats_of(node, "coefficients");
  c.rho = floats_of(node, "rho"), c.prob_a = floats_of(node, "prob_a"),
  c.prob_b = floats_of(node, "prob_b");
  if (c.rho.empty()) node.fail("attribute 'rho' is required and absent; add it to the node");
  size_t total = 0;
  for (const int64_t count : node.attr_ints("vectors_per_class").value_or(std::vector<int64_t>())) {
    if (count < 0 || count > INT32_MAX)
      node.fail("vectors_per_class must not be negative; got {}", count);
    if (c.begins.empty()) c.begins.push_back(0);
    c.begins.push_back(total += static_cast<size_t>(count));
  }
  for (const float coefficient : c.coefficients) c.positive &= coefficient >= 0;
  check(node, c, numbers.size());
  const size_t vectors = c.vector_count();
  c.features = vectors > 0 ? numbers.size() / vectors : c.coefficients.size() / c.classes;
  if (vectors == 0) return c;
  c.support = kernel_of(node);
  c.support.count = static_cast<int64_t>(vectors);
  c.support.features = static_cast<int64_t>(c.features);
  c.support.arrange(numbers.data());
  return c;
}

void infer_classifier(InferContext& ctx) {
  const Classifier c = classifier_of(ctx);
  const auto samples = ml::samples_of(ctx);
  const Dim rows = samples ? samples->rows : ctx.unknown();
  ctx.set(0, c.labels.type(), {rows});
  ctx.set(1, ElementType::float32, {rows, Dim(static_cast<int64_t>(c.columns()))});
}

// What one sample needs beside its kernels.
struct Work {
  explicit Work(const Classifier& c, float* memory) {
    const size_t k = c.classes;
    const auto take = [&](size_t doubles) {
      auto* at = reinterpret_cast<double*>(memory);
      memory += 2 * doubles;
      return at;
    };
    if (c.has_probabilities()) p = take(k), qp = take(k), pairwise = take(k * k), q = take(k * k);
    scores = memory, votes = memory + max_scores(c);
  }
  // In floats; the memory is aligned for doubles.
  static int64_t size(const Classifier& c) {
    const size_t k = c.classes, doubles = c.has_probabilities() ? 2 * k + 2 * k * k : 0;
    return static_cast<int64_t>(2 * doubles + max_scores(c) + k);
  }
  // One more than there are, for two columns.
  static size_t max_scores(const Classifier& c) {
    return 1 + std::max(c.classes, c.vector_count() > 0 ? c.pairs() : 0);
  }
  double *p = nullptr, *qp = nullptr, *pairwise = nullptr, *q = nullptr;
  float* scores;
  float* votes;  // of each class
};

// A score for each pair of classes, and the votes they give.
void score_pairs(const Classifier& c, const float* kernels, const Work& work) {
  const auto vectors = static_cast<int64_t>(c.vector_count());
  std::fill_n(work.votes, c.classes, 0.0f);
  const auto part = [&](size_t row, size_t of) {
    const auto first = static_cast<int64_t>(c.begins[of]),
               end = static_cast<int64_t>(c.begins[of + 1]);
    return kernels::weighted_sum(
        c.coefficients.data() + static_cast<int64_t>(row) * vectors + first, kernels + first,
        end - first);
  };
  size_t pair = 0;
  for (size_t i = 0; i < c.classes; ++i) {
    for (size_t j = i + 1; j < c.classes; ++j, ++pair) {
      const double score = static_cast<double>(c.rho[pair]) + part(j - 1, i) + part(i, j);
      work.scores[pair] = static_cast<float>(score);
      work.votes[score > 0 ? i : j] += 1;
    }
  }
}

// Probabilities of the classes from those of the pairs: the second method of Wu, Lin and Weng
// (2004), by their iteration.
void couple(const Work& work, size_t k) {
  double *q = work.q, *p = work.p, *qp = work.qp;
  const double* pairwise = work.pairwise;
  std::fill_n(q, k * k, 0.0);
  std::fill_n(p, k, 1.0 / static_cast<double>(k));
  for (size_t t = 0; t < k; ++t) {
    for (size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += pairwise[j * k + t] * pairwise[j * k + t];
      q[t * k + j] = -pairwise[j * k + t] * pairwise[t * k + j];
    }
  }
  const double tolerance = 0.005 / static_cast<double>(k);
  for (size_t round = 0; round < std::max<size_t>(100, k); ++round) {
    double pqp = 0, error = 0;
    for (size_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (size_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
      pqp += p[t] * qp[t];
    }
    for (size_t t = 0; t < k; ++t) error = std::max(error, std::fabs(qp[t] - pqp));
    if (error < tolerance) break;
    for (size_t t = 0; t < k; ++t) {
      const double step = (pqp - qp[t]) / q[t * k + t];
      p[t] += step;
      pqp = (pqp + step * (step * q[t * k + t] + 2 * qp[t])) / ((1 + step) * (1 + step));
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q[t * k + j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
}

// The scores of the pairs become probabilities of the classes.
void scores_to_probabilities(const Classifier& c, const Work& work) {
  size_t at = 0;
  for (size_t i = 0; i < c.classes; ++i) {
    for (size_t j = i + 1; j < c.classes; ++j, ++at) {
      const float fitted = 1 - ml::logistic(work.scores[at] * c.prob_a[at] + c.prob_b[at]);
      const double chance = std::clamp<double>(fitted, 1e-7, 1 - 1e-7);
      work.pairwise[i * c.classes + j] = chance;
      work.pairwise[j * c.classes + i] = 1 - chance;
    }
  }
  couple(work, c.classes);
  std::copy_n(work.p, c.classes, work.scores);
}

// One sample's scores and the index of its label.
int64_t classify(const Classifier& c, const float* x, float* memory, const Work& work) {
  const float* deciding = work.votes;
  if (c.vector_count() == 0) {
    for (size_t k = 0; k < c.classes; ++k)
      work.scores[k] =
          static_cast<float>(static_cast<double>(c.rho[0]) +
                             kernels::weighted_sum(x, c.coefficients.data() + k * c.features,
                                                   static_cast<int64_t>(c.features)));
    deciding = work.scores;
  } else {
    kernels::support_kernels(c.support, x, memory);
    score_pairs(c, memory, work);
    if (c.has_probabilities()) scores_to_probabilities(c, work);
  }
  int64_t best = std::max_element(deciding, deciding + c.classes) - deciding;
  const float weight = deciding[best];
  const bool single = c.rho.size() == 1;
  if (single && c.labels.size() == 2 && !c.has_probabilities() && c.positive && weight >= 0.5f)
    best = 1;
  if (single && c.labels.size() < 2) best = weight > 0 ? 1 : 0;
  return best;
}

std::unique_ptr<Step> prepare_classifier(PrepareContext& ctx) {
  const Classifier classifier = classifier_of(ctx);
  return make_step<State>(
      "ml.svm_classifier",
      bind_workers(classifier.support, classifier.features, Work::size(classifier)),
      [c = classifier](RunContext& run, const State& s) {
        const size_t columns = c.columns();
        for_samples(run, s, c.features, [&](int64_t i, const float* x, float* memory) {
          const Work work(c, memory + c.support.padded());
          const int64_t label = classify(c, x, memory, work);
          if (c.labels.size() == 1)
            c.labels.write_only(run, i, label == 1);
          else
            c.labels.write(run, i, label);
          if (c.scores() == 1 && columns == 2) {
            work.scores[1] = work.scores[0];
            work.scores[0] = -work.scores[1];
          }
          ml::apply(c.transform, std::span(work.scores, columns));
          if (run.has_output(1))
            std::copy_n(work.scores, columns,
                        run.out<float>(1) + i * static_cast<int64_t>(columns));
        });
      });
}

constexpr Operator operators[] = {
    {.name = "SVMRegressor",
     .domain = ml::domain,
     .infer = infer_regressor,
     .prepare = prepare_regressor,
     .infer_reads = std::span<const std::string_view>()},
    {.name = "SVMClassifier",
     .domain = ml::domain,
     .infer = infer_classifier,
     .prepare = prepare_classifier},
};

}  // namespace
}  // namespace ml_svm_unit

std::span<const Operator> ml_svm_operators() { return ml_svm_unit::operators; }

}  // namespace sardonyx::ops
