// Normalisations spelled out in arithmetic.
#pragma once

#include "rewrite/graph_index.h"

namespace sardonyx::rewrite {

// Mean, deviation, variance, division and what scales and shifts the rows: LayerNormalization over
// the last axis.
void fuse_layer_normalizations(GraphIndex& index);

// Squares, their mean, its root and division, and what scales the rows: RMSNormalization over the
// last axis. Casts of half precision to float32 before it and back before the scale belong to it.
void fuse_rms_normalizations(GraphIndex& index);

// The same, to be done before widen, which would take such Casts for borders of half precision.
// False where nothing changed; `scope` stands for the graph before.
bool fuse_half_rms_normalizations(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::rewrite
