// A constant matrix of DequantizeLinear with blocks, as MatMulNBits (com.microsoft) takes it.
#pragma once

#include "ir/tensor.h"

namespace sardonyx::passes {

// [rows, columns] of 2, 4 or 8 bits; scales and zeros (null: 0) [rows / block, columns].
struct BlockedMatrix {
  const Tensor* values = nullptr;
  const Tensor* scales = nullptr;
  const Tensor* zeros = nullptr;
  int64_t block = 0;  // rows of one

  int64_t rows() const { return values->shape()[0]; }
  int64_t columns() const { return values->shape()[1]; }
  int64_t blocks() const { return (rows() + block - 1) / block; }
};

// Whether types, shapes and block are such that MatMulNBits can take them.
bool fits_blocks(const BlockedMatrix& b);

// Each column's elements one after the other, signed ones raised by half their range.
Tensor columns_of_bits(const BlockedMatrix& b);
Tensor columns_of_scales(const BlockedMatrix& b);
// Without zeros, those of an unsigned matrix; MatMulNBits knows those of a signed one itself.
Tensor columns_of_zeros(const BlockedMatrix& b);

}  // namespace sardonyx::passes
