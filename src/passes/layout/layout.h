// Regions of convolutional networks with their channels innermost.
#pragma once

#include <cstdint>
#include <vector>

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::passes {

// Gives convolutions of float32 images (N x C x spatial) and what stands between them the layout
// N x spatial x C: the internal forms of Conv, pooling and LRN, and the operators of the standard
// that work on any layout, their axes renamed. Transposes stand at the borders of such fusions. The
// graph's inputs and outputs keep their layout. `scope`: what inference knows of the graph.
// Returns whether nodes have changed; what they make has new types then.
bool convert_to_nhwc(ir::Graph& graph, const infer::Scope& scope);

// The permutations between N x C x spatial and N x spatial x C, of at least two dimensions.
std::vector<int64_t> to_nhwc(int64_t rank);
std::vector<int64_t> to_channels_first(int64_t rank);

}  // namespace sardonyx::passes
