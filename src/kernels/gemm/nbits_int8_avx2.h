// What nbits_int8.h declares, where a processor has AVX2 and no dot products of bytes (VNNI):
// products of neighbouring bytes are added in 16 bits, which hold those of 4-bit weights. Internal
// to kernels/gemm; for x86-64.
#pragma once

#include "kernels/gemm/nbits_int8.h"

namespace sardonyx::kernels {

bool pair_digits_suit(const NBitsMatrix& b);
int64_t pair_digit_row_bytes(const NBitsMatrix& b);
bool arrange_pair_digits(const NBitsMatrix& b, const float* row, void* out);
void multiply_pair_digits(const NBitsMatrix& b, int rows, const DigitJob& job);

}  // namespace sardonyx::kernels
