// What vectors of rows are combined by.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_ROWS_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_ROWS_FOLD_INL_H_
#undef SARDONYX_KERNELS_ROWS_FOLD_INL_H_
#else
#define SARDONYX_KERNELS_ROWS_FOLD_INL_H_
#endif

#include <hwy/highway.h>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Of NaN and a number: NaN.
constexpr auto add_of = [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
constexpr auto mul_of = [](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); };
constexpr auto max_of = [](auto, auto a, auto b) HWY_ATTR {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Gt(a, b), a, b));
};
constexpr auto min_of = [](auto, auto a, auto b) HWY_ATTR {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Lt(a, b), a, b));
};

// The lanes of v combined: halves are folded on each other.
template <class D, class V, class Combine>
HWY_INLINE float Fold([[maybe_unused]] D d, V v, const Combine& combine) {
#if HWY_HAVE_SCALABLE || HWY_TARGET == HWY_SCALAR
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  const hn::CappedTag<float, 1> one;
  for (size_t half = hn::Lanes(d) / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) {
      lanes[i] = hn::GetLane(combine(one, hn::Set(one, lanes[i]), hn::Set(one, lanes[i + half])));
    }
  }
  return lanes[0];
#else
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return Fold(half, combine(half, hn::LowerHalf(half, v), hn::UpperHalf(half, v)), combine);
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
