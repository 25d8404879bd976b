#include "kernels/gemm/gemm_int8_avx_vnni.h"

#include "kernels/gemm/gemm_int8.h"

#if defined(__x86_64__)
#include <cstring>

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12 finds it in its own intrinsics
#endif
#include <immintrin.h>

#define SARDONYX_AVX_VNNI __attribute__((target("avx2,fma,bmi2,avxvnni")))

namespace sardonyx::kernels {
namespace {

constexpr int64_t lanes = 8;
constexpr int tile_rows = 6, tile_vectors = 2;  // sums in 12 of 16 registers

// The sums of some rows and two vectors of columns. Three rows have an address of their own.
template <bool panel_signed, int rows>
SARDONYX_AVX_VNNI __attribute__((noinline)) void product_tile(const uint8_t* a, int64_t stride,
                                                              int64_t groups, const uint8_t* panel,
                                                              int32_t* to) {
  constexpr int near = 3, bases = (rows + near - 1) / near;
  const uint8_t* base[bases];
#pragma GCC unroll 2
  for (int i = 0; i < bases; ++i) base[i] = a + i * near * stride;
  __m256i sums[rows][tile_vectors];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
  for (int64_t q = 0; q < groups; ++q, panel += byte_group_bytes) {
    __m256i b[tile_vectors];
#pragma GCC unroll 2
    for (int v = 0; v < tile_vectors; ++v)
      b[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel + v * 32));
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      int32_t group;
      std::memcpy(&group, base[r / near] + r % near * stride, 4);
      const __m256i x = _mm256_set1_epi32(group);
#pragma GCC unroll 2
      for (int v = 0; v < tile_vectors; ++v) {
        sums[r][v] = panel_signed ? _mm256_dpbusd_avx_epi32(sums[r][v], x, b[v])
                                  : _mm256_dpbusd_avx_epi32(sums[r][v], b[v], x);
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < bases; ++i) base[i] += 4;
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < tile_vectors; ++v)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + r * byte_panel_columns + v * lanes),
                          sums[r][v]);
  }
}

// The rows that whole tiles leave.
template <bool panel_signed, int rows>
void last_tile(int64_t count, const uint8_t* a, int64_t stride, int64_t groups,
               const uint8_t* panel, int32_t* to) {
  if constexpr (rows > 0) {
    if (count == rows) return product_tile<panel_signed, rows>(a, stride, groups, panel, to);
    last_tile<panel_signed, rows - 1>(count, a, stride, groups, panel, to);
  }
}

template <bool panel_signed>
void product_panel(const uint8_t* a, int64_t stride, int64_t count, int64_t groups,
                   const uint8_t* panel, int64_t columns, int32_t* sums) {
  constexpr int64_t step = tile_vectors * lanes;
  for (int64_t column = 0; column < columns; column += step) {
    const uint8_t* const strip = panel + 4 * column;
    int32_t* to = sums + column;
    int64_t i = 0;
    for (; i + tile_rows <= count; i += tile_rows, to += tile_rows * byte_panel_columns)
      product_tile<panel_signed, tile_rows>(a + i * stride, stride, groups, strip, to);
    last_tile<panel_signed, tile_rows - 1>(count - i, a + i * stride, stride, groups, strip, to);
  }
}

}  // namespace

void avx_vnni_panel_product(bool panel_signed, const uint8_t* rows, int64_t row_stride,
                            int64_t count, int64_t groups, const uint8_t* panel, int64_t columns,
                            int32_t* sums) {
  panel_signed ? product_panel<true>(rows, row_stride, count, groups, panel, columns, sums)
               : product_panel<false>(rows, row_stride, count, groups, panel, columns, sums);
}

}  // namespace sardonyx::kernels
#endif
