// What matrix products and convolutions share: types, packed matrices, and constants as float32.
#pragma once

#include <memory>
#include <string>

#include "ops/prepare_context.h"

namespace sardonyx::ops {

// The elements as aligned float32; shares the tensor's memory where it can.
Tensor as_floats(const Tensor& tensor, ThreadPool& pool);

// The type in which a matrix of that type is packed: half precision stays so.
ElementType packed_type(ElementType type);

// Constant input i, a matrix of K x N (N x K where `transposed`), packed for kernels::gemm_packed_b
// in its packed_type; shared by all steps and sessions that pack it so.
std::shared_ptr<const Pack<Tensor>> pack_matrix(PrepareContext& ctx, int i, int64_t K, int64_t N,
                                                bool transposed);

// A floating type that is computed in float32.
bool computes_in_float(ElementType type);

}  // namespace sardonyx::ops
