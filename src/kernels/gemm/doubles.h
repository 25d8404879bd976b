// Matrix products of float64. Internal to kernels/gemm.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// Rows of C that one tile has.
inline constexpr int64_t double_tile_rows = 8;

// C [rows, N] = A * B for at most double_tile_rows rows: element (i, k) of A is at
// a[i * a_row + k * a_column], (k, j) of B at b[k * b_row + j * b_column], C's rows are ldc apart.
// A sum's terms are added one after another, whatever rows it is computed with.
void multiply_doubles(int64_t rows, int64_t N, int64_t K, const double* a, int64_t a_row,
                      int64_t a_column, const double* b, int64_t b_row, int64_t b_column, double* c,
                      int64_t ldc);

}  // namespace sardonyx::kernels
