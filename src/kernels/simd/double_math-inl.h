// Elementary functions of vectors of double, by the names that math-inl.h has for float; compiled
// once for each instruction set. Every one of them is within 2.5 units in the last place of the
// true value and takes any double.
#if defined(SARDONYX_KERNELS_SIMD_DOUBLE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_SIMD_DOUBLE_MATH_INL_H_
#undef SARDONYX_KERNELS_SIMD_DOUBLE_MATH_INL_H_
#else
#define SARDONYX_KERNELS_SIMD_DOUBLE_MATH_INL_H_
#endif

#include <hwy/highway.h>
#include <cstdint>
#include <limits>

#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx {
namespace HWY_NAMESPACE {
namespace math {

// Adding this rounds a double of magnitude below 2^51 to an integer, found in the low bits.
constexpr double double_rounder = 0x1.8p52;
// Few bits, so that products with exponents are exact.
constexpr double double_ln2_high = 6.93147180369123816490e-01;
constexpr double double_ln2_low = 1.90821492927058770002e-10;

// exp(x) = 2^n (1 + q) with r = x - n ln 2 within ln 2 / 2 and q = exp(r) - 1, by 14 terms of the
// series.
template <class V, class I>
struct ExpParts {
  I n;
  V q;
};

template <class D, class V>
HWY_INLINE auto ExpPartsOf(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V rounds = hn::Set(d, double_rounder);
  const V biased = hn::MulAdd(x, hn::Set(d, 1.4426950408889634074), rounds);
  const V n = hn::Sub(biased, rounds);
  V r = hn::NegMulAdd(n, hn::Set(d, double_ln2_high), x);
  r = hn::NegMulAdd(n, hn::Set(d, double_ln2_low), r);
  // 1 / k!
  const V p = Horner(d, r, 0.5, 1.6666666666666666e-01, 4.1666666666666664e-02,
                     8.333333333333333e-03, 1.388888888888889e-03, 1.984126984126984e-04,
                     2.48015873015873e-05, 2.7557319223985893e-06, 2.755731922398589e-07,
                     2.505210838544172e-08, 2.08767569878681e-09, 1.6059043836821613e-10);
  const auto whole = hn::Sub(hn::BitCast(di, biased), hn::BitCast(di, rounds));
  return ExpParts<V, decltype(hn::BitCast(di, biased))>{whole, hn::MulAdd(hn::Mul(r, r), p, r)};
}

// 2^e for whole numbers of lanes that are normal exponents.
template <class D, class I>
HWY_INLINE auto PowerOf2(D d, I e) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<52>(hn::Add(e, hn::Set(di, 1023))));
}

// exp(x) / 2^halvings, within 1 ulp, for x inside [-746, 711] or NaN.
template <int halvings, class D, class V>
HWY_INLINE V DoubleExpInRange(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto parts = ExpPartsOf(d, x);
  // By two factors, n going beyond the exponents that there are. The halves of n are told by bits
  // of n + 2048, which is positive.
  const auto exponent = hn::Sub(parts.n, hn::Set(di, halvings));
  const auto half =
      hn::Sub(hn::BitCast(di, hn::ShiftRight<1>(hn::BitCast(hn::RebindToUnsigned<D>(),
                                                            hn::Add(exponent, hn::Set(di, 2048))))),
              hn::Set(di, 1024));
  const V scaled = hn::Mul(hn::Add(parts.q, hn::Set(d, 1.0)), PowerOf2(d, half));
  const V y = hn::Mul(scaled, PowerOf2(d, hn::Sub(exponent, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

}  // namespace math

template <class D, class V>
requires math::OfDoubles<D> HWY_INLINE V Exp(D d, V x) {
  // Infinite above 709.78; below -745.13 zero, and down to there what lies between the least
  // numbers.
  return math::DoubleExpInRange<0>(d, math::LowerTo(d, math::RaiseTo(d, x, -746.0), 710.0));
}

template <class D, class V>
requires math::OfDoubles<D> HWY_INLINE V ExpNotPositive(D d, V x) {
  return math::DoubleExpInRange<0>(d, math::RaiseTo(d, x, -746.0));
}

template <class D, class V>
requires math::OfDoubles<D> HWY_INLINE V Expm1(D d, V x) {
  using namespace math;
  const hn::RebindToSigned<D> di;
  const auto parts = ExpPartsOf(d, LowerTo(d, RaiseTo(d, x, -40.0), 710.0));
  // Half of the scale, so that it stays finite for the largest results.
  const V half = hn::Set(d, 0.5);
  const V s = PowerOf2(d, hn::Sub(parts.n, hn::Set(di, 1)));
  const V y = hn::MulAdd(s, parts.q, hn::Sub(s, half));
  const auto ordinary = hn::Ge(hn::Abs(x), hn::Set(d, 0x1p-54));  // the others are x, as NaN is
  return hn::IfThenElse(ordinary, hn::Add(y, y), x);
}

template <class D, class V>
requires math::OfDoubles<D> HWY_INLINE V Log(D d, V x) {
  using namespace math;
  const hn::RebindToSigned<D> di;
  const V zero = hn::Zero(d);
  const V infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  const auto tiny = hn::Lt(x, hn::Set(d, std::numeric_limits<double>::min()));
  const V normal = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p54)), x);
  const auto bits = hn::BitCast(di, normal);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  const auto exponent = hn::ShiftRight<52>(hn::Sub(bits, hn::Set(di, 0x3fe6a09e667f3bcd)));
  const V mantissa = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<52>(exponent)));
  const V biased = hn::BitCast(d, hn::Add(exponent, hn::BitCast(di, hn::Set(d, double_rounder))));
  const V e = hn::Sub(hn::Sub(biased, hn::Set(d, double_rounder)),
                      hn::IfThenElseZero(tiny, hn::Set(d, 54.0)));
  // With s = f / (2 + f), log(1 + f) = 2 atanh(s) = f - (f^2 / 2 - s (f^2 / 2 + tail)).
  const V f = hn::Sub(mantissa, hn::Set(d, 1.0));
  const V s = hn::Div(f, hn::Add(f, hn::Set(d, 2.0)));
  const V z = hn::Mul(s, s);
  const V tail = hn::Mul(z, Horner(d, z, 0.666666666666673957, 0.399999999993779332,
                                   0.2857142875130953, 0.222221975868639454, 0.181836190091163391,
                                   0.153125693733589974, 0.148115453503129935));
  const V square = hn::Mul(hn::Mul(f, f), hn::Set(d, 0.5));
  const V low = hn::MulAdd(s, hn::Add(square, tail), hn::Mul(e, hn::Set(d, double_ln2_low)));
  const V y = hn::MulAdd(e, hn::Set(d, double_ln2_high), hn::Sub(f, hn::Sub(square, low)));
  const V below =
      hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<double>::quiet_NaN()), x);
  const V special = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), below);
  return hn::IfThenElse(hn::And(hn::Gt(x, zero), hn::Lt(x, infinity)), y, special);
}

// 1 / (1 + exp(-x)), from the side where nothing cancels.
template <class D, class V>
requires math::OfDoubles<D> HWY_INLINE V Sigmoid(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V one = hn::Set(d, 1.0);
  const V e = ExpNotPositive(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

template <class D, class V>
requires math::OfDoubles<D> HWY_INLINE V Tanh(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V a = math::LowerTo(d, hn::Abs(x), 20.0);  // 1 from there on
  const V e = Expm1(d, hn::Add(a, a));
  return hn::CopySign(hn::Div(e, hn::Add(e, hn::Set(d, 2.0))), x);
}

template <class D, class V>
requires math::OfDoubles<D> HWY_INLINE V Erf(D d, V x) {
  using namespace math;
  const V a = hn::Abs(x);
  const V s = hn::Mul(a, a);
  const V near =
      hn::MulAdd(x,
                 Horner(d, s, 0.128379167095512586, -0.376126389031837371, 0.112837916709543032,
                        -0.0268661706449326056, 0.00522397762295608546, -0.000854832683944326769,
                        0.000120553243260818792, -0.0000149253814895956627, 1.64565185818934557e-6,
                        -1.62883807514440596e-7, 1.41180596956521173e-8, -8.65511906492782194e-10),
                 x);
  // Far from 0, erf = 1 - exp(-a Q(a)); from 5.93 on that is 1.
  const V t = LowerTo(d, a, 5.93);
  const V q = Horner(d, hn::Sub(t, hn::Set(d, 2.5)), 3.1227261090909062, 0.891981856758203406,
                     0.0207647507063583245, -0.0039626711875334758, 0.000718877714772091269,
                     -0.000119178059106449678, 0.0000168589074876776994, -1.64122842698616239e-6,
                     -5.11154455985682376e-8, 8.28261054267648453e-8, -2.80747929551108323e-8,
                     6.8697725749054106e-9, -1.3462724276342097e-9, 1.94059384159890684e-10,
                     -1.34127972918986137e-11, -1.61623494098407211e-12, 1.80539852759394542e-12,
                     -9.15913352490212691e-13, 1.6640893864955112e-13, -4.60173382581907826e-15);
  const V far = hn::Sub(hn::Set(d, 1.0), DoubleExpInRange<0>(d, hn::Neg(hn::Mul(t, q))));
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.875)), near, hn::CopySign(far, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx
HWY_AFTER_NAMESPACE();

#endif
