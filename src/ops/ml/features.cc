// Scaler, Normalizer, Imputer, Binarizer, FeatureVectorizer, ArrayFeatureExtractor: numbers to
// numbers.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "base/checked.h"
#include "kernels/move/gather.h"
#include "kernels/rows/grain.h"
#include "ops/ml/classic.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace ml_features_unit {
namespace {

using ml::read_numbers;

void infer_float(InferContext& ctx) {
  ValueType type = ctx.type(0);
  type.kind = ir::TypeProto::Kind::tensor;
  type.element = ElementType::float32;
  ctx.set(0, std::move(type));
}

// The size of the last dimension, along which features lie; 1 for a scalar.
int64_t feature_count(const RunContext& run) {
  return run.in_shape(0).empty() ? 1 : run.in_shape(0).back();
}

int64_t row_count(const RunContext& run) {
  const int64_t features = feature_count(run);
  return features == 0 ? 0 : run.in_size(0) / features;
}

// Calls row(x, first) for each row of features as doubles, on several threads.
template <class Row>
void for_rows(RunContext& run, Row&& row) {
  const int64_t features = feature_count(run);
  kernels::for_rows_of(row_count(run), features, run.pool(), [&](int64_t begin, int64_t end) {
    std::vector<double> x(static_cast<size_t>(features));
    for (int64_t i = begin; i < end; ++i) {
      read_numbers(run.in_type(0), run.data(0), i * features, features, x.data());
      row(std::span(x), i * features);
    }
  });
}

// Calls some(first, n) for parts of the input, on several threads. Each begins a row and has at
// most as many elements as `repeated` gives for that many features.
constexpr int64_t part_elements = 256;
template <class Some>
void for_parts(RunContext& run, Some&& some) {
  const int64_t features = feature_count(run);
  if (features == 0) return;
  const int64_t rows = (part_elements + features - 1) / features;
  kernels::for_rows_of(row_count(run), features, run.pool(), [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += rows)
      some(begin * features, std::min(rows, end - begin) * features);
  });
}

// A list of a value per feature, or one for all, again and again: for whole rows, part_elements or
// more, or all that there are.
template <class T, class Value>
std::vector<T> repeated(const std::vector<Value>& list, const RunContext& run) {
  const int64_t features = std::max<int64_t>(feature_count(run), 1);
  const int64_t most = (part_elements + features - 1) / features * features;
  std::vector<T> all(static_cast<size_t>(std::min(most, run.in_size(0))), static_cast<T>(list[0]));
  if (list.size() == 1) return all;
  const auto row = static_cast<size_t>(features);
  for (size_t i = 0; i < all.size(); ++i) all[i] = i < row ? static_cast<T>(list[i]) : all[i - row];
  return all;
}

// A list with one element per feature, or one for all.
void check_per_feature(InferContext& ctx, std::string_view name, size_t size,
                       const std::optional<Dims>& shape) {
  if (size <= 1 || !shape) return;
  const Dim features = shape->empty() ? Dim(1) : shape->back();
  if (features.is_constant() && features != Dim(static_cast<int64_t>(size))) {
    ctx.fail("{} must have 1 element or one per feature, {}; it has {}", name, features.to_string(),
             size);
  }
  ctx.require_equal(features, Dim(static_cast<int64_t>(size)),
                    fmt::format("{} must have 1 element or one per feature", name));
}

// --- Scaler -------------------------------------------------------------------------------------

void infer_scaler(InferContext& ctx) {
  for (const auto* name : {"scale", "offset"})
    check_per_feature(ctx, name, ctx.attr_floats(name).value_or(std::vector<float>()).size(),
                      ctx.shape(0));
  infer_float(ctx);
}

template <class T>
void scale_part(const T* x, const T* offsets, const T* scales, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>((x[i] - offsets[i]) * scales[i]);
}

std::unique_ptr<Step> prepare_scaler(PrepareContext& ctx) {
  auto offset = ctx.attr_floats("offset").value_or(std::vector<float>()),
       scale = ctx.attr_floats("scale").value_or(std::vector<float>());
  if (offset.empty()) offset = {0};
  if (scale.empty()) scale = {1};
  return make_step("ml.scaler", [offset, scale](RunContext& run) {
    if (run.in_type(0) == ElementType::float32) {
      const auto offsets = repeated<float>(offset, run), scales = repeated<float>(scale, run);
      return for_parts(run, [&](int64_t first, int64_t n) {
        const float* x = run.in<float>(0) + first;
        scale_part(x, offsets.data(), scales.data(), n, run.out<float>(0) + first);
      });
    }
    // What is near an offset would lose its digits if it became a float before that is taken away.
    const auto offsets = repeated<double>(offset, run), scales = repeated<double>(scale, run);
    for_parts(run, [&](int64_t first, int64_t n) {
      constexpr int64_t most = 64;
      double x[most];
      for (int64_t at = 0; at < n; at += most) {
        const int64_t some = std::min(most, n - at);
        float* y = run.out<float>(0) + first + at;
        read_numbers(run.in_type(0), run.data(0), first + at, some, x);
        scale_part(x, offsets.data() + at, scales.data() + at, some, y);
      }
    });
  });
}

// --- Normalizer ---------------------------------------------------------------------------------

enum class Norm { max, l1, l2 };

// The root of the sum of squares where these are too large or too small for doubles. `otherwise`:
// where all are 0, or one is no finite number.
double scaled_length(const double* x, int64_t n, double otherwise) {
  double most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::fabs(x[i]) <= most ? most : std::fabs(x[i]);
  if (most == 0 || !std::isfinite(most)) return otherwise;
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] / most * (x[i] / most);
  return most * std::sqrt(sum);
}

// Sums are doubles whatever the features are.
template <class T>
double norm_of(Norm norm, const T* x, int64_t n) {
  if (norm == Norm::max) return n == 0 ? 0 : static_cast<double>(*std::max_element(x, x + n));
  constexpr int64_t lanes = 8;
  double sums[lanes] = {};
  const auto term = [&](int64_t i) {
    const auto v = static_cast<double>(x[i]);
    return norm == Norm::l1 ? std::fabs(v) : v * v;
  };
  for (int64_t i = 0; i + lanes <= n; i += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) sums[lane] += term(i + lane);
  }
  for (int64_t i = n / lanes * lanes; i < n; ++i) sums[i % lanes] += term(i);
  const double sum = std::accumulate(sums, sums + lanes, 0.0);
  if (norm == Norm::l1) return sum;
  if constexpr (std::is_same_v<T, double>) {
    if (!std::isnormal(sum)) return scaled_length(x, n, std::sqrt(sum));
  }
  return std::sqrt(sum);
}

template <class T>
void normalize_row(Norm norm, const T* x, int64_t n, float* y) {
  const double length = norm_of(norm, x, n), factor = length == 0 ? 1 : 1 / length;
  if (!std::isfinite(factor)) {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<double>(x[i]) / length);
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<double>(x[i]) * factor);
}

std::unique_ptr<Step> prepare_normalizer(PrepareContext& ctx) {
  const std::string name = ctx.attr_string("norm");
  if (name != "MAX" && name != "L1" && name != "L2")
    ctx.fail("norm must be MAX, L1 or L2; got '{}'", name);
  const Norm norm = name == "MAX" ? Norm::max : name == "L1" ? Norm::l1 : Norm::l2;
  return make_step("ml.normalizer", [norm](RunContext& run) {
    float* y = run.out<float>(0);
    if (run.in_type(0) != ElementType::float32) {
      return for_rows(run, [&](std::span<double> x, int64_t first) {
        normalize_row(norm, x.data(), static_cast<int64_t>(x.size()), y + first);
      });
    }
    const int64_t n = feature_count(run);
    kernels::for_rows_of(row_count(run), n, run.pool(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        normalize_row(norm, run.in<float>(0) + i * n, n, y + i * n);
    });
  });
}

// --- Imputer ------------------------------------------------------------------------------------

void infer_imputer(InferContext& ctx) {
  const bool whole = is_integer(ctx.element(0));
  const char* name = whole ? "imputed_value_int64s" : "imputed_value_floats";
  const size_t size = whole ? ctx.attr_ints(name).value_or(std::vector<int64_t>()).size()
                            : ctx.attr_floats(name).value_or(std::vector<float>()).size();
  if (size == 0 && ctx.element(0) != ElementType::undefined)
    ctx.fail("{} elements need attribute '{}'", name_of(ctx.element(0)), name);
  check_per_feature(ctx, name, size, ctx.shape(0));
  ctx.set(0, ctx.type(0));
}

template <class T, class Value>
std::unique_ptr<Step> impute(Value replaced, std::vector<Value> imputed) {
  auto step = make_step("ml.imputer", [replaced, imputed](RunContext& run) {
    const auto values = repeated<T>(imputed, run);
    const auto impute_where = [&](auto&& is_missing) {
      for_parts(run, [&](int64_t first, int64_t n) {
        const T* x = run.in<T>(0) + first;
        T* y = run.out<T>(0) + first;
        for (int64_t i = 0; i < n; ++i) {
          const T value = x[i], instead = values[static_cast<size_t>(i)];
          y[i] = is_missing(value) ? instead : value;
        }
      });
    };
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(replaced)) return impute_where([](T value) { return value != value; });
    }
    impute_where([missing = static_cast<T>(replaced)](T value) { return value == missing; });
  });
  step->traits().in_place = {{0, 0}};
  return step;
}

std::unique_ptr<Step> prepare_imputer(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (is_integer(type)) {
    const int64_t replaced = ctx.attr_int("replaced_value_int64", 0);
    auto imputed = ctx.attr_ints("imputed_value_int64s").value_or(std::vector<int64_t>());
    return type == ElementType::int64 ? impute<int64_t>(replaced, std::move(imputed))
                                      : impute<int32_t>(replaced, std::move(imputed));
  }
  const float replaced = ctx.attr_float("replaced_value_float", 0.0f);
  auto imputed = ctx.attr_floats("imputed_value_floats").value_or(std::vector<float>());
  return type == ElementType::float64 ? impute<double>(replaced, std::move(imputed))
                                      : impute<float>(replaced, std::move(imputed));
}

// --- Binarizer ----------------------------------------------------------------------------------

void infer_same(InferContext& ctx) { ctx.set(0, ctx.type(0)); }

template <class T>
void binarize(RunContext& run, float threshold) {
  const T limit = threshold;
  for_parts(run, [&](int64_t first, int64_t n) {
    const T* x = run.in<T>(0) + first;
    T* y = run.out<T>(0) + first;
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > limit ? T{1} : T{0};
  });
}

std::unique_ptr<Step> prepare_binarizer(PrepareContext& ctx) {
  const float threshold = ctx.attr_float("threshold", 0.0f);
  return make_step("ml.binarizer", [threshold](RunContext& run) {
    if (run.in_type(0) == ElementType::float32) return binarize<float>(run, threshold);
    if (run.in_type(0) == ElementType::float64) return binarize<double>(run, threshold);
    for_rows(run, [&](std::span<double> x, int64_t first) {
      for (double& value : x) value = value > static_cast<double>(threshold) ? 1 : 0;
      ml::write_numbers(run.out_type(0), x.data(), run.out_data(0), first,
                        static_cast<int64_t>(x.size()));
    });
  });
}

// --- FeatureVectorizer --------------------------------------------------------------------------

// Input i takes the columns that inputdimensions says, cut or filled with zeros.
void infer_vectorizer(InferContext& ctx) {
  const auto given = ctx.attr_ints("inputdimensions").value_or(std::vector<int64_t>());
  Dim columns(0);
  std::optional<Dim> rows;
  bool open = false;
  for (int i = 0; i < ctx.input_count(); ++i) {
    const auto& in = ctx.shape(i);
    const bool fixed = static_cast<size_t>(i) < given.size();
    if (fixed && given[static_cast<size_t>(i)] < 0)
      ctx.fail("inputdimensions must not be negative; got {}", given[static_cast<size_t>(i)]);
    if (in && (in->empty() || in->size() > 2))
      ctx.fail("inputs must have shape [N, C] or [C]; input {} has {}", i, ir::to_string(*in));
    open |= !in && !fixed;
    if (in || fixed) columns = columns + (fixed ? Dim(given[static_cast<size_t>(i)]) : in->back());
    if (!in) continue;
    const Dim own = in->size() == 2 ? in->front() : Dim(1);
    rows = rows ? agreed(ctx, *rows, own, "inputs must have the same number of rows") : own;
  }
  ctx.set(0, ElementType::float32, {rows ? *rows : ctx.unknown(), open ? ctx.unknown() : columns});
}

std::unique_ptr<Step> prepare_vectorizer(PrepareContext& ctx) {
  const auto given = ctx.attr_ints("inputdimensions").value_or(std::vector<int64_t>());
  return make_step("ml.feature_vectorizer", [given](RunContext& run) {
    const int64_t rows = run.out_shape(0)[0], width = run.out_shape(0)[1];
    int64_t column = 0;
    for (int i = 0; i < run.input_count(); ++i) {
      const int64_t own = run.in_shape(i).back();
      const int64_t taken =
          static_cast<size_t>(i) < given.size() ? given[static_cast<size_t>(i)] : own;
      for (int64_t row = 0; row < rows; ++row) {
        float* y = run.out<float>(0) + row * width + column;
        read_numbers(run.in_type(i), run.data(i), row * own, std::min(own, taken), y);
        std::fill(y + std::min(own, taken), y + taken, 0.0f);
      }
      column += taken;
    }
  });
}

// --- ArrayFeatureExtractor ----------------------------------------------------------------------

void infer_extractor(InferContext& ctx) {
  const auto& in = ctx.shape(0);
  const auto count = ctx.type(1).element_count();
  if (!in) {
    ctx.set(0, ValueType::tensor(ctx.element(0)));
    return;
  }
  if (in->empty()) ctx.fail("the input must have rank 1 or more");
  Dims out(in->begin(), in->end() - 1);
  if (out.empty()) out.push_back(Dim(1));
  out.push_back(count ? *count : ctx.unknown());
  ctx.set(0, ctx.element(0), std::move(out));
}

std::unique_ptr<Step> prepare_extractor(PrepareContext& ctx) {
  return make_step("ml.array_feature_extractor",
                   [cell = kernels::cell_of(ctx.in_element(0))](RunContext& run) {
                     const auto shape = run.in_shape(0);
                     const int64_t outer = count_of(shape.first(shape.size() - 1));
                     kernels::gather(cell, outer, shape.back(), 1, run.data(0),
                                     kernels::Indices(run.in<int64_t>(1), run.in_size(1)),
                                     run.out_data(0), run.pool());
                   });
}

constexpr Operator operators[] = {
    {.name = "Scaler", .domain = ml::domain, .infer = infer_scaler, .prepare = prepare_scaler},
    {.name = "Normalizer",
     .domain = ml::domain,
     .infer = infer_float,
     .prepare = prepare_normalizer},
    {.name = "Imputer", .domain = ml::domain, .infer = infer_imputer, .prepare = prepare_imputer},
    {.name = "Binarizer", .domain = ml::domain, .infer = infer_same, .prepare = prepare_binarizer},
    {.name = "FeatureVectorizer",
     .domain = ml::domain,
     .infer = infer_vectorizer,
     .prepare = prepare_vectorizer},
    {.name = "ArrayFeatureExtractor",
     .domain = ml::domain,
     .infer = infer_extractor,
     .prepare = prepare_extractor},
};

}  // namespace
}  // namespace ml_features_unit

std::span<const Operator> ml_features_operators() { return ml_features_unit::operators; }

}  // namespace sardonyx::ops
