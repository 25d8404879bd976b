// Recognising quantised computation: DequantizeLinear, an operator on floats, QuantizeLinear; and
// integer products whose sums are scaled.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// Whether a graph has anything for quantize() to look at.
bool has_quantized_nodes(const ir::Graph& graph);

// Conv becomes QLinearConv, MatMul and Gemm the internal QuantizedMatMul, and what only moves or
// compares elements works on the bytes. Constant weights must still be bytes behind
// DequantizeLinear. `scope`: what is known of the graph's values. Nodes that nobody uses any more
// are left for the caller to remove.
void fuse_quantized(GraphIndex& index);

}  // namespace sardonyx::passes
