// The vector forms of the unary operators, for float and for double; compiled once for each
// instruction set.
#if defined(SARDONYX_KERNELS_ELEMENTWISE_UNARY_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_ELEMENTWISE_UNARY_LOOPS_INL_H_
#undef SARDONYX_KERNELS_ELEMENTWISE_UNARY_LOOPS_INL_H_
#else
#define SARDONYX_KERNELS_ELEMENTWISE_UNARY_LOOPS_INL_H_
#endif

#include <hwy/highway.h>
#include <cstdint>

#include "kernels/elementwise/float_ops-inl.h"
#include "kernels/elementwise/loops-inl.h"
#include "kernels/elementwise/unary.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

template <class T, auto op>
void UnaryLoop(const T* x, T* y, int64_t n, const UnaryParams& params) {
  const Constants<T> c{static_cast<T>(params.alpha), static_cast<T>(params.beta)};
  MapRow(x, y, n, [&](auto d, auto v) HWY_ATTR { return op(d, v, c); });
}

// Null for what is no function of floats to floats.
template <class T>
auto FindUnary(UnaryOp op) -> decltype(&UnaryLoop<T, abs_of>) {
  switch (op) {
    case UnaryOp::abs: return UnaryLoop<T, abs_of>;
    case UnaryOp::neg: return UnaryLoop<T, neg_of>;
    case UnaryOp::exp: return UnaryLoop<T, exp_of>;
    case UnaryOp::log: return UnaryLoop<T, log_of>;
    case UnaryOp::sqrt: return UnaryLoop<T, sqrt_of>;
    case UnaryOp::reciprocal: return UnaryLoop<T, reciprocal_of>;
    case UnaryOp::floor: return UnaryLoop<T, floor_of>;
    case UnaryOp::ceil: return UnaryLoop<T, ceil_of>;
    case UnaryOp::round: return UnaryLoop<T, round_of>;
    case UnaryOp::sign: return UnaryLoop<T, sign_of>;
    case UnaryOp::relu: return UnaryLoop<T, relu_of>;
    case UnaryOp::leaky_relu: return UnaryLoop<T, leaky_relu_of>;
    case UnaryOp::elu: return UnaryLoop<T, elu_of>;
    case UnaryOp::celu: return UnaryLoop<T, celu_of>;
    case UnaryOp::selu: return UnaryLoop<T, selu_of>;
    case UnaryOp::gelu: return UnaryLoop<T, gelu_of>;
    case UnaryOp::gelu_tanh: return UnaryLoop<T, gelu_tanh_of>;
    case UnaryOp::sigmoid: return UnaryLoop<T, sigmoid_of>;
    case UnaryOp::tanh: return UnaryLoop<T, tanh_of>;
    case UnaryOp::hard_sigmoid: return UnaryLoop<T, hard_sigmoid_of>;
    case UnaryOp::hard_swish: return UnaryLoop<T, hard_swish_of>;
    case UnaryOp::mish: return UnaryLoop<T, mish_of>;
    case UnaryOp::softplus: return UnaryLoop<T, softplus_of>;
    case UnaryOp::softsign: return UnaryLoop<T, softsign_of>;
    case UnaryOp::thresholded_relu: return UnaryLoop<T, thresholded_relu_of>;
    case UnaryOp::shrink: return UnaryLoop<T, shrink_of>;
    case UnaryOp::swish: return UnaryLoop<T, swish_of>;
    case UnaryOp::erf: return UnaryLoop<T, erf_of>;
    case UnaryOp::sin: return UnaryLoop<T, sin_of>;
    case UnaryOp::cos: return UnaryLoop<T, cos_of>;
    case UnaryOp::tan: return UnaryLoop<T, tan_of>;
    case UnaryOp::asin: return UnaryLoop<T, asin_of>;
    case UnaryOp::acos: return UnaryLoop<T, acos_of>;
    case UnaryOp::atan: return UnaryLoop<T, atan_of>;
    case UnaryOp::sinh: return UnaryLoop<T, sinh_of>;
    case UnaryOp::cosh: return UnaryLoop<T, cosh_of>;
    case UnaryOp::asinh: return UnaryLoop<T, asinh_of>;
    case UnaryOp::acosh: return UnaryLoop<T, acosh_of>;
    case UnaryOp::atanh: return UnaryLoop<T, atanh_of>;
    case UnaryOp::clamp: return UnaryLoop<T, clamp_of>;
    case UnaryOp::square: return UnaryLoop<T, square_of>;
    default: return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
