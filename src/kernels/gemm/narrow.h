// Products with very few columns, or a single term. Internal to kernels/gemm.
#pragma once

#include <cstdint>

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {

inline constexpr int64_t max_narrow = 4;     // columns
inline constexpr int64_t narrow_rows = 128;  // at a time

// Whether this beats tiles, whose vectors would hold few columns.
bool narrow_pays(int64_t M, int64_t N, int64_t K, int64_t lanes);

// sums[r * n + j]: row r of `a` times columns[j * k, …), k terms. A row has the same sums whatever
// rows it is computed with.
void narrow_product(const float* a, int64_t a_stride, int64_t rows, const float* columns, int64_t n,
                    int64_t k, float* sums);

// `rows` rows of C from (row, column) on, at most narrow_rows and max_narrow columns; `a` is at
// the first of them.
void narrow_block(const TileKernels& kernels, const float* a, int64_t a_stride,
                  const float* columns, int64_t k, const Epilogue& epilogue, float* c, int64_t ldc,
                  int64_t row, int64_t column, int64_t rows, int64_t n);

// c = a * b for `rows` rows of c: sums of a single term. Those of `a` are `a_stride` apart.
void outer_product(const float* a, int64_t a_stride, int64_t rows, const float* b, int64_t n,
                   float* c, int64_t ldc);

}  // namespace sardonyx::kernels
