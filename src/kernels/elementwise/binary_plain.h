// The plain loops of binary operators; inside elementwise/ only.
#pragma once

#include <cstdint>

#include "kernels/elementwise/binary.h"

namespace sardonyx::kernels {

// One row: inputs begin at a and b and step by sa and sb elements (0 or 1).
using PlainRow = void (*)(const void* a, const void* b, void* y, int64_t n, int64_t sa, int64_t sb);

// Null where the operator does not take the type. Instantiated in binary_*.cc.
template <class T>
PlainRow plain_binary(BinaryOp op);
template <>
PlainRow plain_binary<float>(BinaryOp op);
template <>
PlainRow plain_binary<double>(BinaryOp op);
template <>
PlainRow plain_binary<int8_t>(BinaryOp op);
template <>
PlainRow plain_binary<int16_t>(BinaryOp op);
template <>
PlainRow plain_binary<int32_t>(BinaryOp op);
template <>
PlainRow plain_binary<int64_t>(BinaryOp op);
template <>
PlainRow plain_binary<uint8_t>(BinaryOp op);
template <>
PlainRow plain_binary<uint16_t>(BinaryOp op);
template <>
PlainRow plain_binary<uint32_t>(BinaryOp op);
template <>
PlainRow plain_binary<uint64_t>(BinaryOp op);

// The logical operators and equality of booleans, which are bytes of which any but 0 is true.
PlainRow boolean_row(BinaryOp op);

}  // namespace sardonyx::kernels
