// Sums and maps over contiguous rows: float by vectors, the other types of arithmetic plainly.
// Internal to kernels. Reductions add in an order that depends on n and the instruction
// set alone. `y` may be `x`.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/rows/double_rows.h"
#include "kernels/rows/whole_rows.h"

namespace sardonyx::kernels {

float row_sum(const float* x, int64_t n);
float row_sum_abs(const float* x, int64_t n);
float row_sum_squares(const float* x, float center, int64_t n);  // sum of (x - center)^2
float row_product(const float* x, int64_t n);
float row_max(const float* x, int64_t n);  // NaN where there is one; -inf for n = 0
float row_min(const float* x, int64_t n);
float row_sum_exp(const float* x, float center, int64_t n);  // sum of exp(x - center)
// y = exp(x - center), and their sum.
float row_exp(const float* x, float center, float* y, int64_t n);
// y = x * a + b.
void row_affine(const float* x, float a, float b, float* y, int64_t n);
// y = x - a - b.
void row_shift(const float* x, float a, float b, float* y, int64_t n);
// y += bias, and -inf where the bias is that.
void row_add_bias(const float* bias, float* y, int64_t n);
// y = other where keep is false.
void row_keep(const bool* keep, float other, float* y, int64_t n);
// y = (x - center) * factor * scale + bias; scale and bias may be null.
void row_normalize(const float* x, float center, float factor, const float* scale,
                   const float* bias, float* y, int64_t n);
// A row of a matrix that is normalised, as row_normalize does it; and, while its elements come and
// go, the moments of rows behind it, as row_sum_squares and row_sum give them.
struct NormalizedRow {
  const float* x = nullptr;
  float center = 0, factor = 0;
  const float* scale = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;
  const float* next = nullptr;  // its squares
  float next_center = 0;
  const float* second_next = nullptr;  // its sum
};
struct RowMoments {
  float squares, sum;
};
RowMoments row_normalize_ahead(const NormalizedRow& row, int64_t n);
void column_steps(ColumnOp op, const float* x, int64_t stride, int64_t rows, float* y, int64_t n);
// y[r]: what row_sum, row_sum_abs, row_sum_squares about 0, row_product, row_max or row_min gives
// for the n elements of row r; rows are `stride` apart.
void fold_rows(ColumnOp op, const float* x, int64_t stride, int64_t rows, int64_t n, float* y);
// sums += exp(x - centers), no x above its center (which may give any number); y gets the
// exponentials unless it is null.
void column_exp(const float* x, const float* centers, float* y, float* sums, int64_t n);
// y = x / by, 0 where that is 0.
void row_divide(const float* x, float by, float* y, int64_t n);
void column_divide(const float* x, const float* by, float* y, int64_t n);
// y = x * factors, and y = x - centers - rests.
void column_scale(const float* x, const float* factors, float* y, int64_t n);
void column_shift(const float* x, const float* centers, const float* rests, float* y, int64_t n);

// The same for double, where double_rows.h has no vectors for it, and for whole numbers.
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) + uint64_t(b));
  return a + b;
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) * uint64_t(b));
  return a * b;
}
template <class T>
T magnitude(T v) {
  if constexpr (std::is_integral_v<T>) return v < T{} ? static_cast<T>(-uint64_t(v)) : v;
  return std::fabs(v);
}
inline double row_sum_abs(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::fabs(x[i]);
  return sum;
}
inline double row_product(const double* x, int64_t n) {
  double product = 1;
  for (int64_t i = 0; i < n; ++i) product *= x[i];
  return product;
}
inline void row_shift(const double* x, double a, double b, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - a - b;
}
inline void row_affine(const double* x, double a, double b, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * a + b;
}
inline void row_divide(const double* x, double by, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = by == 0 ? 0 : x[i] / by;
}
inline void column_divide(const double* x, const double* by, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = by[i] == 0 ? 0 : x[i] / by[i];
}
inline void column_scale(const double* x, const double* factors, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factors[i];
}
inline void column_shift(const double* x, const double* centers, const double* rests, double* y,
                         int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - centers[i] - rests[i];
}
inline void row_add_bias(const double* bias, double* y, int64_t n) {
  constexpr double least = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) y[i] = bias[i] == least ? least : y[i] + bias[i];
}
inline void row_keep(const bool* keep, double other, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = keep[i] ? y[i] : other;
}
inline void row_normalize(const double* x, double center, double factor, const double* scale,
                          const double* bias, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double v = (x[i] - center) * factor * (scale != nullptr ? scale[i] : 1.0);
    y[i] = v + (bias != nullptr ? bias[i] : 0.0);
  }
}
// The larger (smaller) of two, NaN where either is.
template <class T>
T larger(T a, T b) {
  return a != a || a > b ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return a != a || a < b ? a : b;
}
template <class T>
constexpr T min_of() {
  if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}
template <class T>
constexpr T greatest_of() {
  if constexpr (std::numeric_limits<T>::has_infinity) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}
template <class T>
requires std::is_integral_v<T> T row_max(const T* x, int64_t n) {
  return fold_row(ColumnOp::max, x, n);
}
template <class T>
requires std::is_integral_v<T> T row_min(const T* x, int64_t n) {
  return fold_row(ColumnOp::min, x, n);
}
inline void column_step(ColumnOp op, const double* x, double* y, int64_t n) {
  switch (op) {
    case ColumnOp::sum_abs:
      for (int64_t i = 0; i < n; ++i) y[i] += std::fabs(x[i]);
      break;
    case ColumnOp::sum_squares:
      for (int64_t i = 0; i < n; ++i) y[i] += x[i] * x[i];
      break;
    default:
      for (int64_t i = 0; i < n; ++i) y[i] *= x[i];
      break;
  }
}
inline void column_steps(ColumnOp op, const double* x, int64_t stride, int64_t rows, double* y,
                         int64_t n) {
  if (op == ColumnOp::sum) return column_sums(x, stride, rows, y, n);
  if (op == ColumnOp::max) return column_maxima(x, stride, rows, y, n);
  if (op == ColumnOp::min) return column_minima(x, stride, rows, y, n);
  for (int64_t row = 0; row < rows; ++row) column_step(op, x + row * stride, y, n);
}

}  // namespace sardonyx::kernels
