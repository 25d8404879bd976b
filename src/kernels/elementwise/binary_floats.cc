#include "kernels/elementwise/binary_plain.h"

namespace sardonyx::kernels {

template <>
PlainRow plain_binary<float>(BinaryOp op) {
  return any_plain<float>(op);
}

template <>
PlainRow plain_binary<double>(BinaryOp op) {
  return any_plain<double>(op);
}

}  // namespace sardonyx::kernels
