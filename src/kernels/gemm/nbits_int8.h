// Products of a few rows with 4-bit weights in whole numbers. Internal to kernels/gemm.
//
// 128 values of a row at a time become integers of 22 bits and a power of two, in three digits of
// eight bits; each digit's products with the weights are exact sums of bytes. What is lost is what
// 22 bits do not hold of the largest of those values, no more than sums of floats lose.
#pragma once

#include <cstdint>

#include "kernels/gemm/nbits.h"

namespace sardonyx::kernels {

// Whether this machine can and the matrix is of that kind.
bool digits_suit(const NBitsMatrix& b);

// Bytes that one row takes, aligned to 64.
int64_t digit_row_bytes(const NBitsMatrix& b);

// Writes the digits of a row of k values. False where they would not be precise: where one is no
// number or far above the others, or all are tiny. Then `out` holds nothing.
bool arrange_digits(const NBitsMatrix& b, const float* row, void* out);

// A few rows (1 to 4), arranged here one after the other, times some columns.
struct DigitJob {
  const void* rows = nullptr;
  int64_t begin = 0, end = 0;  // columns
  const float* bias = nullptr;
  float* y = nullptr;  // [rows, n]
};
void multiply_digits(const NBitsMatrix& b, int rows, const DigitJob& job);

}  // namespace sardonyx::kernels
