// Elementary functions on vectors of float, compiled once for each instruction set. Every one of
// them is within 2.5 units in the last place of the true value, takes any float (infinities, NaN,
// zeros of both signs, subnormals) and never traps.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_SIMD_MATH_INL_H_
#undef SARDONYX_KERNELS_SIMD_MATH_INL_H_
#else
#define SARDONYX_KERNELS_SIMD_MATH_INL_H_
#endif

#include <hwy/highway.h>
#include <cstdint>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace sardonyx {
namespace HWY_NAMESPACE {
namespace math {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
concept OfDoubles = std::is_same_v < hn::TFromD<D>,
double > ;

// Max and Min that give NaN where the second operand is. x86 instructions return the second operand
// when one of both is NaN. Arm has instructions for either way; Highway takes those that give the
// number.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
template <class V>
HWY_INLINE V MaxOrNaN(V a, V b) {
  return hn::Max(a, b);
}
template <class V>
HWY_INLINE V MinOrNaN(V a, V b) {
  return hn::Min(a, b);
}
#elif HWY_TARGET == HWY_NEON
HWY_INLINE hn::Vec128<float> MaxOrNaN(hn::Vec128<float> a, hn::Vec128<float> b) {
  return hn::Vec128<float>(vmaxq_f32(a.raw, b.raw));
}
HWY_INLINE hn::Vec128<float> MinOrNaN(hn::Vec128<float> a, hn::Vec128<float> b) {
  return hn::Vec128<float>(vminq_f32(a.raw, b.raw));
}
template <size_t N>
HWY_INLINE hn::Vec128<float, N> MaxOrNaN(hn::Vec128<float, N> a, hn::Vec128<float, N> b) {
  return hn::Vec128<float, N>(vmax_f32(a.raw, b.raw));
}
template <size_t N>
HWY_INLINE hn::Vec128<float, N> MinOrNaN(hn::Vec128<float, N> a, hn::Vec128<float, N> b) {
  return hn::Vec128<float, N>(vmin_f32(a.raw, b.raw));
}
HWY_INLINE hn::Vec128<double> MaxOrNaN(hn::Vec128<double> a, hn::Vec128<double> b) {
  return hn::Vec128<double>(vmaxq_f64(a.raw, b.raw));
}
HWY_INLINE hn::Vec128<double> MinOrNaN(hn::Vec128<double> a, hn::Vec128<double> b) {
  return hn::Vec128<double>(vminq_f64(a.raw, b.raw));
}
HWY_INLINE hn::Vec64<double> MaxOrNaN(hn::Vec64<double> a, hn::Vec64<double> b) {
  return hn::Vec64<double>(vmax_f64(a.raw, b.raw));
}
HWY_INLINE hn::Vec64<double> MinOrNaN(hn::Vec64<double> a, hn::Vec64<double> b) {
  return hn::Vec64<double>(vmin_f64(a.raw, b.raw));
}
#else
template <class V>
HWY_INLINE V MaxOrNaN(V a, V b) {
  return hn::IfThenElse(hn::Lt(b, a), a, b);
}
template <class V>
HWY_INLINE V MinOrNaN(V a, V b) {
  return hn::IfThenElse(hn::Gt(b, a), a, b);
}
#endif

// max(v, low) and min(v, high) with NaN in v kept.
template <class D, class V>
HWY_INLINE V RaiseTo(D d, V v, hn::TFromD<D> low) {
  return MaxOrNaN(hn::Set(d, low), v);
}

template <class D, class V>
HWY_INLINE V LowerTo(D d, V v, hn::TFromD<D> high) {
  return MinOrNaN(hn::Set(d, high), v);
}

// c[0] + x (c[1] + x (c[2] + …)).
template <class D, class V>
HWY_INLINE V Horner(D d, V, hn::TFromD<D> last) {
  return hn::Set(d, last);
}
template <class D, class V, class... More>
HWY_INLINE V Horner(D d, V x, hn::TFromD<D> first, More... more) {
  return hn::MulAdd(Horner(d, x, more...), x, hn::Set(d, first));
}

// Adding this rounds a float of magnitude below 2^22 to an integer, found in the low bits.
constexpr float rounder = 12582912.0f;

// v * 2^n for an integral n; `biased` is n + rounder. The scaling is done in two steps so that
// results that are subnormal round once and those beyond the range become infinite.
#if HWY_TARGET == HWY_AVX3
template <class D>
HWY_INLINE hn::Vec512<float> ScaleBy(D, hn::Vec512<float> v, hn::Vec512<float>,
                                     hn::Vec512<float> n) {
  return hn::Vec512<float>{_mm512_scalef_ps(v.raw, n.raw)};
}
template <class D>
HWY_INLINE hn::Vec256<float> ScaleBy(D, hn::Vec256<float> v, hn::Vec256<float>,
                                     hn::Vec256<float> n) {
  return hn::Vec256<float>{_mm256_scalef_ps(v.raw, n.raw)};
}
template <class D, size_t N>
HWY_INLINE hn::Vec128<float, N> ScaleBy(D, hn::Vec128<float, N> v, hn::Vec128<float, N>,
                                        hn::Vec128<float, N> n) {
  return hn::Vec128<float, N>{_mm_scalef_ps(v.raw, n.raw)};
}
#else
template <class D, class V>
HWY_INLINE V ScaleBy(D d, V v, V biased, V) {
  const hn::RebindToSigned<D> di;
  const auto n = hn::Sub(hn::BitCast(di, biased), hn::BitCast(di, hn::Set(d, rounder)));
  const auto half = hn::ShiftRight<1>(n);
  const auto rest = hn::Sub(n, half);
  const auto bias = hn::Set(di, 127);
  const V a = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V b = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(rest, bias)));
  return hn::Mul(hn::Mul(v, a), b);
}
#endif

#if HWY_TARGET == HWY_AVX3
// What of v and ±bound is nearer to 0, with the sign of v; NaN becomes a bound.
template <class D>
HWY_INLINE hn::Vec512<float> NearerToZero(D d, hn::Vec512<float> v, float bound) {
  return hn::Vec512<float>{_mm512_range_ps(v.raw, hn::Set(d, bound).raw, 2)};
}
template <class D>
HWY_INLINE hn::Vec256<float> NearerToZero(D d, hn::Vec256<float> v, float bound) {
  return hn::Vec256<float>{_mm256_range_ps(v.raw, hn::Set(d, bound).raw, 2)};
}
template <class D, size_t N>
HWY_INLINE hn::Vec128<float, N> NearerToZero(D d, hn::Vec128<float, N> v, float bound) {
  return hn::Vec128<float, N>{_mm_range_ps(v.raw, hn::Set(d, bound).raw, 2)};
}
#endif

constexpr float log2_e = 1.44269504088896341f;
constexpr float ln2_high =
    0.693359375f;  // few bits, so that products with small integers are exact
constexpr float ln2_low = -2.12194440e-4f;

#if HWY_TARGET == HWY_AVX3
// 2^(i / 16).
alignas(64) constexpr float sixteenth_powers[16] = {
    0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fe0p+0f, 0x1.3dea64p+0f,
    0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
// Adding this rounds a float of magnitude below 2^18 to a sixteenth; the sixteenths beyond a whole
// number are in the lowest four bits.
constexpr float sixteenth_rounder = rounder / 16;

// Those of `powers` that the lowest four bits of each lane name.
HWY_INLINE __m512 LookUp16(__m512 biased, const float* powers) {
  return _mm512_permutexvar_ps(_mm512_castps_si512(biased), _mm512_load_ps(powers));
}
HWY_INLINE hn::Vec512<float> LookUp16(hn::Vec512<float> biased, const float* powers) {
  return hn::Vec512<float>{LookUp16(biased.raw, powers)};
}
HWY_INLINE hn::Vec256<float> LookUp16(hn::Vec256<float> biased, const float* powers) {
  const __m512 wide = LookUp16(_mm512_castps256_ps512(biased.raw), powers);
  return hn::Vec256<float>{_mm512_castps512_ps256(wide)};
}
template <size_t N>
HWY_INLINE hn::Vec128<float, N> LookUp16(hn::Vec128<float, N> biased, const float* powers) {
  const __m512 wide = LookUp16(_mm512_castps128_ps512(biased.raw), powers);
  return hn::Vec128<float, N>{_mm512_castps512_ps128(wide)};
}
#endif

// exp(x) for x already inside [-104, 90] or NaN, divided by 2^halvings.
template <int halvings = 0, class D, class V>
HWY_INLINE V ExpInRange(D d, V x) {
#if HWY_TARGET == HWY_AVX3
  // x = n ln 2 + r, n a multiple of 1/16, so that few terms of a polynomial are enough.
  const V biased = hn::MulAdd(x, hn::Set(d, log2_e), hn::Set(d, sixteenth_rounder));
  V n = hn::Sub(biased, hn::Set(d, sixteenth_rounder));
  V r = hn::NegMulAdd(n, hn::Set(d, ln2_high), x);
  r = hn::NegMulAdd(n, hn::Set(d, ln2_low), r);
  const V q = hn::Mul(r, Horner(d, r, 1.0f, 0.5000162f, 0.16666667f));
  if constexpr (halvings != 0) n = hn::Sub(n, hn::Set(d, halvings));
  const V power = LookUp16(biased, sixteenth_powers);
  return ScaleBy(d, hn::MulAdd(q, power, power), biased, n);  // 2^n: n is rounded down
#else
  V biased = hn::MulAdd(x, hn::Set(d, log2_e), hn::Set(d, rounder));
  V n = hn::Sub(biased, hn::Set(d, rounder));
  V r = hn::NegMulAdd(n, hn::Set(d, ln2_high), x);
  r = hn::NegMulAdd(n, hn::Set(d, ln2_low), r);
  const V p = Horner(d, r, 0.49999994f, 0.1666652f, 0.0416684f, 0.00836885f, 0.00138143f);
  const V q = hn::MulAdd(hn::Mul(r, r), p, r);
  if constexpr (halvings != 0) {
    biased = hn::Sub(biased, hn::Set(d, halvings));
    n = hn::Sub(n, hn::Set(d, halvings));
  }
  return ScaleBy(d, hn::Add(q, hn::Set(d, 1.0f)), biased, n);
#endif
}

// a / b for b in [2^-100, 2^100], within a unit in the last place.
template <class D, class V>
HWY_INLINE V Divide(D, V a, V b) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float)) {
    const V inverse = hn::ApproximateReciprocal(b);
    const V y = hn::Mul(a, inverse);
    return hn::MulAdd(hn::NegMulAdd(y, b, a), inverse, y);
  }
#endif
  return hn::Div(a, b);
}

// f applied lane by lane, for what is rare or has no vector form.
template <class D, class V, class F>
HWY_INLINE V EachLane(D d, V v, F f) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = f(lanes[i]);
  return hn::Load(d, lanes);
}

}  // namespace math

template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  return math::ExpInRange(d, math::LowerTo(d, math::RaiseTo(d, x, -104.0f), 89.0f));
}

// exp(x) for x that is never above 0 (softmax, sigmoid): one operation less.
template <class D, class V>
HWY_INLINE V ExpNotPositive(D d, V x) {
  return math::ExpInRange(d, math::RaiseTo(d, x, -104.0f));
}

// exp(x) - 1 without cancellation near 0.
template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  using namespace math;
  const V bounded = LowerTo(d, RaiseTo(d, x, -18.0f), 89.0f);
  const V biased = hn::MulAdd(bounded, hn::Set(d, log2_e), hn::Set(d, rounder));
  const V n = hn::Sub(biased, hn::Set(d, rounder));
  V r = hn::NegMulAdd(n, hn::Set(d, ln2_high), bounded);
  r = hn::NegMulAdd(n, hn::Set(d, ln2_low), r);
  const V p = Horner(d, r, 0.5f, 0.16666542f, 0.04166628f, 0.0083667f, 0.00139466f);
  const V q = hn::MulAdd(hn::Mul(r, r), p, r);
  // Half of the scale, so that it stays finite for the largest results.
  const V half = hn::Set(d, 0.5f);
  const V s = ScaleBy(d, half, biased, n);
  const V y = hn::MulAdd(s, q, hn::Sub(s, half));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 2.98e-8f)), x, hn::Add(y, y));
}

template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  using namespace math;
  const hn::RebindToSigned<D> di;
  const V zero = hn::Zero(d);
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto tiny = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const V normal = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  const auto bits = hn::BitCast(di, normal);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const V mantissa = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const V e = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(tiny, hn::Set(d, 23.0f)));
  const V f = hn::Sub(mantissa, hn::Set(d, 1.0f));
  const V f2 = hn::Mul(f, f);
  const V p = Horner(d, f, 0.33333331684f, -0.2500082679f, 0.20001235665f, -0.16623143593f,
                     0.14201373161f, -0.13162016899f, 0.12765401014f, -0.07634320766f);
  V y = hn::MulAdd(hn::Mul(f2, f), p, hn::Mul(e, hn::Set(d, ln2_low)));
  y = hn::MulAdd(f2, hn::Set(d, -0.5f), y);
  y = hn::MulAdd(e, hn::Set(d, ln2_high), hn::Add(f, y));
  const V below =
      hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), x);
  const V special = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), below);
  return hn::IfThenElse(hn::And(hn::Gt(x, zero), hn::Lt(x, infinity)), y, special);
}

// log(1 + x) without cancellation near 0.
template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
  using namespace math;
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(x, one);
  const V y = Log(d, u);
  const V lost = hn::Div(hn::Sub(x, hn::Sub(u, one)), u);
  const auto ordinary = hn::And(hn::Gt(u, hn::Zero(d)),
                                hn::Lt(u, hn::Set(d, std::numeric_limits<float>::infinity())));
  const V sum = hn::IfThenElse(ordinary, hn::Add(y, lost), y);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, sum);
}

template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  using namespace math;
  // With x = n ln 2 + r it is 2^n / (2^n + exp(-r)), where nothing cancels and nothing overflows;
  // from 30 on that is 1.
  const V bounded = LowerTo(d, RaiseTo(d, x, -104.0f), 30.0f);
  const V biased = hn::MulAdd(bounded, hn::Set(d, log2_e), hn::Set(d, rounder));
  const V n = hn::Sub(biased, hn::Set(d, rounder));
  V r = hn::NegMulAdd(n, hn::Set(d, ln2_high), bounded);
  r = hn::NegMulAdd(n, hn::Set(d, ln2_low), r);
  const V q =
      Horner(d, r, 1.0f, -1.0f, 0.49999994f, -0.1666652f, 0.0416684f, -0.00836885f, 0.00138143f);
  const V s = ScaleBy(d, hn::Set(d, 1.0f), biased, n);
  return hn::Div(s, hn::Add(s, q));
}

#if HWY_TARGET == HWY_AVX3
// 1 + exp(-x), for any x; a number where x is none, too. With
// -x log2(e) = n + r, n a multiple of 1/16, it is 1 + 2^(n + shift) 2^(r - shift): the first factor
// from a table of sixteen, the second a polynomial. `shift` is chosen so that all sixteen are close
// to floats and the polynomial stays below 1, where rounding is finer.
namespace math {
template <class D>
HWY_INLINE hn::Vec512<float> OnePlusExpOfNegative(D d, hn::Vec512<float> x) {
  alignas(64) static constexpr float powers[16] = {
      // 2^(i / 16 + 0.0672449375)
      0x1.0c36fcp+0f, 0x1.1816f4p+0f, 0x1.247d84p+0f, 0x1.3170ap+0f,
      0x1.3ef682p+0f, 0x1.4d15aap+0f, 0x1.5bd4ep+0f,  0x1.6b3b3ap+0f,
      0x1.7b502p+0f,  0x1.8c1b4ap+0f, 0x1.9da4ccp+0f, 0x1.aff512p+0f,
      0x1.c314eap+0f, 0x1.d70d84p+0f, 0x1.ebe878p+0f, 0x1.00d7e6p+1f};
  const auto bounded = NearerToZero(d, x, 200.0f);
  const auto negative_log2_e = hn::Set(d, -log2_e);
  const auto biased = hn::MulAdd(bounded, negative_log2_e, hn::Set(d, sixteenth_rounder));
  const auto n = hn::Sub(biased, hn::Set(d, sixteenth_rounder));
  auto r = hn::MulSub(bounded, negative_log2_e, n);
  r = hn::MulAdd(bounded, hn::Set(d, -1.92596299e-8f), r);  // what log2_e lacks
  const auto p = Horner(d, r, 0.954458952f, 0.661580563f, 0.229295298f, 0.0529779457f);
  const hn::Vec512<float> power = LookUp16(biased, powers);
  return hn::MulAdd(ScaleBy(d, power, biased, n), p, hn::Set(d, 1.0f));  // 2^n: n is rounded down
}
}  // namespace math
#endif

// x * sigmoid(x), as x / (1 + exp(-x)). Where exp(-x) is infinite, from -88.72 down, it is -0, less
// than 3e-37 away.
template <class D, class V>
HWY_INLINE V Silu(D d, V x) {
  using namespace math;
  // A division leaves the multipliers to what stands around it.
#if HWY_TARGET == HWY_AVX3
  return hn::Div(x, OnePlusExpOfNegative(d, x));
#else
  return hn::Div(x, hn::Add(Exp(d, hn::Neg(x)), hn::Set(d, 1.0f)));
#endif
}

template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  using namespace math;
  // With a = (exp(2|x|) - 1) / 2 it is a / (a + 1), where a = 2^n h + (2^n - 1) / 2 with
  // 2|x| = n ln 2 + 2r and h = (exp(2r) - 1) / 2; from 10 on that is 1.
  const V bounded = LowerTo(d, hn::Abs(x), 10.0f);
  const V biased = hn::MulAdd(bounded, hn::Set(d, 2 * log2_e), hn::Set(d, rounder));
  const V n = hn::Sub(biased, hn::Set(d, rounder));
  V r = hn::NegMulAdd(n, hn::Set(d, ln2_high / 2), bounded);
  r = hn::NegMulAdd(n, hn::Set(d, ln2_low / 2), r);
  const V p = Horner(d, r, 1.0f, 0.66666168f, 0.33333024f, 0.1338672f, 0.04462912f);
  const V h = hn::MulAdd(hn::Mul(r, r), p, r);
  const V half = hn::Set(d, 0.5f);
  const V s = ScaleBy(d, hn::Set(d, 1.0f), biased, n);
  const V a = hn::MulAdd(s, h, hn::MulSub(s, half, half));
  return hn::CopySign(Divide(d, a, hn::Add(a, hn::Set(d, 1.0f))), x);
}

template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  using namespace math;
  const V a = hn::Abs(x);
  const V s = hn::Mul(a, a);
  const V near = hn::MulAdd(x,
                            Horner(d, s, 0.12837915749f, -0.37612550463f, 0.11282455322f,
                                   -0.02679146274f, 0.00503218088f, -0.00062032528f),
                            x);
  // Far from 0, erf = 1 - exp(-a Q(a)); from 3.95 on that is 1.
  const V t = LowerTo(d, a, 3.95f);
  const V q = Horner(d, t, 1.1286229093f, 0.6352568764f, 0.1060596458f, -0.0236072268f,
                     0.0035682763f, -0.00030433361f, 9.36487e-6f);
  const V far = hn::Sub(hn::Set(d, 1.0f), ExpInRange(d, hn::Neg(hn::Mul(t, q))));
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.875f)), near, hn::CopySign(far, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx
HWY_AFTER_NAMESPACE();

#endif
