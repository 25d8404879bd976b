#include "kernels/elementwise/binary_plain.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/binary_signed.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/binary_plain-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

PlainRow PlainInt8(BinaryOp op) { return any_plain<int8_t>(op); }
PlainRow PlainInt16(BinaryOp op) { return any_plain<int16_t>(op); }
PlainRow PlainInt32(BinaryOp op) { return any_plain<int32_t>(op); }
PlainRow PlainInt64(BinaryOp op) { return any_plain<int64_t>(op); }

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(PlainInt8);
HWY_EXPORT(PlainInt16);
HWY_EXPORT(PlainInt32);
HWY_EXPORT(PlainInt64);

template <>
PlainRow plain_binary<int8_t>(BinaryOp op) {
  const PlainRow row = HWY_DYNAMIC_DISPATCH(PlainInt8)(op);
  return row != nullptr ? row : plain_binary<uint8_t>(op);
}

template <>
PlainRow plain_binary<int16_t>(BinaryOp op) {
  const PlainRow row = HWY_DYNAMIC_DISPATCH(PlainInt16)(op);
  return row != nullptr ? row : plain_binary<uint16_t>(op);
}

template <>
PlainRow plain_binary<int32_t>(BinaryOp op) {
  const PlainRow row = HWY_DYNAMIC_DISPATCH(PlainInt32)(op);
  return row != nullptr ? row : plain_binary<uint32_t>(op);
}

template <>
PlainRow plain_binary<int64_t>(BinaryOp op) {
  const PlainRow row = HWY_DYNAMIC_DISPATCH(PlainInt64)(op);
  return row != nullptr ? row : plain_binary<uint64_t>(op);
}

}  // namespace sardonyx::kernels
#endif
