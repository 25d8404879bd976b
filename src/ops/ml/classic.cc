#include "ops/ml/classic.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/convert/cast.h"
#include "kernels/elementwise/unary.h"
#include "kernels/rows/short_softmax.h"

namespace sardonyx::ops::ml {
namespace {

template <class To>
void read_as(ElementType type, const void* x, int64_t first, int64_t n, To* y) {
  const auto copy = [&](const auto* from) {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(from[first + i]);
  };
  switch (type) {
    case ElementType::float32: copy(static_cast<const float*>(x)); break;
    case ElementType::float64: copy(static_cast<const double*>(x)); break;
    case ElementType::int64: copy(static_cast<const int64_t*>(x)); break;
    case ElementType::int32: copy(static_cast<const int32_t*>(x)); break;
    case ElementType::int16: copy(static_cast<const int16_t*>(x)); break;
    case ElementType::float16:
      for (int64_t i = 0; i < n; ++i) {
        float value;
        kernels::to_floats(type, static_cast<const uint16_t*>(x) + first + i, &value, 1);
        y[i] = static_cast<To>(value);
      }
      break;
    default: throw Error(ErrorCode::unsupported, fmt::format("features of type {}", name_of(type)));
  }
}

void softmax(std::span<float> scores) {
  const float top = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) sum += score = std::exp(score - top);
  for (float& score : scores) score /= sum;
}

// As softmax, but scores of zero stay zero.
void softmax_zero(std::span<float> scores) {
  const float top = *std::max_element(scores.begin(), scores.end());
  const float scale = std::exp(-top);
  float sum = 0;
  for (float& score : scores) {
    score = std::fabs(score) > 1e-7f ? std::exp(score - top) : score * scale;
    sum += score;
  }
  for (float& score : scores) score = sum == 0 ? 0.5f : score / sum;
}

// Winitzki's closed form, which every runtime of this operator takes.
float inverse_erf(float x) {
  const float sign = x < 0 ? -1.0f : 1.0f;
  const float inside = (1 - x) * (1 + x);
  if (inside == 0) return 0;
  const float log = std::log(inside);
  const float v = 2 / (std::numbers::pi_v<float> * 0.147f) + 0.5f * log;
  return sign * std::sqrt(-v + std::sqrt(v * v - log / 0.147f));
}

}  // namespace

void read_numbers(ElementType type, const void* x, int64_t first, int64_t n, double* y) {
  read_as(type, x, first, n, y);
}
void read_numbers(ElementType type, const void* x, int64_t first, int64_t n, float* y) {
  read_as(type, x, first, n, y);
}

void write_numbers(ElementType type, const double* x, void* y, int64_t first, int64_t n) {
  const auto copy = [&](auto* to) {
    using To = std::remove_pointer_t<decltype(to)>;
    for (int64_t i = 0; i < n; ++i) to[first + i] = static_cast<To>(x[i]);
  };
  switch (type) {
    case ElementType::float32: copy(static_cast<float*>(y)); break;
    case ElementType::float64: copy(static_cast<double*>(y)); break;
    case ElementType::int64: copy(static_cast<int64_t*>(y)); break;
    case ElementType::int32: copy(static_cast<int32_t*>(y)); break;
    default: throw Error(ErrorCode::unsupported, fmt::format("results of type {}", name_of(type)));
  }
}

std::optional<Samples> samples_of(InferContext& ctx) {
  const auto& in = ctx.shape(0);
  if (!in) return std::nullopt;
  if (in->empty() || in->size() > 2)
    ctx.fail("the input must have shape [N, F] or [F]; found {}", ir::to_string(*in));
  return in->size() == 2 ? Samples{(*in)[0], (*in)[1]} : Samples{Dim(1), (*in)[0]};
}

Rows rows_of(std::span<const int64_t> shape) {
  return shape.size() == 2 ? Rows{shape[0], shape[1]} : Rows{1, shape[0]};
}

Transform transform_of(const NodeView& node) {
  const std::string name = node.attr_string("post_transform", "NONE");
  if (name == "NONE") return Transform::none;
  if (name == "SOFTMAX") return Transform::softmax;
  if (name == "LOGISTIC") return Transform::logistic;
  if (name == "SOFTMAX_ZERO") return Transform::softmax_zero;
  if (name == "PROBIT") return Transform::probit;
  node.fail("post_transform must be NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT; got '{}'",
            name);
}

float logistic(float x) {
  const float v = 1 / (1 + std::exp(-std::fabs(x)));
  return x < 0 ? 1 - v : v;
}

float probit(float x) { return std::numbers::sqrt2_v<float> * inverse_erf(2 * x - 1); }

void apply(Transform transform, std::span<float> scores, int64_t columns) {
  if (scores.empty()) return;
  const auto count = static_cast<int64_t>(scores.size());
  const auto for_rows = [&](auto&& change) {
    for (int64_t at = 0; at < count; at += columns)
      change(scores.subspan(static_cast<size_t>(at), static_cast<size_t>(columns)));
  };
  switch (transform) {
    case Transform::none: break;
    case Transform::softmax:
      if (!kernels::softmax_narrow_rows(scores.data(), scores.data(), count / columns, columns) &&
          !kernels::softmax_short_rows(scores.data(), scores.data(), count / columns, columns))
        for_rows(softmax);
      break;
    case Transform::softmax_zero: for_rows(softmax_zero); break;
    case Transform::logistic:
      kernels::unary_tile(kernels::UnaryOp::sigmoid)(scores.data(), scores.data(), count, {});
      break;
    case Transform::probit:
      std::transform(scores.begin(), scores.end(), scores.begin(), probit);
      break;
  }
}

void apply(Transform transform, std::span<float> row) {
  apply(transform, row, static_cast<int64_t>(row.size()));
}

void Labels::write(RunContext& run, int64_t row, int64_t index) const {
  if (!run.has_output(0)) return;
  const auto at = static_cast<size_t>(index);
  if (text()) {
    run.out<std::string>(0)[row] = strings[at];
  } else {
    run.out<int64_t>(0)[row] = at < integers.size() ? integers[at] : index;
  }
}

void Labels::write(RunContext& run, int64_t row, std::span<const int64_t> indices) const {
  if (!run.has_output(0)) return;
  if (text()) {
    auto* to = run.out<std::string>(0) + row;
    for (const int64_t index : indices) *to++ = strings[static_cast<size_t>(index)];
  } else {
    auto* to = run.out<int64_t>(0) + row;
    for (const int64_t index : indices) {
      const auto at = static_cast<size_t>(index);
      *to++ = at < integers.size() ? integers[at] : index;
    }
  }
}

void Labels::write_only(RunContext& run, int64_t row, bool is_member) const {
  if (is_member) {
    write(run, row, 0);
  } else if (run.has_output(0)) {
    if (text())
      run.out<std::string>(0)[row].clear();
    else
      run.out<int64_t>(0)[row] = 0;
  }
}

Labels labels_of(const NodeView& node, std::string_view integers, std::string_view strings) {
  Labels labels;
  labels.integers = node.attr_ints(integers).value_or(std::vector<int64_t>());
  labels.strings = node.attr_strings(strings).value_or(std::vector<std::string>());
  if (!labels.integers.empty() && !labels.strings.empty())
    node.fail("attributes '{}' and '{}' exclude each other; keep one", integers, strings);
  return labels;
}

}  // namespace sardonyx::ops::ml
