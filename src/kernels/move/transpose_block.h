// Small blocks with rows and columns exchanged; internal to kernels.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// y[r * columns + c] = x[c * x_column + r] for r < rows, c < columns; 2 to 4 columns.
void interleave_columns(const uint32_t* x, int64_t x_column, uint32_t* y, int64_t rows,
                        int64_t columns);
void interleave_columns(const uint8_t* x, int64_t x_column, uint8_t* y, int64_t rows,
                        int64_t columns);

// y[r * y_row + c] = x[c * x_column + r] for r < rows, c < columns.
void transpose_block(const uint32_t* x, int64_t x_column, uint32_t* y, int64_t y_row, int64_t rows,
                     int64_t columns);

}  // namespace sardonyx::kernels
