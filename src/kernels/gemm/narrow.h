// Products with very few columns. Internal to kernels/gemm.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

inline constexpr int64_t most_narrow = 4;  // columns

// Whether dot products along the terms beat tiles, whose vectors would hold few columns.
bool narrow_pays(int64_t M, int64_t N, int64_t K, int64_t lanes);

// sums[r * n + j]: row r of `a` times columns[j * k, …), k terms. A row has the same sums whatever
// rows it is computed with.
void narrow_product(const float* a, int64_t a_stride, int64_t rows, const float* columns, int64_t n,
                    int64_t k, float* sums);

}  // namespace sardonyx::kernels
