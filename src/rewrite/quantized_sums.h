// Sums of bytes at the end of quantised convolutions.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::rewrite {

// A Region that adds the bytes of a convolution with channels last to others, perhaps raises the
// sum to 0, and makes bytes of it becomes part of that convolution, where nothing else reads the
// convolution's bytes. Runs on the graph that lay_out leaves; `scope` knows its constants.
void join_quantized_sums(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::rewrite
