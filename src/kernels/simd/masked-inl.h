// Loads and stores of some of a vector's lanes, which touch no memory of the others.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_SIMD_MASKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_SIMD_MASKED_INL_H_
#undef SARDONYX_KERNELS_SIMD_MASKED_INL_H_
#else
#define SARDONYX_KERNELS_SIMD_MASKED_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace masked {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_NEON  // which has no such loads and stores: Highway's touch all lanes
template <class D, class Mask, class F>
HWY_INLINE void ForEach(Mask mask, D, F&& f) {
  const hn::RebindToUnsigned<D> d;
  HWY_ALIGN hn::TFromD<decltype(d)> chosen[hn::MaxLanes(D())];
  hn::Store(hn::VecFromMask(d, hn::RebindMask(d, mask)), d, chosen);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (chosen[i] != 0) f(i);
  }
}
#endif

// p[i] in the lanes of the mask, 0 in the others.
template <class D, class Mask>
HWY_INLINE hn::Vec<D> Load(Mask mask, D d, const hn::TFromD<D>* p) {
#if HWY_TARGET == HWY_NEON
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())] = {};
  ForEach(mask, d, [&](size_t i) HWY_ATTR { lanes[i] = p[i]; });
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(mask, d, p);
#endif
}

// The lanes of the mask to p[i].
template <class D, class Mask>
HWY_INLINE void Store(hn::Vec<D> v, Mask mask, D d, hn::TFromD<D>* p) {
#if HWY_TARGET == HWY_NEON
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  ForEach(mask, d, [&](size_t i) HWY_ATTR { p[i] = lanes[i]; });
#else
  hn::BlendedStore(v, mask, d, p);
#endif
}

}  // namespace masked
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
