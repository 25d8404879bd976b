#include "kernels/elementwise/binary_plain.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/binary_floats.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/binary_plain-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

PlainRow PlainFloat(BinaryOp op) { return any_plain<float>(op); }
PlainRow PlainDouble(BinaryOp op) { return any_plain<double>(op); }

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(PlainFloat);
HWY_EXPORT(PlainDouble);

template <>
PlainRow plain_binary<float>(BinaryOp op) {
  return HWY_DYNAMIC_DISPATCH(PlainFloat)(op);
}

template <>
PlainRow plain_binary<double>(BinaryOp op) {
  return HWY_DYNAMIC_DISPATCH(PlainDouble)(op);
}

}  // namespace sardonyx::kernels
#endif
