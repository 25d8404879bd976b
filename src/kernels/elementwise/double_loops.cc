#include "kernels/elementwise/double_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/double_loops.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/double_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = sardonyx::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

template <class F>
HWY_INLINE void MapDoubles(const double* x, double* y, int64_t n, const F& f) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    hn::BlendedStore(f(d, hn::MaskedLoad(some, d, x + i)), some, d, y + i);
  }
}

// What takes no parameters.
template <auto op>
void DoubleLoop(const double* x, double* y, int64_t n, const UnaryParams&) {
  MapDoubles(x, y, n, op);
}
// What takes alpha and beta as vectors.
template <auto op>
void DoubleLoopBy(const double* x, double* y, int64_t n, const UnaryParams& params) {
  const V alpha = hn::Set(D(), params.alpha), beta = hn::Set(D(), params.beta);
  MapDoubles(x, y, n, [=](D d, V v) HWY_ATTR { return op(d, v, alpha, beta); });
}

constexpr auto abs_of = [](D, V x) HWY_ATTR { return hn::Abs(x); };
constexpr auto neg_of = [](D, V x) HWY_ATTR { return hn::Neg(x); };
constexpr auto exp_of = [](D d, V x) HWY_ATTR { return sm::DoubleExp(d, x); };
constexpr auto sqrt_of = [](D, V x) HWY_ATTR { return hn::Sqrt(x); };
constexpr auto reciprocal_of = [](D d, V x) HWY_ATTR { return hn::Div(hn::Set(d, 1.0), x); };
constexpr auto floor_of = [](D, V x) HWY_ATTR { return hn::Floor(x); };
constexpr auto ceil_of = [](D, V x) HWY_ATTR { return hn::Ceil(x); };
constexpr auto round_of = [](D, V x) HWY_ATTR { return hn::Round(x); };
constexpr auto square_of = [](D, V x) HWY_ATTR { return hn::Mul(x, x); };
constexpr auto sigmoid_of = [](D d, V x) HWY_ATTR { return sm::DoubleSigmoid(d, x); };
constexpr auto relu_of = [](D d, V x) HWY_ATTR {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
};
constexpr auto leaky_relu_of = [](D d, V x, V alpha, V) HWY_ATTR {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, alpha), x);
};
constexpr auto clamp_of = [](D, V x, V alpha, V beta) HWY_ATTR {
  const V raised = hn::IfThenElse(hn::Lt(x, alpha), alpha, x);
  return hn::IfThenElse(hn::Gt(raised, beta), beta, raised);
};
constexpr auto thresholded_relu_of = [](D d, V x, V alpha, V) HWY_ATTR {
  return hn::IfThenElse(hn::Gt(x, alpha), x, hn::Zero(d));
};

DoubleUnary FindDoubleUnary(UnaryOp op) {
  switch (op) {
    case UnaryOp::abs: return DoubleLoop<abs_of>;
    case UnaryOp::neg: return DoubleLoop<neg_of>;
    case UnaryOp::exp: return DoubleLoop<exp_of>;
    case UnaryOp::sqrt: return DoubleLoop<sqrt_of>;
    case UnaryOp::reciprocal: return DoubleLoop<reciprocal_of>;
    case UnaryOp::floor: return DoubleLoop<floor_of>;
    case UnaryOp::ceil: return DoubleLoop<ceil_of>;
    case UnaryOp::round: return DoubleLoop<round_of>;
    case UnaryOp::square: return DoubleLoop<square_of>;
    case UnaryOp::sigmoid: return DoubleLoop<sigmoid_of>;
    case UnaryOp::relu: return DoubleLoop<relu_of>;
    case UnaryOp::leaky_relu: return DoubleLoopBy<leaky_relu_of>;
    case UnaryOp::clamp: return DoubleLoopBy<clamp_of>;
    case UnaryOp::thresholded_relu: return DoubleLoopBy<thresholded_relu_of>;
    default: return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(FindDoubleUnary);

DoubleUnary double_unary(UnaryOp op) { return HWY_DYNAMIC_DISPATCH(FindDoubleUnary)(op); }

}  // namespace sardonyx::kernels
#endif
