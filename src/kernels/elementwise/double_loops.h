// Element-wise loops over float64 that have a vector form. Inside elementwise/ only.
#pragma once

#include <cstdint>

#include "kernels/elementwise/binary.h"
#include "kernels/elementwise/unary.h"

namespace sardonyx::kernels {

// y may be x. Null where there is none.
using DoubleUnary = void (*)(const double* x, double* y, int64_t n, const UnaryParams& params);
DoubleUnary double_unary(UnaryOp op);

// Both sides dense; y may be one of them. Null where there is none.
using DoubleBinary = void (*)(const double* a, const double* b, double* y, int64_t n);
DoubleBinary double_binary(BinaryOp op);

}  // namespace sardonyx::kernels
