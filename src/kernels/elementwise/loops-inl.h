// Loops of a vector function over rows of float or double; compiled once for each instruction set.
#if defined(SARDONYX_KERNELS_ELEMENTWISE_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_ELEMENTWISE_LOOPS_INL_H_
#undef SARDONYX_KERNELS_ELEMENTWISE_LOOPS_INL_H_
#else
#define SARDONYX_KERNELS_ELEMENTWISE_LOOPS_INL_H_
#endif

#include <hwy/highway.h>
#include <cstdint>

#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

// y[i] = f(d, x[i]). The last elements are computed by the same vector code, so an element's
// result never depends on where in a row it stands.
template <class T, class F>
HWY_INLINE void MapRow(const T* x, T* y, int64_t n, const F& f) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = f(d, hn::LoadU(d, x + i));
    const auto b = f(d, hn::LoadU(d, x + i + lanes));
    hn::StoreU(a, d, y + i);
    hn::StoreU(b, d, y + i + lanes);
  }
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    masked::Store(f(d, masked::Load(some, d, x + i)), some, d, y + i);
  }
}

// y[i] = f(d, a[i], b[i]).
template <class F>
HWY_INLINE void MapRows(const float* a, const float* b, float* y, int64_t n, const F& f) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto v = f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    const auto w = f(d, hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes));
    hn::StoreU(v, d, y + i);
    hn::StoreU(w, d, y + i + lanes);
  }
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  }
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto v = f(d, masked::Load(some, d, a + i), masked::Load(some, d, b + i));
    masked::Store(v, some, d, y + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
