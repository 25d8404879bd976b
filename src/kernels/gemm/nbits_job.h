// Internal to kernels/gemm/nbits.cc, which is compiled once for each instruction set.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// A few rows times all of some columns. The rows are arranged as the bytes of a column have their
// elements.
struct NBitsJob {
  const float* rows = nullptr;
  int64_t row_stride = 0;
  int64_t begin = 0, end = 0;  // columns
  const float* bias = nullptr;
  float* y = nullptr;  // [rows, n]
};

}  // namespace sardonyx::kernels
