// Softmax of rows that registers hold. Reductions add in an order that depends on n and the
// instruction set alone. `y` may be `x`.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// y [rows, n]: the softmax of each row of x, several at a time. False, and nothing done, where n is
// not 2 to 8.
bool softmax_narrow_rows(const float* x, float* y, int64_t rows, int64_t n);
// y [rows, n]: the logarithm of the softmax of each row of x. False, and nothing done, where a row
// does not fit into the registers.
bool log_softmax_short_rows(const float* x, float* y, int64_t rows, int64_t n);
// y [rows, n]: the softmax of each row of x. False, and nothing done, where a row does not fit into
// the registers. `sums`, where it is not null, gets each row's sum of exponentials relative to its
// largest element; a row of nothing but -inf becomes zeros then, and its sum 0, instead of NaN.
bool softmax_short_rows(const float* x, float* y, int64_t rows, int64_t n, float* sums = nullptr);

}  // namespace sardonyx::kernels
