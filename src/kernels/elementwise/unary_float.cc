// The float32 forms of the unary operators that have a vector form.
#include <cstdint>

#include "kernels/elementwise/float_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/unary_float.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/float_ops-inl.h"
#include "kernels/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
template <auto op>
void UnaryLoop(const float* x, float* y, int64_t n, const UnaryParams& params) {
  const Constants c{static_cast<float>(params.alpha), static_cast<float>(params.beta)};
  MapRow(x, y, n, [&](auto d, auto v) HWY_ATTR { return op(d, v, c); });
}

UnaryTile FindUnary(UnaryOp op) {
  switch (op) {
    case UnaryOp::abs: return UnaryLoop<abs_of>;
    case UnaryOp::neg: return UnaryLoop<neg_of>;
    case UnaryOp::exp: return UnaryLoop<exp_of>;
    case UnaryOp::log: return UnaryLoop<log_of>;
    case UnaryOp::sqrt: return UnaryLoop<sqrt_of>;
    case UnaryOp::reciprocal: return UnaryLoop<reciprocal_of>;
    case UnaryOp::floor: return UnaryLoop<floor_of>;
    case UnaryOp::ceil: return UnaryLoop<ceil_of>;
    case UnaryOp::round: return UnaryLoop<round_of>;
    case UnaryOp::sign: return UnaryLoop<sign_of>;
    case UnaryOp::relu: return UnaryLoop<relu_of>;
    case UnaryOp::leaky_relu: return UnaryLoop<leaky_relu_of>;
    case UnaryOp::elu: return UnaryLoop<elu_of>;
    case UnaryOp::celu: return UnaryLoop<celu_of>;
    case UnaryOp::selu: return UnaryLoop<selu_of>;
    case UnaryOp::gelu: return UnaryLoop<gelu_of>;
    case UnaryOp::gelu_tanh: return UnaryLoop<gelu_tanh_of>;
    case UnaryOp::sigmoid: return UnaryLoop<sigmoid_of>;
    case UnaryOp::tanh: return UnaryLoop<tanh_of>;
    case UnaryOp::hard_sigmoid: return UnaryLoop<hard_sigmoid_of>;
    case UnaryOp::hard_swish: return UnaryLoop<hard_swish_of>;
    case UnaryOp::mish: return UnaryLoop<mish_of>;
    case UnaryOp::softplus: return UnaryLoop<softplus_of>;
    case UnaryOp::softsign: return UnaryLoop<softsign_of>;
    case UnaryOp::thresholded_relu: return UnaryLoop<thresholded_relu_of>;
    case UnaryOp::shrink: return UnaryLoop<shrink_of>;
    case UnaryOp::swish: return UnaryLoop<swish_of>;
    case UnaryOp::erf: return UnaryLoop<erf_of>;
    case UnaryOp::sin: return UnaryLoop<sin_of>;
    case UnaryOp::cos: return UnaryLoop<cos_of>;
    case UnaryOp::clamp: return UnaryLoop<clamp_of>;
    case UnaryOp::square: return UnaryLoop<square_of>;
    default: return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(FindUnary);

UnaryTile vector_unary(UnaryOp op) { return HWY_DYNAMIC_DISPATCH(FindUnary)(op); }

}  // namespace sardonyx::kernels
#endif
