#include "kernels/elementwise/binary_plain.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/binary_unsigned.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/binary_plain-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

PlainRow PlainUint8(BinaryOp op) { return any_plain<uint8_t>(op); }
PlainRow PlainUint16(BinaryOp op) { return any_plain<uint16_t>(op); }
PlainRow PlainUint32(BinaryOp op) { return any_plain<uint32_t>(op); }
PlainRow PlainUint64(BinaryOp op) { return any_plain<uint64_t>(op); }

PlainRow BooleanRow(BinaryOp op) {
  switch (op) {
    case BinaryOp::logical_and:
      return arithmetic_row<uint8_t>([](uint8_t a, uint8_t b) { return (a != 0) & (b != 0); });
    case BinaryOp::logical_or:
      return arithmetic_row<uint8_t>([](uint8_t a, uint8_t b) { return (a | b) != 0; });
    case BinaryOp::logical_xor:
      return arithmetic_row<uint8_t>([](uint8_t a, uint8_t b) { return (a != 0) != (b != 0); });
    case BinaryOp::equal:
      return arithmetic_row<uint8_t>([](uint8_t a, uint8_t b) { return (a != 0) == (b != 0); });
    default: return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(PlainUint8);
HWY_EXPORT(PlainUint16);
HWY_EXPORT(PlainUint32);
HWY_EXPORT(PlainUint64);
HWY_EXPORT(BooleanRow);

template <>
PlainRow plain_binary<uint8_t>(BinaryOp op) {
  return HWY_DYNAMIC_DISPATCH(PlainUint8)(op);
}

template <>
PlainRow plain_binary<uint16_t>(BinaryOp op) {
  return HWY_DYNAMIC_DISPATCH(PlainUint16)(op);
}

template <>
PlainRow plain_binary<uint32_t>(BinaryOp op) {
  return HWY_DYNAMIC_DISPATCH(PlainUint32)(op);
}

template <>
PlainRow plain_binary<uint64_t>(BinaryOp op) {
  return HWY_DYNAMIC_DISPATCH(PlainUint64)(op);
}

PlainRow boolean_row(BinaryOp op) { return HWY_DYNAMIC_DISPATCH(BooleanRow)(op); }

}  // namespace sardonyx::kernels
#endif
