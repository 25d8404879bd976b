// Regions of convolutional networks with their channels innermost.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::rewrite {

// Gives convolutions of float32 images (N x C x spatial) and what stands between them the layout
// N x spatial x C: the internal forms of Conv, pooling and LRN, and the operators of the standard
// that work on any layout, their axes renamed. Transposes stand at the borders of such regions. The
// graph's inputs and outputs keep their layout. `scope`: what inference knows of the graph.
void lay_out(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::rewrite
