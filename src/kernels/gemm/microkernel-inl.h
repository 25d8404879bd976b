// The innermost loops: a tile of sums kept in registers.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_GEMM_MICROKERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_GEMM_MICROKERNEL_INL_H_
#undef SARDONYX_KERNELS_GEMM_MICROKERNEL_INL_H_
#else
#define SARDONYX_KERNELS_GEMM_MICROKERNEL_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/convert/low_precision.h"
#include "kernels/gemm/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
using TileTag = hn::ScalableTag<float>;
using TileVec = hn::Vec<TileTag>;
constexpr int tile_lanes = HWY_TARGET == HWY_AVX3 ? 16 : HWY_TARGET == HWY_AVX2 ? 8 : 4;
constexpr int tile_rows = HWY_TARGET == HWY_AVX3 ? 14 : HWY_TARGET == HWY_AVX2 ? 6 : 8;
constexpr int flat_rows = HWY_TARGET == HWY_AVX2 ? 4 : 8;
HWY_INLINE TileVec TileZero() { return hn::Zero(TileTag()); }
HWY_INLINE TileVec TileLoad(const float* p) { return hn::LoadU(TileTag(), p); }
HWY_INLINE TileVec TileBroadcast(const float* p) { return hn::Set(TileTag(), *p); }
HWY_INLINE void TileStoreVec(TileVec v, float* p) { hn::StoreU(v, TileTag(), p); }
HWY_INLINE TileVec TileMulAdd(TileVec a, TileVec b, TileVec sum) { return hn::MulAdd(a, b, sum); }
#else
// The compiler's own vectors: Highway's portable target is slow here, and scalable vectors cannot
// stand in an array.
typedef float TileVec __attribute__((vector_size(16)));
constexpr int tile_lanes = 4;
constexpr int tile_rows = 4;
constexpr int flat_rows = 4;
HWY_INLINE TileVec TileZero() { return TileVec{0, 0, 0, 0}; }
HWY_INLINE TileVec TileLoad(const float* p) {
  TileVec v;
  memcpy(&v, p, sizeof v);
  return v;
}
HWY_INLINE TileVec TileBroadcast(const float* p) { return TileVec{*p, *p, *p, *p}; }
HWY_INLINE void TileStoreVec(TileVec v, float* p) { memcpy(p, &v, sizeof v); }
HWY_INLINE TileVec TileMulAdd(TileVec a, TileVec b, TileVec sum) { return a * b + sum; }
#endif

// Halves as vectors of floats. The types stand for what 16 bits mean.
struct HalfBits {
  uint16_t bits;
};
struct BrainBits {
  uint16_t bits;
};
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
HWY_INLINE TileVec TileLoad(const HalfBits* p) {
  const hn::Rebind<hwy::float16_t, TileTag> d;
  return hn::PromoteTo(TileTag(), hn::BitCast(d, hn::LoadU(hn::Rebind<uint16_t, TileTag>(),
                                                           reinterpret_cast<const uint16_t*>(p))));
}
HWY_INLINE TileVec TileLoad(const BrainBits* p) {
  const hn::Rebind<uint32_t, TileTag> d;
  const auto bits =
      hn::LoadU(hn::Rebind<uint16_t, TileTag>(), reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(TileTag(), hn::ShiftLeft<16>(hn::PromoteTo(d, bits)));
}
#else
HWY_INLINE TileVec TileLoad(const HalfBits* p) {
  TileVec v;
  for (int i = 0; i < tile_lanes; ++i) v[i] = half_to_float(p[i].bits);
  return v;
}
HWY_INLINE TileVec TileLoad(const BrainBits* p) {
  TileVec v;
  for (int i = 0; i < tile_lanes; ++i) v[i] = bfloat16_to_float(p[i].bits);
  return v;
}
#endif

// One term: `rows` x `vectors` multiply-adds. `at` gives the address of A's element in a row, `b`
// that of a vector of B.
template <int rows, int vectors, class AddressA, class AddressB>
HWY_INLINE void TileTerm(TileVec (&sums)[rows][vectors], AddressA&& a, AddressB&& b) {
  TileVec right[vectors];
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) right[v] = TileLoad(b(v));
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    const TileVec left = TileBroadcast(a(i));
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[i][v] = TileMulAdd(left, right[v], sums[i][v]);
  }
}

// The range that an activation clips to; false if it does more than that.
inline bool ClipRange(const Epilogue& e, float& low, float& high) {
  low = -std::numeric_limits<float>::infinity();
  high = std::numeric_limits<float>::infinity();
  if (e.activation == Activation::relu) low = 0;
  if (e.activation == Activation::clip) {
    low = e.p0;
    high = e.p1;
  }
  return e.activation == Activation::none || e.activation == Activation::relu ||
         e.activation == Activation::clip;
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
inline bool TileFinishes(const Epilogue& e) {
  float low, high;
  return ClipRange(e, low, high) && !(e.residual_last && e.residual != nullptr);
}

// Sums still in registers, to their place. The same operations as StoreTile, which knows more.
template <int rows, int vectors>
HWY_INLINE void FinishTile(TileVec (&sums)[rows][vectors], const TileStore& s) {
  const TileTag d;
  const Epilogue& e = *s.epilogue;
  float low_value, high_value;
  ClipRange(e, low_value, high_value);
  const TileVec low = hn::Set(d, low_value), high = hn::Set(d, high_value);
  const TileVec alpha = hn::Set(d, e.alpha), beta = hn::Set(d, e.beta);
  const auto last = hn::FirstN(d, static_cast<size_t>(s.columns - (vectors - 1) * tile_lanes));
  const auto load = [&](const float* p, int v) HWY_ATTR {
    return v + 1 < vectors ? hn::LoadU(d, p + v * tile_lanes)
                           : hn::MaskedLoad(last, d, p + v * tile_lanes);
  };
  TileVec bias[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    bias[v] = s.bias != nullptr && e.bias_axis == BiasAxis::column ? hn::Mul(beta, load(s.bias, v))
                                                                   : hn::Zero(d);
  }
  const bool by_row = s.bias != nullptr && e.bias_axis == BiasAxis::row;
  float* to = s.c;
  const float* added = s.residual;
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i, to += s.c_stride) {
    if (by_row) {
      const TileVec value = hn::Set(d, e.beta * s.bias[i]);
      for (int v = 0; v < vectors; ++v) bias[v] = value;
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      TileVec x = hn::MulAdd(alpha, sums[i][v], bias[v]);
      if (added != nullptr) x = hn::MulAdd(beta, load(added, v), x);
      x = hn::Min(high, hn::Max(low, x));  // the second operand wins where one is NaN
      if (v + 1 < vectors) {
        hn::StoreU(x, d, to + v * tile_lanes);
      } else {
        hn::BlendedStore(x, last, d, to + v * tile_lanes);
      }
    }
    if (added != nullptr) added += s.residual_stride;
  }
}
#else
inline bool TileFinishes(const Epilogue&) { return false; }
template <int rows, int vectors>
HWY_INLINE void FinishTile(TileVec (&)[rows][vectors], const TileStore&) {}
#endif

// k_major: A's rows side by side, term after term; otherwise row after row.
// panel_vectors < vectors: B comes in several panels of that many vectors each. B: what it holds.
template <int rows, int vectors, bool k_major, int panel_vectors = vectors, class B = float>
void TileProduct(const TileJob& job) {
  TileVec sums[rows][vectors];
  constexpr int width = vectors * tile_lanes;
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      sums[i][v] = job.resume ? TileLoad(job.sums + i * width + v * tile_lanes) : TileZero();
    }
  }
  const float* a = job.a;
  const B* b = reinterpret_cast<const B*>(job.b);
  const float* ahead = job.prefetch;
  const int64_t a_stride = job.a_stride;
  const int64_t b_stride = job.b_stride;
  const int64_t panel_distance = job.panel_distance;
  const int64_t ahead_stride = job.prefetch_stride;
  const int lines = job.prefetch_lines;
  const auto term = [&](const float* at_a, const B* at_b) HWY_ATTR {
    TileTerm<rows, vectors>(
        sums, [&](int i) HWY_ATTR { return k_major ? at_a + i : at_a + i * a_stride; },
        [&](int v) HWY_ATTR {
          return at_b + (v / panel_vectors) * panel_distance + (v % panel_vectors) * tile_lanes;
        });
  };
  const int64_t step = k_major ? a_stride : 1;
  int64_t k = job.k;
  for (; k >= 2; k -= 2) {
    for (int line = 0; line < lines; ++line, ahead += ahead_stride) {
      __builtin_prefetch(ahead, 0, 2);
    }
    term(a, b);
    term(a + step, b + b_stride);
    a += 2 * step;
    b += 2 * b_stride;
  }
  if (k != 0) term(a, b);
  if (job.store != nullptr) return FinishTile<rows, vectors>(sums, *job.store);
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      TileStoreVec(sums[i][v], job.sums + i * width + v * tile_lanes);
    }
  }
}

template <bool k_major, int vectors, int... row>
void FillTiles(TileKernels::Table& table, std::integer_sequence<int, row...>) {
  ((table[row + 1][vectors] = &TileProduct<row + 1, vectors, k_major>), ...);
}

// Few rows times panels of halves, several at a time where there are as many.
template <class B>
HalfTiles MakeHalfTiles() {
  constexpr int few = tile_lanes == 16 ? 8 : 4;
  HalfTiles t;
  t.wide[1] = &TileProduct<1, few, false, 2, B>;
  t.wide[2] = &TileProduct<2, few, false, 2, B>;
  t.wide[3] = &TileProduct<3, 4, false, 2, B>;
  t.wide[4] = &TileProduct<4, 4, false, 2, B>;
  t.one[1][1] = &TileProduct<1, 1, false, 1, B>;
  t.one[1][2] = &TileProduct<1, 2, false, 2, B>;
  t.one[2][1] = &TileProduct<2, 1, false, 1, B>;
  t.one[2][2] = &TileProduct<2, 2, false, 2, B>;
  t.one[3][1] = &TileProduct<3, 1, false, 1, B>;
  t.one[3][2] = &TileProduct<3, 2, false, 2, B>;
  t.one[4][1] = &TileProduct<4, 1, false, 1, B>;
  t.one[4][2] = &TileProduct<4, 2, false, 2, B>;
  return t;
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
