// Hyperbolic functions and their inverses on vectors of float or double; compiled once
// for each instruction set. Every one of them is within 2.5 units in the last place of the true
// value, takes any number, and gives NaN where it has no value.
#if defined(SARDONYX_KERNELS_SIMD_HYPERBOLIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_SIMD_HYPERBOLIC_INL_H_
#undef SARDONYX_KERNELS_SIMD_HYPERBOLIC_INL_H_
#else
#define SARDONYX_KERNELS_SIMD_HYPERBOLIC_INL_H_
#endif

#include <hwy/highway.h>
#include <limits>

#include "kernels/simd/double_math-inl.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx {
namespace HWY_NAMESPACE {
namespace math {

// (sinh(x) - x) / x^3 by s = x^2, for x within 1.
template <class D, class V>
HWY_INLINE V SinhTail(D d, V s) {
  if constexpr (OfDoubles<D>) {
    return Horner(d, s, 0.166666666666666657, 0.00833333333333333322, 0.000198412698412696,
                  2.75573192241163059e-6, 2.50521083465049656e-8, 1.60590506017718344e-10,
                  7.64648286272776384e-13, 2.84823386721915746e-15);
  } else {
    return Horner(d, s, 0.1666666716f, 0.008333310485f, 0.0001984289556f, 2.782213642e-6f);
  }
}

// exp(|x|) / 2, which is finite wherever sinh and cosh are.
template <class D, class V>
HWY_INLINE V HalfExpOfMagnitude(D d, V x) {
  if constexpr (OfDoubles<D>)
    return DoubleExpInRange<1>(d, LowerTo(d, hn::Abs(x), 711.0));
  else
    return ExpInRange<1>(d, LowerTo(d, hn::Abs(x), 90.0f));
}

// log(1 + t + low) for a `low` that is small beside t, t above -1 or not a number.
template <class D, class V>
HWY_INLINE V LogOfOneMore(D d, V t, V low) {
  const V one = hn::Set(d, 1.0);
  const V sum = hn::Add(t, one);
  const V added = hn::Sub(sum, t);
  const V lost = hn::Add(hn::Sub(one, added), hn::Sub(t, hn::Sub(sum, added)));
  const auto ordinary =
      hn::And(hn::Gt(sum, hn::Zero(d)),
              hn::Lt(sum, hn::Set(d, std::numeric_limits<hn::TFromD<D>>::infinity())));
  const V y = Log(d, sum);
  return hn::Add(y, hn::IfThenElseZero(ordinary, hn::Div(hn::Add(lost, low), sum)));
}

// From here on asinh and acosh of x are log(2 x).
constexpr double only_logarithm = 0x1p28;
constexpr double ln2 = 0.69314718055994530942;

}  // namespace math

// log(1 + x) without cancellation near 0.
template <class D, class V>
requires math::OfDoubles<D> HWY_INLINE V Log1p(D d, V x) {
  return math::LogOfOneMore(d, x, math::hn::Zero(d));
}

template <class D, class V>
HWY_INLINE V Sinh(D d, V x) {
  using namespace math;
  const V s = hn::Mul(x, x);
  const V near = hn::MulAdd(hn::Mul(x, s), SinhTail(d, s), x);
  const V half = HalfExpOfMagnitude(d, x);
  const V far = hn::Sub(half, hn::Div(hn::Set(d, 0.25), half));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1.0)), near, hn::CopySign(far, x));
}

template <class D, class V>
HWY_INLINE V Cosh(D d, V x) {
  using namespace math;
  const V half = HalfExpOfMagnitude(d, x);
  return hn::Add(half, hn::Div(hn::Set(d, 0.25), half));
}

template <class D, class V>
HWY_INLINE V Asinh(D d, V x) {
  using namespace math;
  const V a = hn::Abs(x), one = hn::Set(d, 1.0), square = hn::Mul(a, a);
  const auto large = hn::Ge(a, hn::Set(d, only_logarithm));
  // a + sqrt(a^2 + 1) - 1
  const V root = hn::Sqrt(hn::MulAdd(a, a, one));
  const V more = hn::Div(square, hn::Add(root, one));
  const V sum = hn::Add(a, more);
  const V low = hn::Sub(more, hn::Sub(sum, a));
  const V y =
      LogOfOneMore(d, hn::IfThenElse(large, hn::Sub(a, one), sum), hn::IfThenZeroElse(large, low));
  return hn::CopySign(hn::Add(y, hn::IfThenElseZero(large, hn::Set(d, ln2))), x);
}

template <class D, class V>
HWY_INLINE V Acosh(D d, V x) {
  using namespace math;
  const V one = hn::Set(d, 1.0), u = hn::Sub(x, one);
  const auto large = hn::Ge(x, hn::Set(d, only_logarithm));
  // x - 1 + sqrt(x^2 - 1)
  const V root = hn::Sqrt(hn::MulAdd(u, u, hn::Add(u, u)));
  const V sum = hn::Add(u, root);
  const V low = hn::Sub(u, hn::Sub(sum, root));
  const V y = LogOfOneMore(d, hn::IfThenElse(large, u, sum), hn::IfThenZeroElse(large, low));
  const V all = hn::Add(y, hn::IfThenElseZero(large, hn::Set(d, ln2)));
  const V none = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  return hn::IfThenElse(hn::Lt(x, one), none, all);
}

template <class D, class V>
HWY_INLINE V Atanh(D d, V x) {
  using namespace math;
  const V a = hn::Abs(x), one = hn::Set(d, 1.0);
  // log((1 + a) / (1 - a)) / 2 with t = 2 a / (1 - a), 1 + t / 2 = 1 / (1 - a).
  const V twice = hn::Add(a, a), below = hn::Sub(one, a);
  const V t = hn::Div(twice, below);
  const V rest = hn::NegMulAdd(t, hn::Sub(hn::Sub(one, below), a), hn::NegMulAdd(t, below, twice));
  const V low = hn::MulAdd(hn::Mul(rest, t), hn::Set(d, 0.5), rest);
  const V y = hn::Mul(LogOfOneMore(d, t, low), hn::Set(d, 0.5));
  return hn::CopySign(y, x);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx
HWY_AFTER_NAMESPACE();

#endif
