// The element-wise operators of float32 and float64 as functions of vectors; compiled once for each
// instruction set.
#if defined(SARDONYX_KERNELS_ELEMENTWISE_FLOAT_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_ELEMENTWISE_FLOAT_OPS_INL_H_
#undef SARDONYX_KERNELS_ELEMENTWISE_FLOAT_OPS_INL_H_
#else
#define SARDONYX_KERNELS_ELEMENTWISE_FLOAT_OPS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd/double_math-inl.h"
#include "kernels/simd/hyperbolic-inl.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/trigonometry-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = sardonyx::HWY_NAMESPACE;

// Each operator of two inputs as a function of a vector tag and two vectors.
constexpr auto add_of = [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
constexpr auto sub_of = [](auto, auto a, auto b) HWY_ATTR { return hn::Sub(a, b); };
constexpr auto mul_of = [](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); };
constexpr auto div_of = [](auto, auto a, auto b) HWY_ATTR { return hn::Div(a, b); };
// NaN where either is. Both instructions of x86 give their second operand, here a, where one of the
// two is NaN; so does a comparison, which is false then.
constexpr auto min_of = [](auto, auto a, auto b) HWY_ATTR {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::IfThenElse(hn::IsNaN(b), b, hn::Min(b, a));
#else
  return hn::IfThenElse(hn::IsNaN(b), b, hn::IfThenElse(hn::Lt(b, a), b, a));
#endif
};
constexpr auto max_of = [](auto, auto a, auto b) HWY_ATTR {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::IfThenElse(hn::IsNaN(b), b, hn::Max(b, a));
#else
  return hn::IfThenElse(hn::IsNaN(b), b, hn::IfThenElse(hn::Gt(b, a), b, a));
#endif
};
constexpr auto prelu_of = [](auto d, auto a, auto b) HWY_ATTR {
  return hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Mul(a, b), a);
};
constexpr auto gate_of = [](auto d, auto a, auto b)
                             HWY_ATTR { return hn::IfThenElseZero(hn::Gt(a, hn::Zero(d)), b); };

// alpha and beta are what UnaryParams says of the operator.
template <class T>
struct Constants {
  T alpha;
  T beta;
};

// Each operator as a function of a vector tag and a vector.
constexpr auto abs_of = [](auto, auto x, const auto&) HWY_ATTR { return hn::Abs(x); };
constexpr auto neg_of = [](auto, auto x, const auto&) HWY_ATTR { return hn::Neg(x); };
constexpr auto exp_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Exp(d, x); };
constexpr auto log_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Log(d, x); };
constexpr auto sqrt_of = [](auto, auto x, const auto&) HWY_ATTR { return hn::Sqrt(x); };
constexpr auto reciprocal_of = [](auto d, auto x, const auto&)
                                   HWY_ATTR { return hn::Div(hn::Set(d, 1.0), x); };
// Zeros keep the sign, which Highway's functions without vectors lose.
constexpr auto floor_of = [](auto, auto x, const auto&)
                              HWY_ATTR { return hn::CopySign(hn::Floor(x), x); };
constexpr auto ceil_of = [](auto, auto x, const auto&)
                             HWY_ATTR { return hn::CopySign(hn::Ceil(x), x); };
constexpr auto round_of = [](auto, auto x, const auto&)
                              HWY_ATTR { return hn::CopySign(hn::Round(x), x); };
constexpr auto square_of = [](auto, auto x, const auto&) HWY_ATTR { return hn::Mul(x, x); };
constexpr auto sigmoid_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Sigmoid(d, x); };
constexpr auto tanh_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Tanh(d, x); };
constexpr auto erf_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Erf(d, x); };
constexpr auto sin_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Sin(d, x); };
constexpr auto cos_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Cos(d, x); };
constexpr auto tan_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Tan(d, x); };
constexpr auto asin_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Asin(d, x); };
constexpr auto acos_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Acos(d, x); };
constexpr auto atan_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Atan(d, x); };
constexpr auto sinh_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Sinh(d, x); };
constexpr auto cosh_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Cosh(d, x); };
constexpr auto asinh_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Asinh(d, x); };
constexpr auto acosh_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Acosh(d, x); };
constexpr auto atanh_of = [](auto d, auto x, const auto&) HWY_ATTR { return sm::Atanh(d, x); };
constexpr auto relu_of = [](auto d, auto x, const auto&)
                             HWY_ATTR { return sm::math::RaiseTo(d, x, 0.0); };
constexpr auto clamp_of = [](auto d, auto x, const auto& c) HWY_ATTR {
  return sm::math::LowerTo(d, sm::math::RaiseTo(d, x, c.alpha), c.beta);
};
constexpr auto leaky_relu_of = [](auto d, auto x, const auto& c) HWY_ATTR {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, c.alpha)), x);
};
constexpr auto elu_of = [](auto d, auto x, const auto& c) HWY_ATTR {
  const auto below = hn::Mul(sm::Expm1(d, x), hn::Set(d, c.alpha));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x);
};
constexpr auto celu_of = [](auto d, auto x, const auto& c) HWY_ATTR {
  const auto below = hn::Mul(sm::Expm1(d, hn::Div(x, hn::Set(d, c.alpha))), hn::Set(d, c.alpha));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x);
};
constexpr auto selu_of = [](auto d, auto x, const auto& c) HWY_ATTR {
  const auto below = hn::Mul(sm::Expm1(d, x), hn::Set(d, c.alpha));
  return hn::Mul(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x), hn::Set(d, c.beta));
};
constexpr auto gelu_of = [](auto d, auto x, const auto&) HWY_ATTR {
  const auto half = hn::Mul(x, hn::Set(d, 0.5));
  return hn::MulAdd(half, sm::Erf(d, hn::Mul(x, hn::Set(d, 0.70710678118654752440))), half);
};
constexpr auto gelu_tanh_of = [](auto d, auto x, const auto&) HWY_ATTR {
  const auto cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715), x);
  const auto half = hn::Mul(x, hn::Set(d, 0.5));
  return hn::MulAdd(half, sm::Tanh(d, hn::Mul(cubic, hn::Set(d, 0.79788456080286535588))), half);
};
constexpr auto hard_sigmoid_of = [](auto d, auto x, const auto& c) HWY_ATTR {
  const auto line = hn::MulAdd(x, hn::Set(d, c.alpha), hn::Set(d, c.beta));
  return sm::math::LowerTo(d, sm::math::RaiseTo(d, line, 0.0), 1.0);
};
constexpr auto hard_swish_of = [](auto d, auto x, const auto&) HWY_ATTR {
  const auto line = hn::MulAdd(x, hn::Set(d, 1.0 / 6.0), hn::Set(d, 0.5));
  return hn::Mul(x, sm::math::LowerTo(d, sm::math::RaiseTo(d, line, 0.0), 1.0));
};
constexpr auto mish_of = [](auto d, auto x, const auto&) HWY_ATTR {
  // tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2), e = exp(x); 1 from 20 on.
  const auto e = sm::Exp(d, sm::math::LowerTo(d, x, 20.0));
  const auto n = hn::MulAdd(e, e, hn::Add(e, e));
  return hn::Mul(x, hn::Div(n, hn::Add(n, hn::Set(d, 2.0))));
};
constexpr auto softplus_of = [](auto d, auto x, const auto&) HWY_ATTR {
  const auto tail = sm::Log1p(d, sm::ExpNotPositive(d, hn::Neg(hn::Abs(x))));
  return hn::Add(sm::math::RaiseTo(d, x, 0.0), tail);
};
constexpr auto softsign_of = [](auto d, auto x, const auto&) HWY_ATTR {
  return hn::Div(x, hn::Add(hn::Abs(x), hn::Set(d, 1.0)));
};
constexpr auto thresholded_relu_of = [](auto d, auto x, const auto& c) HWY_ATTR {
  return hn::IfThenElseZero(hn::Gt(x, hn::Set(d, c.alpha)), x);
};
constexpr auto shrink_of = [](auto d, auto x, const auto& c) HWY_ATTR {
  const auto limit = hn::Set(d, c.alpha);
  const auto bias = hn::Set(d, c.beta);
  const auto above = hn::IfThenElseZero(hn::Gt(x, limit), hn::Sub(x, bias));
  return hn::IfThenElse(hn::Lt(x, hn::Neg(limit)), hn::Add(x, bias), above);
};
constexpr auto swish_of = [](auto d, auto x, const auto& c) HWY_ATTR {
  return hn::Mul(x, sm::Sigmoid(d, hn::Mul(x, hn::Set(d, c.alpha))));
};
constexpr auto sign_of = [](auto d, auto x, const auto&) HWY_ATTR {
  const auto zero = hn::Zero(d);
  const auto one = hn::CopySign(hn::Set(d, 1.0), x);
  const auto ordinary = hn::Or(hn::Lt(x, zero), hn::Gt(x, zero));
  return hn::IfThenElse(ordinary, one, hn::Add(x, zero));  // NaN stays, -0 is 0
};

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
