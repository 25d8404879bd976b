// Attention that a model decomposes.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// MatMul, scale, masks, Softmax and MatMul become the internal form of Attention, which reads
// and writes layouts with the length first where Transposes stand around.
// Batch and heads are two dimensions or one; keys and values that are repeated for several heads
// are not. There may be a Where with a number, and then up to two masks in all, the others added;
// each broadcasts as the nodes do it, so that no size need be known. A mask may stand between two
// Reshapes of which the first counts the batches in rows, as of heads or of a picture's windows.
void fuse_attention(GraphIndex& index);

}  // namespace sardonyx::passes
