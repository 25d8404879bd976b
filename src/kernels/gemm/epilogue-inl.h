// Storing a tile of sums: scale, bias, residual, activation.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_GEMM_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_GEMM_EPILOGUE_INL_H_
#undef SARDONYX_KERNELS_GEMM_EPILOGUE_INL_H_
#else
#define SARDONYX_KERNELS_GEMM_EPILOGUE_INL_H_
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/gemm/epilogue.h"
#include "kernels/simd/masked-inl.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace math = sardonyx::HWY_NAMESPACE::math;

// The first `count` floats at p, the rest 0; touches nothing beyond them.
template <class D>
HWY_INLINE hn::Vec<D> LoadFirst(D d, const float* p, size_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return masked::Load(hn::FirstN(d, count), d, p);
#else
  HWY_ALIGN float lanes[hn::MaxLanes(D())] = {};
  for (size_t i = 0; i < count; ++i) lanes[i] = p[i];
  return hn::Load(d, lanes);
#endif
}

template <class D, class V>
HWY_INLINE void StoreFirst(D d, V v, float* p, size_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  masked::Store(v, hn::FirstN(d, count), d, p);
#else
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < count; ++i) p[i] = lanes[i];
#endif
}

template <class D, class V>
HWY_INLINE V Clamp(D d, V v, float low, float high) {
  return math::LowerTo(d, math::RaiseTo(d, v, low), high);
}

template <Activation activation, class D, class V>
HWY_INLINE V Activate(D d, V v, const Epilogue& e) {
  namespace simd = sardonyx::HWY_NAMESPACE;
  if constexpr (activation == Activation::relu) return math::RaiseTo(d, v, 0.0f);
  if constexpr (activation == Activation::clip) return Clamp(d, v, e.p0, e.p1);
  if constexpr (activation == Activation::leaky_relu) {
    return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Mul(v, hn::Set(d, e.p0)), v);
  }
  if constexpr (activation == Activation::hard_sigmoid) {
    return Clamp(d, hn::MulAdd(v, hn::Set(d, e.p0), hn::Set(d, e.p1)), 0.0f, 1.0f);
  }
  if constexpr (activation == Activation::hard_swish) {
    const V gate = hn::MulAdd(v, hn::Set(d, 1.0f / 6.0f), hn::Set(d, 0.5f));
    return hn::Mul(v, Clamp(d, gate, 0.0f, 1.0f));
  }
  if constexpr (activation == Activation::sigmoid) return simd::Sigmoid(d, v);
  if constexpr (activation == Activation::silu) return simd::Silu(d, v);
  if constexpr (activation == Activation::tanh) return simd::Tanh(d, v);
  if constexpr (activation == Activation::gelu_erf) {
    const V half = hn::Mul(v, hn::Set(d, 0.5f));
    return hn::MulAdd(half, simd::Erf(d, hn::Mul(v, hn::Set(d, 0.70710678118654752f))), half);
  }
  if constexpr (activation == Activation::gelu_tanh) {
    const V cubic = hn::MulAdd(hn::Mul(v, v), hn::Set(d, 0.035677408136300125f),
                               hn::Set(d, 0.79788456080286536f));
    const V half = hn::Mul(v, hn::Set(d, 0.5f));
    return hn::MulAdd(half, simd::Tanh(d, hn::Mul(v, cubic)), half);
  }
  return v;
}

// Calls f(std::integral_constant<Activation, a>()).
template <class F>
HWY_INLINE void WithActivation(Activation a, F&& f) {
#define SARDONYX_CASE(name) \
  case Activation::name: return f(std::integral_constant<Activation, Activation::name>());
  switch (a) {
    SARDONYX_CASE(none)
    SARDONYX_CASE(relu)
    SARDONYX_CASE(clip)
    SARDONYX_CASE(leaky_relu)
    SARDONYX_CASE(hard_sigmoid)
    SARDONYX_CASE(hard_swish)
    SARDONYX_CASE(sigmoid)
    SARDONYX_CASE(silu)
    SARDONYX_CASE(tanh)
    SARDONYX_CASE(gelu_erf)
    SARDONYX_CASE(gelu_tanh)
  }
#undef SARDONYX_CASE
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
