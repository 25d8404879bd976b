// The float64 forms of the unary operators.
#include "kernels/elementwise/float_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/unary_double.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/unary_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

DoubleUnary FindDouble(UnaryOp op) { return FindUnary<double>(op); }

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(FindDouble);

DoubleUnary double_unary(UnaryOp op) { return HWY_DYNAMIC_DISPATCH(FindDouble)(op); }

}  // namespace sardonyx::kernels
#endif
