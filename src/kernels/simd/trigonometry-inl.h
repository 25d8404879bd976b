// Trigonometric functions and their inverses on vectors of float or double; compiled once
// for each instruction set. Every one of them is within 2.5 units in the last place of the true
// value, takes any number, and gives NaN where it has no value.
#if defined(SARDONYX_KERNELS_SIMD_TRIGONOMETRY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_SIMD_TRIGONOMETRY_INL_H_
#undef SARDONYX_KERNELS_SIMD_TRIGONOMETRY_INL_H_
#else
#define SARDONYX_KERNELS_SIMD_TRIGONOMETRY_INL_H_
#endif

#include <hwy/highway.h>
#include <cmath>
#include <cstdint>

#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx {
namespace HWY_NAMESPACE {
namespace math {

// pi/2 in three parts, up to what magnitude they reduce numbers, and what rounds them.
template <class D>
struct HalfPi {
  static constexpr float parts[] = {1.57079637050628662109375f, -4.37113900018624283e-8f,
                                    -1.71512451e-15f};
  static constexpr float most = 30000.0f, rounds = rounder;
};
template <OfDoubles D>
struct HalfPi<D> {
  static constexpr double parts[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                     -0x1.f1976b7ed8fbcp-110};
  static constexpr double most = 67108864.0, rounds = 0x1.8p52;
};

// x as r + low within pi / 4, `low` being less than the last place of r, and a number of quarter
// turns, in the low bits of `quarter`.
template <class V, class I>
struct Reduced {
  V r, low;
  I quarter;
};

template <class D, class V>
HWY_INLINE auto Reduce(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto& half_pi = HalfPi<D>::parts;
  const V rounds = hn::Set(d, HalfPi<D>::rounds);
  const V part1 = hn::Set(d, half_pi[1]), part2 = hn::Set(d, half_pi[2]);
  const V biased = hn::MulAdd(x, hn::Set(d, 0.636619772367581343076), rounds);
  const V n = hn::Sub(biased, rounds);
  const V first = hn::NegMulAdd(n, hn::Set(d, half_pi[0]), x);
  const V r = hn::NegMulAdd(n, part2, hn::NegMulAdd(n, part1, first));
  // What rounding took: of n part1, of the difference, and of the rest.
  const V product = hn::Mul(n, part1), difference = hn::Sub(first, product);
  const V lost =
      hn::Sub(hn::Sub(hn::Sub(first, difference), product), hn::MulSub(n, part1, product));
  const V low = hn::NegMulAdd(n, part2, hn::Add(hn::Sub(difference, r), lost));
  const auto quarter = hn::BitCast(di, biased);
  return Reduced<V, decltype(hn::BitCast(di, biased))>{r, low, quarter};
}

template <class D, class I>
HWY_INLINE auto IsOdd(D d, I quarter) {
  const hn::RebindToSigned<D> di;
  return hn::RebindMask(d, hn::TestBit(quarter, hn::Set(di, 1)));
}

// (sin(r) - r) / r^3 by s = r^2.
template <class D, class V>
HWY_INLINE V SineTail(D d, V s) {
  if constexpr (OfDoubles<D>) {
    return Horner(d, s, -0.166666666666666657, 0.00833333333333332107, -0.000198412698412532259,
                  2.75573192132440282e-6, -2.50521046668227685e-8, 1.60583356232190944e-10,
                  -7.57716818282007733e-13);
  } else {
    return Horner(d, s, -0.16666654873f, 0.0083321735f, -0.00019516655f);
  }
}

// (cos(r) - 1 + s / 2) / s^2 by s = r^2.
template <class D, class V>
HWY_INLINE V CosineTail(D d, V s) {
  if constexpr (OfDoubles<D>) {
    return Horner(d, s, 0.041666666666666588, -0.00138888888888726069, 0.0000248015872884966039,
                  -2.75573140579090837e-7, 2.08756820643402453e-9, -1.13574584003555728e-11);
  } else {
    return Horner(d, s, 0.0416666466f, -0.00138873614f, 2.44377282e-5f);
  }
}

// (tan(r) - r) / r^3 by s = r^2.
template <class D, class V>
HWY_INLINE V TangentTail(D d, V s) {
  if constexpr (OfDoubles<D>) {
    return Horner(d, s, 0.333333333333333315, 0.133333333333340326, 0.0539682539677922429,
                  0.0218694885516158254, 0.00886323522122119296, 0.00359213205812990806,
                  0.00145579824542369581, 0.000590259568813864812, 0.000238040038041933201,
                  0.000100690915030612912, 0.0000295869874202768005, 0.0000341899320188775288,
                  -0.0000183125804795207574, 0.0000257341643757378691, -0.000012575856816974515,
                  4.53444020251661904e-6);
  } else {
    return Horner(d, s, 0.3333335221f, 0.1333261281f, 0.05406577885f, 0.02125104889f,
                  0.01091866195f, -1.806862019e-5f, 0.004430565517f);
  }
}

// sin(x) when Shift is 0, cos(x) when it is 1.
template <int Shift, class D, class V>
HWY_INLINE V SinOrCosReduced(D d, V x) {
  const hn::RebindToSigned<D> di;
  constexpr int sign_bit = 8 * sizeof(hn::TFromD<D>) - 1;
  const auto reduced = Reduce(d, x);
  const V r = reduced.r, s = hn::Mul(r, r);
  const V sine = hn::MulAdd(hn::Mul(r, s), SineTail(d, s), r);
  const V cosine =
      hn::MulAdd(hn::Mul(s, s), CosineTail(d, s), hn::MulAdd(s, hn::Set(d, -0.5), hn::Set(d, 1.0)));
  const auto quarter = hn::Add(reduced.quarter, hn::Set(di, Shift));
  const V sign = hn::BitCast(d, hn::ShiftLeft<sign_bit - 1>(hn::And(quarter, hn::Set(di, 2))));
  const V value = hn::Xor(hn::IfThenElse(IsOdd(d, quarter), cosine, sine), sign);
  if (Shift == 1) return value;
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, value);  // keeps the sign of zero
}

template <class D, class V>
HWY_INLINE V TanReduced(D d, V x) {
  const auto reduced = Reduce(d, x);
  const V r = reduced.r, s = hn::Mul(r, r), one = hn::Set(d, 1.0);
  const V tail = hn::Mul(hn::Mul(r, s), TangentTail(d, s));
  const V near = hn::Add(r, tail);
  const V t = hn::Add(r, hn::MulAdd(reduced.low, hn::MulAdd(near, near, one), tail));
  const auto odd = IsOdd(d, reduced.quarter);
  const V value = hn::Div(hn::IfThenElse(odd, hn::Neg(one), t), hn::IfThenElse(odd, t, one));
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, value);
}

// reduced() where all lanes of x can be reduced, else scalar(lane) for each. Without a fused
// multiply-add none can.
template <class D, class V, class F, class G>
HWY_INLINE V WhereReduced(D d, V x, F reduced, G scalar) {
  constexpr bool fused = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64;
  if constexpr (fused) {
    const V most = hn::Set(d, HalfPi<D>::most);
    if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), most)))) return reduced();
  }
  return EachLane(d, x, scalar);
}

constexpr double pi = 3.14159265358979323846;
constexpr double pi_beyond_double = 1.2246467991473531772e-16;

// What pi lacks as a number of the lanes' type.
template <class D>
constexpr double rest_of_pi() {
  if constexpr (OfDoubles<D>) return pi_beyond_double;
  return pi - static_cast<double>(static_cast<float>(pi));
}

// (atan(t) - t) / t^3 by s = t^2, for t within tan(pi / 8).
template <class D, class V>
HWY_INLINE V AtanTail(D d, V s) {
  if constexpr (OfDoubles<D>) {
    return Horner(d, s, -0.333333333333333259, 0.199999999999976502, -0.142857142853860336,
                  0.111111110880738592, -0.0909090814139012354, 0.0769228270004026493,
                  -0.0666622605513161881, 0.0587701636301272146, -0.0521837780117835603,
                  0.0450347236818514282, -0.0334733232300110858, 0.0151946170824687355);
  } else {
    return Horner(d, s, -0.3333331645f, 0.1999852806f, -0.1424439251f, 0.1059918851f,
                  -0.06090120599f);
  }
}

// (asin(t) - t) / t^3 by z = t^2, for t within 1/2.
template <class D, class V>
HWY_INLINE V AsinTail(D d, V z) {
  if constexpr (OfDoubles<D>) {
    return Horner(d, z, 0.166666666666666602, 0.0750000000000249772, 0.044642857139727668,
                  0.0303819446424113786, 0.0223721516790193545, 0.0173529435895662665,
                  0.0139618993947667313, 0.0115857069039762769, 0.0094839198037426041,
                  0.0100097164732442633, 0.000682589389551097481, 0.024825091148171094,
                  -0.0261474875984306111, 0.0336425128797555872);
  } else {
    return Horner(d, z, 0.1666665971f, 0.07500521839f, 0.04451373965f, 0.03183276579f,
                  0.01434096694f, 0.03767295927f);
  }
}

// An arc within 1/2 and the arc beyond it, of which asin and acos are made: asin(t) where |x| is no
// more than 1/2, else acos(|x|) / 2, which loses nothing next to 1.
template <class V, class M>
struct Arc {
  V arc;
  M beyond;
};

template <class D, class V>
HWY_INLINE auto ArcOf(D d, V x) {
  const V a = hn::Abs(x), half = hn::Set(d, 0.5);
  const auto beyond = hn::Gt(a, half);
  const V z = hn::IfThenElse(beyond, hn::NegMulAdd(a, half, half), hn::Mul(a, a));
  const V t = hn::IfThenElse(beyond, hn::Sqrt(z), a);
  return Arc<V, decltype(beyond)>{hn::MulAdd(hn::Mul(t, z), AsinTail(d, z), t), beyond};
}

}  // namespace math

template <class D, class V>
HWY_INLINE V Sin(D d, V x) {
  using T = math::hn::TFromD<D>;
  return math::WhereReduced(
      d, x, [=]() HWY_ATTR { return math::SinOrCosReduced<0>(d, x); },
      [](T v) { return static_cast<T>(std::sin(static_cast<double>(v))); });
}

template <class D, class V>
HWY_INLINE V Cos(D d, V x) {
  using T = math::hn::TFromD<D>;
  return math::WhereReduced(
      d, x, [=]() HWY_ATTR { return math::SinOrCosReduced<1>(d, x); },
      [](T v) { return static_cast<T>(std::cos(static_cast<double>(v))); });
}

template <class D, class V>
HWY_INLINE V Tan(D d, V x) {
  using T = math::hn::TFromD<D>;
  return math::WhereReduced(
      d, x, [=]() HWY_ATTR { return math::TanReduced(d, x); },
      [](T v) { return static_cast<T>(std::tan(static_cast<double>(v))); });
}

template <class D, class V>
HWY_INLINE V Asin(D d, V x) {
  using namespace math;
  const auto [arc, beyond] = ArcOf(d, x);
  const V other =
      hn::Sub(hn::Set(d, pi / 2), hn::Sub(hn::Add(arc, arc), hn::Set(d, rest_of_pi<D>() / 2)));
  return hn::CopySign(hn::IfThenElse(beyond, other, arc), x);
}

template <class D, class V>
HWY_INLINE V Acos(D d, V x) {
  using namespace math;
  const auto [arc, beyond] = ArcOf(d, x);
  const auto negative = hn::Lt(x, hn::Zero(d));
  // What is added to pi / 2, and what makes pi - y of y.
  const V near =
      hn::Sub(hn::Set(d, pi / 2), hn::Sub(hn::CopySign(arc, x), hn::Set(d, rest_of_pi<D>() / 2)));
  const V twice = hn::Add(arc, arc);
  const V turned = hn::Sub(hn::Set(d, pi), hn::Sub(twice, hn::Set(d, rest_of_pi<D>())));
  return hn::IfThenElse(beyond, hn::IfThenElse(negative, turned, twice), near);
}

template <class D, class V>
HWY_INLINE V Atan(D d, V x) {
  using namespace math;
  const V a = hn::Abs(x), one = hn::Set(d, 1.0);
  // atan(a) = pi / 4 + atan((a - 1) / (a + 1)) = pi / 2 - atan(1 / a).
  const auto middle = hn::Gt(a, hn::Set(d, 0.41421356237309505));
  const auto far = hn::Gt(a, hn::Set(d, 2.4142135623730950));
  const V above = hn::IfThenElse(far, hn::Set(d, -1.0), hn::IfThenElse(middle, hn::Sub(a, one), a));
  const V below = hn::IfThenElse(far, a, hn::IfThenElse(middle, hn::Add(a, one), one));
  const V turn = hn::IfThenElse(far, hn::Set(d, 1.0), hn::IfThenElseZero(middle, hn::Set(d, 0.5)));
  const V t = hn::Div(above, below);
  const V s = hn::Mul(t, t);
  const V arc = hn::MulAdd(hn::Mul(t, s), AtanTail(d, s), t);
  const V low = hn::MulAdd(turn, hn::Set(d, rest_of_pi<D>() / 2), arc);
  return hn::CopySign(hn::MulAdd(turn, hn::Set(d, pi / 2), low), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx
HWY_AFTER_NAMESPACE();

#endif
