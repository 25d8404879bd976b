// The vector forms of operators on float32 and float64; inside elementwise/ only. Null where there
// is none.
#pragma once

#include "kernels/elementwise/binary.h"
#include "kernels/elementwise/unary.h"

namespace sardonyx::kernels {

using DoubleUnary = void (*)(const double* x, double* y, int64_t n, const UnaryParams& params);

// y may be x.
UnaryTile vector_unary(UnaryOp op);
DoubleUnary double_unary(UnaryOp op);
BinaryTile vector_binary(BinaryOp op, Sides sides);

}  // namespace sardonyx::kernels
