// Products of a few rows with 4-bit weights in whole numbers. Internal to kernels/gemm.
//
// 128 values of a row at a time become integers of 22 bits and a power of two, in three digits of
// eight bits; each digit's products with the weights are exact sums of bytes. What is lost is what
// 22 bits do not hold of the largest of those values, no more than sums of floats lose.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/gemm/nbits.h"

namespace sardonyx::kernels {

// What one is worth in the digits of some values: a power of two, so that nothing is lost but what
// is below the last bit.
struct DigitScale {
  static constexpr int value_bits = 22;
  // Values that digits hold less precisely than their sums in float would be: what is tiny, and
  // what stands beside one that is larger than all the others together.
  static constexpr float min_largest = 1e-30f;

  // Of values none of which is infinite or no number: the largest of their sizes, and all together.
  DigitScale(float largest, float total)
      : precise((largest == 0 || largest >= min_largest) && largest <= total / 2) {
    const int exponent = std::max(
        static_cast<int>(std::bit_cast<uint32_t>(largest) >> 23) - 127 + 1 - value_bits, -125);
    worth = power(exponent), inverse = power(-exponent);
  }
  static float power(int exponent) {
    return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  }

  bool precise;
  float worth = 0, inverse = 0;
};

// How far ahead of the columns that are multiplied together others are fetched: so many times as
// many.
constexpr int64_t columns_ahead = 6;

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
