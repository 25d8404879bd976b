// Elementary functions of vectors of double; compiled once for each instruction set.
#if defined(SARDONYX_KERNELS_SIMD_DOUBLE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_SIMD_DOUBLE_MATH_INL_H_
#undef SARDONYX_KERNELS_SIMD_DOUBLE_MATH_INL_H_
#else
#define SARDONYX_KERNELS_SIMD_DOUBLE_MATH_INL_H_
#endif

#include <hwy/highway.h>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace sardonyx {
namespace HWY_NAMESPACE {

// exp(x), within 1 ulp: 2^n exp(r) with r within ln 2 / 2, by 14 terms of the series. Infinite
// above 709.78; below -745.13 zero, and down to there what lies between the least numbers.
template <class D, class V>
HWY_INLINE V DoubleExp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> whole;
  const auto bounded = hn::Min(hn::Max(x, hn::Set(d, -746.0)), hn::Set(d, 710.0));
  const V n = hn::Round(hn::Mul(bounded, hn::Set(d, 1.4426950408889634074)));
  V r = hn::NegMulAdd(n, hn::Set(d, 6.93147180369123816490e-01), bounded);
  r = hn::NegMulAdd(n, hn::Set(d, 1.90821492927058770002e-10), r);
  // 1 / k!, the last first.
  constexpr double terms[] = {1.6059043836821613e-10, 2.08767569878681e-09,   2.505210838544172e-08,
                              2.755731922398589e-07,  2.7557319223985893e-06, 2.48015873015873e-05,
                              1.984126984126984e-04,  1.388888888888889e-03,  8.333333333333333e-03,
                              4.1666666666666664e-02, 1.6666666666666666e-01, 0.5};
  V p = hn::Set(d, terms[0]);
  for (size_t i = 1; i < sizeof terms / sizeof *terms; ++i)
    p = hn::MulAdd(p, r, hn::Set(d, terms[i]));
  p = hn::MulAdd(hn::Mul(r, r), p, r);
  p = hn::Add(p, hn::Set(d, 1.0));
  // 2^n by two factors: n goes beyond the exponents that there are.
  const auto exponent = hn::ConvertTo(whole, n);
  const auto half = hn::ShiftRight<1>(exponent);
  const auto power = [&](auto e) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<52>(hn::Add(e, hn::Set(whole, 1023))));
  };
  const V y = hn::Mul(hn::Mul(p, power(half)), power(hn::Sub(exponent, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// 1 / (1 + exp(-x)), from the side where nothing cancels.
template <class D, class V>
HWY_INLINE V DoubleSigmoid(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V one = hn::Set(d, 1.0);
  const V e = DoubleExp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx
HWY_AFTER_NAMESPACE();

#endif
