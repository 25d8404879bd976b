#include "kernels/elementwise/binary_plain.h"

namespace sardonyx::kernels {

template <>
PlainRow plain_binary<int8_t>(BinaryOp op) {
  return any_plain<int8_t>(op);
}

template <>
PlainRow plain_binary<int16_t>(BinaryOp op) {
  return any_plain<int16_t>(op);
}

template <>
PlainRow plain_binary<int32_t>(BinaryOp op) {
  return any_plain<int32_t>(op);
}

template <>
PlainRow plain_binary<int64_t>(BinaryOp op) {
  return any_plain<int64_t>(op);
}

}  // namespace sardonyx::kernels
