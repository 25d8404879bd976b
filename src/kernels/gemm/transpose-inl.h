// Transposition in registers.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_GEMM_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_GEMM_TRANSPOSE_INL_H_
#undef SARDONYX_KERNELS_GEMM_TRANSPOSE_INL_H_
#else
#define SARDONYX_KERNELS_GEMM_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>
#include <cstdint>

#include "kernels/gemm/microkernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// v[i] lane j becomes v[j] lane i.
#if HWY_TARGET == HWY_AVX3
HWY_INLINE void TransposeVecs(TileVec (&v)[16]) {
  __m512 pairs[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(v[i].raw, v[i + 1].raw);
    pairs[i + 1] = _mm512_unpackhi_ps(v[i].raw, v[i + 1].raw);
  }
  // fours[4 * i + j]: within each 128-bit block, column 4 * block + j of rows 4 * i to 4 * i + 3.
  __m512 fours[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    const auto low = [&](int x) HWY_ATTR { return _mm512_castps_pd(pairs[i + x]); };
    fours[i + 0] = _mm512_castpd_ps(_mm512_unpacklo_pd(low(0), low(2)));
    fours[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low(0), low(2)));
    fours[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(low(1), low(3)));
    fours[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(low(1), low(3)));
  }
#pragma GCC unroll 16
  for (int j = 0; j < 4; ++j) {
    const __m512 a = _mm512_shuffle_f32x4(fours[j], fours[4 + j], 0x44);
    const __m512 b = _mm512_shuffle_f32x4(fours[j], fours[4 + j], 0xee);
    const __m512 c = _mm512_shuffle_f32x4(fours[8 + j], fours[12 + j], 0x44);
    const __m512 e = _mm512_shuffle_f32x4(fours[8 + j], fours[12 + j], 0xee);
    v[j].raw = _mm512_shuffle_f32x4(a, c, 0x88);
    v[4 + j].raw = _mm512_shuffle_f32x4(a, c, 0xdd);
    v[8 + j].raw = _mm512_shuffle_f32x4(b, e, 0x88);
    v[12 + j].raw = _mm512_shuffle_f32x4(b, e, 0xdd);
  }
}
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE void TransposeVecs(TileVec (&v)[8]) {
  __m256 fours[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 4) {
    const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(v[i].raw, v[i + 1].raw));
    const __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(v[i].raw, v[i + 1].raw));
    const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(v[i + 2].raw, v[i + 3].raw));
    const __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(v[i + 2].raw, v[i + 3].raw));
    fours[i + 0] = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
    fours[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
    fours[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
    fours[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
  }
#pragma GCC unroll 8
  for (int j = 0; j < 4; ++j) {
    v[j].raw = _mm256_permute2f128_ps(fours[j], fours[4 + j], 0x20);
    v[4 + j].raw = _mm256_permute2f128_ps(fours[j], fours[4 + j], 0x31);
  }
}
#elif HWY_TARGET == HWY_NEON
HWY_INLINE void TransposeVecs(TileVec (&v)[4]) {
  const TileTag d;
  const TileVec low01 = hn::InterleaveLower(d, v[0], v[1]);
  const TileVec high01 = hn::InterleaveUpper(d, v[0], v[1]);
  const TileVec low23 = hn::InterleaveLower(d, v[2], v[3]);
  const TileVec high23 = hn::InterleaveUpper(d, v[2], v[3]);
  v[0] = hn::ConcatLowerLower(d, low23, low01);
  v[1] = hn::ConcatUpperUpper(d, low23, low01);
  v[2] = hn::ConcatLowerLower(d, high23, high01);
  v[3] = hn::ConcatUpperUpper(d, high23, high01);
}
#else
HWY_INLINE void TransposeVecs(TileVec (&v)[4]) {
  float in[4][4], out[4][4];
  for (int i = 0; i < 4; ++i) TileStoreVec(v[i], in[i]);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) out[j][i] = in[i][j];
  }
  for (int i = 0; i < 4; ++i) v[i] = TileLoad(out[i]);
}
#endif

// out[j * out_stride + i] = in[i * in_stride + j]; rows and columns rounded up to whole vectors, so
// both places must have room for that.
HWY_INLINE void TransposeBlocks(const float* in, int64_t in_stride, int64_t rows, int64_t columns,
                                float* out, int64_t out_stride) {
  for (int64_t j = 0; j < columns; j += tile_lanes) {
    for (int64_t i = 0; i < rows; i += tile_lanes) {
      TileVec v[tile_lanes];
      const float* from = in + i * in_stride + j;
#pragma GCC unroll 16
      for (int x = 0; x < tile_lanes; ++x) v[x] = TileLoad(from + x * in_stride);
      TransposeVecs(v);
      float* to = out + j * out_stride + i;
#pragma GCC unroll 16
      for (int x = 0; x < tile_lanes; ++x) TileStoreVec(v[x], to + x * out_stride);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
