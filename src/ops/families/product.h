// What matrix products and convolutions share: the epilogue their fused forms carry, and constants
// as float32.
#pragma once

#include <memory>
#include <string>

#include "kernels/gemm/epilogue.h"
#include "ops/prepare_context.h"

namespace sardonyx::ops {

// The attributes of the internal fused forms (domain "sardonyx"): `activation` (none, relu, clip,
// leaky_relu, hard_sigmoid, hard_swish, sigmoid, silu, tanh, gelu_erf, gelu_tanh), its parameters
// `activation_alpha` and `activation_beta` (in Conv and MatMul also `alpha`, `beta`) and
// `residual_last`. A node of the standard has none of them and gets a plain epilogue.
kernels::Epilogue read_epilogue(const NodeView& node);

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
