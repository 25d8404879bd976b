// Dot products of several rows and columns at a time.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_GEMM_DOT_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_GEMM_DOT_PRODUCTS_INL_H_
#undef SARDONYX_KERNELS_GEMM_DOT_PRODUCTS_INL_H_
#else
#define SARDONYX_KERNELS_GEMM_DOT_PRODUCTS_INL_H_
#endif

#include <hwy/highway.h>
#include <cstdint>

#include "kernels/gemm/microkernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
// The same, kept in a register: compilers would rather read it again for each use.
HWY_INLINE TileVec InRegister(TileVec v) {
#if HWY_TARGET == HWY_NEON
  asm("" : "+w"(v.raw));
#elif defined(__GNUC__)
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// Adds the products of `n` terms of each row, `stride` floats from the next, and each column,
// `column_stride` from the next, lane by lane. What lies `ahead` floats behind the columns is
// brought near meanwhile, unless that is 0.
template <int rows, int columns>
HWY_INLINE void AddProducts(const float* row, int64_t stride, const float* column,
                            int64_t column_stride, int64_t n, TileVec (&sums)[rows][columns],
                            int64_t ahead = 0) {
  const TileTag d;
  const auto add = [&](auto&& load, int64_t i) HWY_ATTR {
    TileVec right[columns];
#pragma GCC unroll 8
    for (int j = 0; j < columns; ++j) {
      right[j] = load(column + j * column_stride + i);
      if constexpr (rows > 1) right[j] = InRegister(right[j]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const TileVec left = load(row + r * stride + i);
#pragma GCC unroll 8
      for (int j = 0; j < columns; ++j) sums[r][j] = hn::MulAdd(left, right[j], sums[r][j]);
    }
  };
  int64_t i = 0;
  for (; i + tile_lanes <= n; i += tile_lanes) {
    if (ahead != 0) {
#pragma GCC unroll 8
      for (int j = 0; j < columns; ++j)
        __builtin_prefetch(column + j * column_stride + i + ahead, 0, 2);
    }
    add([&](const float* at) HWY_ATTR { return hn::LoadU(d, at); }, i);
  }
  if (i < n) {
    const FirstLanes some(n - i);
    add([&](const float* at) HWY_ATTR { return some.load(at); }, i);
  }
}

// The sums of four vectors, lane after lane.
template <class D, class V>
HWY_INLINE hn::Vec128<float> FourSums(D d, V a, V b, V c, V e) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    const auto folded = [&](V v) HWY_ATTR {
      return hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v));
    };
    return FourSums(half, folded(a), folded(b), folded(c), folded(e));
  } else {
    const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
    const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
    return hn::Add(hn::ConcatLowerLower(d, ce, ab), hn::ConcatUpperUpper(d, ce, ab));
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
