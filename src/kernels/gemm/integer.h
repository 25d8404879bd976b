// Products of 8-bit integers, summed exactly in int32. Values enter as int16 with their zero point
// taken off, two terms of the sum side by side.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

inline constexpr int64_t integer_panel_columns = 32;
inline int64_t integer_pairs(int64_t k) { return (k + 1) / 2; }

// Rows of A: [rows, 2 * pairs], the odd last term 0.
inline int64_t integer_rows_size(int64_t rows, int64_t k) {
  return rows * integer_pairs(k) * 2;
}  // int16 elements
// a[i * row_stride + t * term_stride] is int8 or uint8; zero has one value, or one for each row.
void pack_integer_rows(ElementType type, const void* a, int64_t row_stride, int64_t term_stride,
                       int64_t rows, int64_t k, const int32_t* zero, bool zero_each_row,
                       int16_t* out, ThreadPool& pool);

// Columns of B in panels of 32: [panels, pairs, 32, 2], what is not there 0.
inline int64_t integer_panels_size(int64_t columns, int64_t k) {
  return (columns + integer_panel_columns - 1) / integer_panel_columns * integer_panel_columns *
         integer_pairs(k) * 2;
}
void pack_integer_panels(ElementType type, const void* b, int64_t term_stride,
                         int64_t column_stride, int64_t k, int64_t columns, const int32_t* zero,
                         bool zero_each_column, int16_t* out, ThreadPool& pool);

// c[i * ldc + j] = row i times column j of one panel; `columns` (up to 32) are stored.
void integer_panel_product(const int16_t* rows, int64_t row_count, int64_t pairs,
                           const int16_t* panel, int64_t columns, int32_t* c, int64_t ldc);

// All rows times all panels.
void integer_product(const int16_t* rows, int64_t row_count, int64_t k, const int16_t* panels,
                     int64_t columns, int32_t* c, int64_t ldc, ThreadPool& pool);

// Two terms of all columns of a panel: to[2 * j] = a[j] - zero, to[2 * j + 1] = b[j] - zero; 0
// where the column's mask is 0 (it is -1 elsewhere). All 32 elements of a and b are read.
void pair_terms(const int8_t* a, const int16_t* a_mask, const int8_t* b, const int16_t* b_mask,
                int32_t zero, int16_t* to);
void pair_terms(const uint8_t* a, const int16_t* a_mask, const uint8_t* b, const int16_t* b_mask,
                int32_t zero, int16_t* to);

// y = saturate(round(sum * scale) + zero) for each row, ties to even; scale and zero have one
// value, or one a row, or one a column (strides 0 or 1). y_type int8 or uint8.
struct Requantize {
  const float* scale = nullptr;
  const int32_t* zero = nullptr;
  int64_t scale_row = 0, scale_column = 0, zero_row = 0;
};
void requantize(ElementType y_type, const Requantize& how, const int32_t* sums, int64_t ld,
                int64_t rows, int64_t columns, void* y, int64_t y_stride);

}  // namespace sardonyx::kernels
