// Matrix products of float64 and the wide integers. Internal to kernels/gemm.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// Rows of C that are computed together.
inline constexpr int64_t wide_tile_rows = 8;

// C [rows, N] = A * B for at most wide_tile_rows rows: element (i, k) of A is at
// a[i * a_row + k * a_column], (k, j) of B at b[k * b_row + j * b_column], C's rows are ldc apart.
// Integers wrap. A sum of float64 adds its terms one after another, whatever rows it is computed
// with.
template <class T>
struct WideProduct {
  int64_t rows, N, K;
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row, b_column;
  T* c;
  int64_t ldc;
};
void multiply_wide(const WideProduct<double>& p);
void multiply_wide(const WideProduct<uint32_t>& p);
void multiply_wide(const WideProduct<uint64_t>& p);

}  // namespace sardonyx::kernels
