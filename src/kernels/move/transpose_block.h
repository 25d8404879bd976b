// Small blocks with rows and columns exchanged, and rows taken apart; internal to kernels.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// y[r * y_row + c] = x[c * x_column + r] for r < rows, c < columns; elements of 1, 2, 4 or 8 bytes.
// Fast too where 2 to 4 rows or columns lie side by side without gaps.
void transpose_block(int element_bytes, const void* x, int64_t x_column, void* y, int64_t y_row,
                     int64_t rows, int64_t columns);

// y[i] = x[2 * i] for i < n; elements of 1, 2, 4 or 8 bytes.
void every_second(int element_bytes, const void* x, void* y, int64_t n);

// y[r * columns + c] = x[c * x_column + r] for r < rows, c < columns; 2 to 4 columns.
template <class T>
void interleave_columns(const T* x, int64_t x_column, T* y, int64_t rows, int64_t columns) {
  transpose_block(sizeof(T), x, x_column, y, columns, rows, columns);
}

}  // namespace sardonyx::kernels
