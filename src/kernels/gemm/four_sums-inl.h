// Adding up the lanes of vectors, four at a time.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_GEMM_FOUR_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_GEMM_FOUR_SUMS_INL_H_
#undef SARDONYX_KERNELS_GEMM_FOUR_SUMS_INL_H_
#else
#define SARDONYX_KERNELS_GEMM_FOUR_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/gemm/microkernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
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
