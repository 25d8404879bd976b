// Expanding, depthwise and projecting convolutions as one step that goes through bands of lines.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::rewrite {

// Forms a ConvChain of a depthwise convolution and its neighbours, where what is between them is
// used nowhere else and bands are expected to pay. Runs on the graph that lay_out leaves; `scope`
// knows its values.
void form_bands(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::rewrite
