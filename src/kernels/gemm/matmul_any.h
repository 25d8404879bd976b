// Matrix products of the element types that have no tuned kernel: float64 and the wide integers.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/gemm/gemm.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

bool supports_matmul_any(ElementType type);  // float64, int32, int64, uint32, uint64

// Strides of one operand, in elements.
struct AnyMatrix {
  const void* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
};

// C = A * B for each product of the batch; C is dense in its rows. Integers wrap.
void matmul_any(ElementType type, const GemmBatch& batch, int64_t M, int64_t N, int64_t K,
                const AnyMatrix& a, const AnyMatrix& b, void* c, int64_t ldc, ThreadPool& pool);

// y = alpha * y + beta * c for M x N; c (may be null) has these strides, 0 repeats. Integers wrap;
// what is no whole number scales them in double, rounded towards zero.
void scale_and_add(ElementType type, int64_t M, int64_t N, double alpha, double beta, const void* c,
                   int64_t c_row_stride, int64_t c_column_stride, void* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
