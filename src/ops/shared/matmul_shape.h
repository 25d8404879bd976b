// The shapes of MatMul and its integer forms.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "ops/infer_context.h"

namespace sardonyx::ops {

// How Transpose would take the dimensions of two factors first; empty: as they are.
struct Perms {
  std::span<const int64_t> a, b;
};

// The output shape of inputs `a` times `b`; nullopt where a rank is unknown.
std::optional<Dims> matmul_output(InferContext& ctx, int a, int b, const Perms& perms = {});

// One product, or a batch of them, after the dimensions that allow it have been merged.
struct MatMulPlan {
  int64_t M = 1, N = 1, K = 1;
  int64_t lda = 0, ldb = 0;
  int64_t a_column = 1, b_column = 1;  // from one column to the next; 1 without perms
  kernels::GemmBatch batch;

  kernels::StridedMatrix a(const float* data) const { return {data, lda, a_column}; }
  kernels::StridedMatrix b(const float* data) const { return {data, ldb, b_column}; }
};
MatMulPlan plan_matmul(std::span<const int64_t> a, std::span<const int64_t> b,
                       const Perms& perms = {});

}  // namespace sardonyx::ops
