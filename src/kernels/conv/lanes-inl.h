// Loading some lanes of a vector, and every second float.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_CONV_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_CONV_LANES_INL_H_
#undef SARDONYX_KERNELS_CONV_LANES_INL_H_
#else
#define SARDONYX_KERNELS_CONV_LANES_INL_H_
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <cstdint>

#include "kernels/gemm/microkernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// LoadLanes(range, p): p[i] in the lanes of the range [begin, end), 0 in the others, whose memory
// is not touched. Join: the lanes of both, which must not overlap.
#if HWY_TARGET == HWY_AVX3
struct LaneRange {
  LaneRange() = default;
  LaneRange(int64_t begin, int64_t end)
      : bits(static_cast<__mmask16>(begin < end ? (1u << end) - (1u << begin) : 0u)) {}
  bool has(int lane) const { return (bits >> lane & 1) != 0; }
  __mmask16 bits = 0;
};
HWY_INLINE TileVec LoadLanes(LaneRange lanes, const float* p) {
  return TileVec{_mm512_maskz_loadu_ps(lanes.bits, p)};
}
HWY_INLINE void StoreLanes(LaneRange lanes, TileVec v, float* p) {
  _mm512_mask_storeu_ps(p, lanes.bits, v.raw);
}
#elif HWY_TARGET == HWY_AVX2
struct LaneRange {
  LaneRange() = default;
  LaneRange(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) bits[i] = -1;
  }
  __m256i mask() const { return _mm256_load_si256(reinterpret_cast<const __m256i*>(bits)); }
  bool has(int lane) const { return bits[lane] != 0; }
  alignas(32) int32_t bits[8] = {};
};
HWY_INLINE TileVec LoadLanes(const LaneRange& lanes, const float* p) {
  return TileVec{_mm256_maskload_ps(p, lanes.mask())};
}
HWY_INLINE void StoreLanes(const LaneRange& lanes, TileVec v, float* p) {
  _mm256_maskstore_ps(p, lanes.mask(), v.raw);
}
#else
struct LaneRange {
  LaneRange() = default;
  LaneRange(int64_t begin, int64_t end)
      : begin(static_cast<int>(begin)), end(static_cast<int>(end)) {}
  bool has(int lane) const { return begin <= lane && lane < end; }
  int begin = 0, end = 0;
};
HWY_INLINE TileVec LoadLanes(LaneRange lanes, const float* p) {
  float v[tile_lanes] = {};
  for (int i = lanes.begin; i < lanes.end; ++i) v[i] = p[i];
  return TileLoad(v);
}
HWY_INLINE void StoreLanes(LaneRange lanes, TileVec v, float* p) {
  float all[tile_lanes];
  TileStoreVec(v, all);
  for (int i = lanes.begin; i < lanes.end; ++i) p[i] = all[i];
}
#endif

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
HWY_INLINE TileVec Join(TileVec a, TileVec b) { return hn::Or(a, b); }
HWY_INLINE TileVec EvenLanes(TileVec low, TileVec high) {
  return hn::ConcatEven(TileTag(), high, low);
}
HWY_INLINE TileVec OddLanes(TileVec low, TileVec high) {
  return hn::ConcatOdd(TileTag(), high, low);
}
#else
HWY_INLINE TileVec Join(TileVec a, TileVec b) {
  uint32_t x[tile_lanes], y[tile_lanes];
  memcpy(x, &a, sizeof x);
  memcpy(y, &b, sizeof y);
  for (int i = 0; i < tile_lanes; ++i) x[i] |= y[i];
  memcpy(&a, x, sizeof x);
  return a;
}
HWY_INLINE TileVec EvenLanes(TileVec low, TileVec high) {
  float v[2 * tile_lanes], even[tile_lanes];
  TileStoreVec(low, v);
  TileStoreVec(high, v + tile_lanes);
  for (int i = 0; i < tile_lanes; ++i) even[i] = v[2 * i];
  return TileLoad(even);
}
HWY_INLINE TileVec OddLanes(TileVec low, TileVec high) {
  float v[2 * tile_lanes], odd[tile_lanes];
  TileStoreVec(low, v);
  TileStoreVec(high, v + tile_lanes);
  for (int i = 0; i < tile_lanes; ++i) odd[i] = v[2 * i + 1];
  return TileLoad(odd);
}
#endif

// p[i * stride] in the lanes of the range, 0 in the others.
HWY_INLINE TileVec GatherLanes(const LaneRange& lanes, const float* p, int64_t stride) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  if (HWY_LIKELY(stride < (1 << 26))) {  // so that indices are 32-bit numbers
    const int step = static_cast<int>(stride);
#if HWY_TARGET == HWY_AVX3
    const __m512i index =
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32(step));
    return TileVec{_mm512_mask_i32gather_ps(_mm512_setzero_ps(), lanes.bits, index, p, 4)};
#else
    const __m256i index =
        _mm256_mullo_epi32(_mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0), _mm256_set1_epi32(step));
    return TileVec{_mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, index,
                                            _mm256_castsi256_ps(lanes.mask()), 4)};
#endif
  }
#endif
  float v[tile_lanes] = {};
  for (int i = 0; i < tile_lanes; ++i) {
    if (lanes.has(i)) v[i] = p[i * stride];
  }
  return TileLoad(v);
}

// The lanes that p[i * stride] fills, for strides 1 and 2; stride 0: any stride.
template <int stride>
struct LanePair {
  LanePair() = default;
  LanePair(int64_t begin, int64_t end) : low(begin, end) {}
  LaneRange low;
};
template <>
struct LanePair<2> {
  LanePair() = default;
  // The floats [2 * begin, 2 * end - 1) of two vectors side by side.
  LanePair(int64_t begin, int64_t end)
      : low(std::min<int64_t>(2 * begin, tile_lanes), std::min<int64_t>(2 * end - 1, tile_lanes)),
        high(std::max<int64_t>(2 * begin - tile_lanes, 0),
             std::max<int64_t>(2 * end - 1 - tile_lanes, 0)) {
    if (begin >= end) *this = LanePair();
  }
  LaneRange low, high;
};

// p[i * stride] in the lanes of the range, 0 in the others.
HWY_INLINE TileVec LoadEvery(const LanePair<0>& lanes, const float* p, int64_t stride) {
  return GatherLanes(lanes.low, p, stride);
}
HWY_INLINE TileVec LoadEvery(const LanePair<1>& lanes, const float* p, int64_t = 1) {
  return LoadLanes(lanes.low, p);
}
HWY_INLINE TileVec LoadEvery(const LanePair<2>& lanes, const float* p, int64_t = 2) {
  return EvenLanes(LoadLanes(lanes.low, p), LoadLanes(lanes.high, p + tile_lanes));
}

// In all lanes; with stride 2 one float more than that is read.
template <int stride>
HWY_INLINE TileVec LoadEvery(const float* p) {
  if constexpr (stride == 1) return TileLoad(p);
  return EvenLanes(TileLoad(p), TileLoad(p + tile_lanes));
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
