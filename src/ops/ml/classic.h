// What the classic machine-learning operators (ai.onnx.ml) share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ops/operator.h"

namespace sardonyx::ops::ml {

inline constexpr std::string_view domain = "ai.onnx.ml";

// Elements [first, first + n) of a float, double, int64 or int32 tensor (other number types too).
void read_numbers(ElementType type, const void* x, int64_t first, int64_t n, double* y);
void read_numbers(ElementType type, const void* x, int64_t first, int64_t n, float* y);
// The inverse of read_numbers, for float, double, int64 and int32.
void write_numbers(ElementType type, const double* x, void* y, int64_t first, int64_t n);

// A matrix of samples: [N, F], or [F] for one sample. Fails for other ranks.
struct Samples {
  Dim rows, features;
};
std::optional<Samples> samples_of(InferContext& ctx);
struct Rows {
  int64_t rows, features;
};
Rows rows_of(std::span<const int64_t> shape);

// Scores to what the model says it gives.
enum class Transform { none, softmax, logistic, softmax_zero, probit };
Transform transform_of(const NodeView& node);
// In place, to each of the rows of so many scores.
void apply(Transform transform, std::span<float> scores, int64_t columns);
// To one row.
void apply(Transform transform, std::span<float> row);
float logistic(float x);
float probit(float x);

// The class labels of a classifier: integers or strings, as the attributes give them.
struct Labels {
  std::vector<int64_t> integers;
  std::vector<std::string> strings;
  bool text() const { return !strings.empty(); }
  size_t size() const { return text() ? strings.size() : integers.size(); }
  ElementType type() const { return text() ? ElementType::string : ElementType::int64; }
  // Writes label `index` of the list as element `row` of output 0; the index itself without a list.
  void write(RunContext& run, int64_t row, int64_t index) const;
  // The same for elements from `row` on.
  void write(RunContext& run, int64_t row, std::span<const int64_t> indices) const;
  // The only label there is, or 0 (an empty string) where the sample is not of its class.
  void write_only(RunContext& run, int64_t row, bool is_member) const;
};
Labels labels_of(const NodeView& node, std::string_view integers, std::string_view strings);

}  // namespace sardonyx::ops::ml
