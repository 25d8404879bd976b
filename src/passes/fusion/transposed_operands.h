// MatMul of what a Transpose has made reads its input instead, through strides.
#pragma once

#include "ir/model.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {

// Whether a MatMul reads what a Transpose makes.
bool has_transposed_operands(const ir::Graph& graph);

// A Transpose that only a MatMul of float32 reads becomes part of the internal form of it, where
// the rows or the columns of its matrices stay in one piece and the product is not by a constant,
// which is packed. After convert_to_nhwc, which moves Transposes.
void fuse_transposed_operands(GraphIndex& index);

}  // namespace sardonyx::passes
