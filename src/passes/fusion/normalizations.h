// Normalisations decomposed in arithmetic.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// Mean, deviation, variance, division and what scales and shifts the rows: LayerNormalization over
// the last axis.
void fuse_layer_normalizations(GraphIndex& index);

// Squares, their mean, its root and division, and what scales the rows: RMSNormalization over the
// last axis. Casts of half precision to float32 before it and back before the scale belong to it.
void fuse_rms_normalizations(GraphIndex& index);

// Whether float16 or bfloat16 is cast to anything: fuse_rms_normalizations must then come before
// promote_half, which would take such Casts for borders of half precision.
bool has_casts_of_half(const ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::passes
