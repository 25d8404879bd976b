// Half precision through whole fusions of a graph in float32.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::passes {

// Where float16 and bfloat16 values go from one arithmetic operator to the next, they go as
// float32: kernels compute in it anyway, and a result that is not rounded in between is nearer to
// the true one. Weights of Conv, Gemm and MatMul and tables that are gathered from stay as they
// are; the graph's inputs, outputs and what subgraphs take keep their types. `scope`: what is known
// of the graph's values; what it says of types no longer holds when this returns true, which means
// that the graph has changed.
bool promote_half(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::passes
