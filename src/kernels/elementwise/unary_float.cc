// The float32 forms of the unary operators.
#include "kernels/elementwise/float_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/unary_float.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/unary_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

UnaryTile FindFloat(UnaryOp op) { return FindUnary<float>(op); }

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(FindFloat);

UnaryTile vector_unary(UnaryOp op) { return HWY_DYNAMIC_DISPATCH(FindFloat)(op); }

}  // namespace sardonyx::kernels
#endif
