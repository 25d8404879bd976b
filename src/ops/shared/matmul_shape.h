// The shapes of MatMul and its integer forms.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "ops/infer_context.h"

namespace sardonyx::ops {

// The output shape of inputs `a` times `b`; nullopt where a rank is unknown.
std::optional<Dims> matmul_output(InferContext& ctx, int a, int b);

// One product, or a batch of them, after the dimensions that allow it have been merged.
struct MatMulPlan {
  int64_t M = 1, N = 1, K = 1;
  int64_t lda = 0, ldb = 0;
  kernels::GemmBatch batch;
};
MatMulPlan plan_matmul(std::span<const int64_t> a, std::span<const int64_t> b);

}  // namespace sardonyx::ops
