// SVMRegressor and SVMClassifier.
#include <algorithm>
#include <cmath>
#include <memory>

#include "ops/ml/classic.h"

namespace sardonyx::ops {
namespace {

enum class KernelType { linear, poly, rbf, sigmoid };

// A kernel function with its parameters.
struct Kernel {
  KernelType type = KernelType::linear;
  double gamma = 0, coef0 = 0, degree = 0;

  double operator()(const double* x, const float* y, size_t n) const {
    const double sum =
        type == KernelType::rbf ? ml::squared_distance(x, y, n) : ml::sum_of_products(x, y, n);
    switch (type) {
      case KernelType::poly: return std::pow(gamma * sum + coef0, degree);
      case KernelType::rbf: return std::exp(-gamma * sum);
      case KernelType::sigmoid: return std::tanh(gamma * sum + coef0);
      case KernelType::linear: break;
    }
    return sum;
  }
};

Kernel kernel_of(const NodeView& node) {
  Kernel kernel;
  const std::string name = node.attr_string("kernel_type", "LINEAR");
  if (name == "LINEAR")
    kernel.type = KernelType::linear;
  else if (name == "POLY")
    kernel.type = KernelType::poly;
  else if (name == "RBF")
    kernel.type = KernelType::rbf;
  else if (name == "SIGMOID")
    kernel.type = KernelType::sigmoid;
  else
    node.fail("kernel_type must be LINEAR, POLY, RBF or SIGMOID; got '{}'", name);
  const auto parameters = node.attr_floats("kernel_params").value_or(std::vector<float>());
  if (!parameters.empty() && parameters.size() != 3)
    node.fail("kernel_params must hold gamma, coef0 and degree; it has {} elements",
              parameters.size());
  if (parameters.size() == 3)
    kernel.gamma = parameters[0], kernel.coef0 = parameters[1], kernel.degree = parameters[2];
  return kernel;
}

std::vector<float> floats_of(const NodeView& node, std::string_view name) {
  return node.attr_floats(name).value_or(std::vector<float>());
}

template <class Row>
void for_samples(RunContext& run, size_t expected, Row&& row) {
  const auto [rows, features] = ml::rows_of(run.in_shape(0));
  if (static_cast<size_t>(features) != expected) {
    throw Error(
        ErrorCode::run_failed,
        fmt::format("the support vectors have {} features; the input has {}", expected, features));
  }
  run.pool().parallel_for(rows, 64, [&, features = features](int64_t begin, int64_t end, int) {
    std::vector<double> x(static_cast<size_t>(features));
    for (int64_t i = begin; i < end; ++i) {
      ml::read_numbers(run.in_type(0), run.data(0), i * features, features, x.data());
      row(i, x.data());
    }
  });
}

// --- SVMRegressor
// ---------------------------------------------------------------------------------

void infer_regressor(InferContext& ctx) {
  const auto samples = ml::samples_of(ctx);
  ctx.set(0, ElementType::float32, {samples ? samples->rows : ctx.unknown(), Dim(1)});
}

struct Regressor {
  Kernel kernel;
  std::vector<float> vectors, coefficients;
  size_t count = 0, features = 0;
  double rho = 0;
  bool one_class = false;
};

Regressor regressor_of(const NodeView& node) {
  Regressor r;
  const int64_t supports = node.attr_int("n_supports", 0);
  r.coefficients = floats_of(node, "coefficients"), r.vectors = floats_of(node, "support_vectors");
  const auto rho = floats_of(node, "rho");
  if (rho.empty()) node.fail("attribute 'rho' is required and absent; add it to the node");
  r.rho = rho[0];
  r.one_class = node.attr_int("one_class", 0) != 0;
  if (supports < 0) node.fail("n_supports must not be negative; got {}", supports);
  if (supports == 0) {  // one vector of weights
    r.features = r.coefficients.size();
    return r;
  }
  r.kernel = kernel_of(node);
  r.count = static_cast<size_t>(supports);
  if (r.vectors.size() % r.count != 0 || r.coefficients.size() < r.count) {
    node.fail(
        "{} support vectors need as many coefficients and a multiple of numbers; found {} and {}",
        supports, r.coefficients.size(), r.vectors.size());
  }
  r.features = r.vectors.size() / r.count;
  return r;
}

std::unique_ptr<Step> prepare_regressor(PrepareContext& ctx) {
  return make_step("ml.svm_regressor",
                   [r = regressor_of(ctx), transform = ml::transform_of(ctx)](RunContext& run) {
                     for_samples(run, r.features, [&](int64_t i, const double* x) {
                       double sum = r.rho;
                       if (r.count == 0) sum += Kernel()(x, r.coefficients.data(), r.features);
                       for (size_t j = 0; j < r.count; ++j)
                         sum += static_cast<double>(r.coefficients[j]) *
                                r.kernel(x, r.vectors.data() + j * r.features, r.features);
                       auto score = static_cast<float>(sum);
                       if (r.one_class)
                         score = score > 0 ? 1.0f : -1.0f;
                       else
                         ml::apply(transform, std::span(&score, 1));
                       run.out<float>(0)[i] = score;
                     });
                   });
}

// --- SVMClassifier
// --------------------------------------------------------------------------------

struct Classifier {
  Kernel kernel;
  ml::Labels labels;
  ml::Transform transform = ml::Transform::none;
  std::vector<float> vectors, coefficients, rho, prob_a, prob_b;
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

void check(const NodeView& node, const Classifier& c) {
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
  if (c.vectors.size() % vectors != 0)
    node.fail("support_vectors must be a multiple of the {} vectors; it has {} numbers", vectors,
              c.vectors.size());
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
  c.coefficients = floats_of(node, "coefficients"), c.vectors = floats_of(node, "support_vectors");
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
  check(node, c);
  const size_t vectors = c.vector_count();
  if (vectors > 0) c.kernel = kernel_of(node);
  c.features = vectors > 0 ? c.vectors.size() / vectors : c.coefficients.size() / c.classes;
  return c;
}

void infer_classifier(InferContext& ctx) {
  const Classifier c = classifier_of(ctx);
  const auto samples = ml::samples_of(ctx);
  const Dim rows = samples ? samples->rows : ctx.unknown();
  ctx.set(0, c.labels.type(), {rows});
  ctx.set(1, ElementType::float32, {rows, Dim(static_cast<int64_t>(c.columns()))});
}

// A score for each pair of classes, and the votes they give.
void score_pairs(const Classifier& c, const double* x, std::vector<double>& kernels,
                 std::vector<float>& scores, std::vector<int>& votes) {
  const size_t vectors = c.vector_count();
  kernels.resize(vectors);
  for (size_t j = 0; j < vectors; ++j)
    kernels[j] = c.kernel(x, c.vectors.data() + j * c.features, c.features);
  votes.assign(c.classes, 0);
  scores.clear();
  const auto part = [&](size_t row, size_t of) {
    double sum = 0;
    for (size_t j = c.begins[of]; j < c.begins[of + 1]; ++j)
      sum += static_cast<double>(c.coefficients[row * vectors + j]) * kernels[j];
    return sum;
  };
  for (size_t i = 0; i < c.classes; ++i) {
    for (size_t j = i + 1; j < c.classes; ++j) {
      const double score = static_cast<double>(c.rho[scores.size()]) + part(j - 1, i) + part(i, j);
      scores.push_back(static_cast<float>(score));
      ++votes[score > 0 ? i : j];
    }
  }
}

// Probabilities of the classes from those of the pairs: the second method of Wu, Lin and Weng
// (2004), by their iteration.
std::vector<float> coupled(const std::vector<double>& pairwise, size_t k) {
  std::vector<double> q(k * k, 0), p(k, 1.0 / static_cast<double>(k)), qp(k);
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
  return {p.begin(), p.end()};
}

std::vector<float> probabilities(const Classifier& c, const std::vector<float>& scores) {
  std::vector<double> pairwise(c.classes * c.classes, 0);
  size_t at = 0;
  for (size_t i = 0; i < c.classes; ++i) {
    for (size_t j = i + 1; j < c.classes; ++j, ++at) {
      const float fitted = 1 - ml::logistic(scores[at] * c.prob_a[at] + c.prob_b[at]);
      const double chance = std::clamp<double>(fitted, 1e-7, 1 - 1e-7);
      pairwise[i * c.classes + j] = chance;
      pairwise[j * c.classes + i] = 1 - chance;
    }
  }
  return coupled(pairwise, c.classes);
}

// One sample's scores and the index of its label.
int64_t classify(const Classifier& c, const double* x, std::vector<float>& scores) {
  std::vector<double> kernels;
  std::vector<int> votes;
  int64_t best = 0;
  float weight = 0;
  if (c.vector_count() == 0) {
    scores.clear();
    for (size_t k = 0; k < c.classes; ++k)
      scores.push_back(
          static_cast<float>(static_cast<double>(c.rho[0]) +
                             Kernel()(x, c.coefficients.data() + k * c.features, c.features)));
    best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    weight = scores[static_cast<size_t>(best)];
  } else {
    score_pairs(c, x, kernels, scores, votes);
    if (c.has_probabilities()) scores = probabilities(c, scores);
    best = std::max_element(votes.begin(), votes.end()) - votes.begin();
    weight = static_cast<float>(votes[static_cast<size_t>(best)]);
  }
  const bool single = c.rho.size() == 1;
  if (single && c.labels.size() == 2 && !c.has_probabilities() && c.positive && weight >= 0.5f)
    best = 1;
  if (single && c.labels.size() < 2) best = weight > 0 ? 1 : 0;
  return best;
}

std::unique_ptr<Step> prepare_classifier(PrepareContext& ctx) {
  return make_step("ml.svm_classifier", [c = classifier_of(ctx)](RunContext& run) {
    const auto columns = static_cast<int64_t>(c.columns());
    for_samples(run, c.features, [&](int64_t i, const double* x) {
      std::vector<float> scores;
      const int64_t label = classify(c, x, scores);
      if (c.labels.size() == 1)
        c.labels.write_only(run, i, label == 1);
      else
        c.labels.write(run, i, label);
      if (scores.size() == 1 && columns == 2) scores.insert(scores.begin(), -scores[0]);
      ml::apply(c.transform, scores);
      if (run.has_output(1))
        std::copy(scores.begin(), scores.end(), run.out<float>(1) + i * columns);
    });
  });
}

constexpr Operator operators[] = {
    {.name = "SVMRegressor",
     .domain = ml::domain,
     .infer = infer_regressor,
     .prepare = prepare_regressor},
    {.name = "SVMClassifier",
     .domain = ml::domain,
     .infer = infer_classifier,
     .prepare = prepare_classifier},
};

}  // namespace

std::span<const Operator> ml_svm_operators() { return operators; }

}  // namespace sardonyx::ops
