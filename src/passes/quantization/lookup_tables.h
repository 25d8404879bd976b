// Arithmetic of one value of bytes, as tables.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// A FusedElementwise that makes bytes of one value of bytes, of others that are such a function of
// it, and of constants becomes a LookupTable: activations decomposed between QuantizeLinear and
// DequantizeLinear are one table, whatever they compute. Runs on the graph that fuse_quantized_adds
// leaves; `scope` knows its constants.
void make_lookup_tables(GraphIndex& index);

}  // namespace sardonyx::passes
