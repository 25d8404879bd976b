// Arithmetic between DequantizeLinear and QuantizeLinear, carried out on the integers themselves.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::rewrite {

// Conv of dequantized bytes whose result is quantized to bytes again, with Relu in between or not,
// becomes QLinearConv; MatMul of dequantized bytes becomes MatMulInteger, with its scale after it.
// Fused nodes keep the names of their outputs; unused producers are left for the caller to remove.
// True where the graph has anything of the kind, fused or not.
bool fuse_quantised(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::rewrite
