#include "kernels/elementwise/binary_plain.h"

namespace sardonyx::kernels {

template <>
PlainRow plain_binary<uint8_t>(BinaryOp op) {
  return any_plain<uint8_t>(op);
}

template <>
PlainRow plain_binary<uint16_t>(BinaryOp op) {
  return any_plain<uint16_t>(op);
}

template <>
PlainRow plain_binary<uint32_t>(BinaryOp op) {
  return any_plain<uint32_t>(op);
}

template <>
PlainRow plain_binary<uint64_t>(BinaryOp op) {
  return any_plain<uint64_t>(op);
}

}  // namespace sardonyx::kernels
