// Unary operators of float64 that have a vector form. Inside elementwise/ only.
#pragma once

#include <cstdint>

#include "kernels/elementwise/unary.h"

namespace sardonyx::kernels {

// y may be x. Null where there is none.
using DoubleUnary = void (*)(const double* x, double* y, int64_t n, const UnaryParams& params);
DoubleUnary double_unary(UnaryOp op);

}  // namespace sardonyx::kernels
