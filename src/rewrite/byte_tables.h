// Arithmetic of one value of bytes, as tables.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::rewrite {

// A Region that makes bytes of one value of bytes, of others that are such a function of it, and of
// constants becomes a ByteTable: activations spelled out between QuantizeLinear and
// DequantizeLinear are one table, whatever they compute. Runs on the graph that join_quantized_sums
// leaves; `scope` knows its constants.
void make_byte_tables(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::rewrite
