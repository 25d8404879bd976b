// Attention that a model spells out.
#pragma once

#include "rewrite/graph_index.h"

namespace sardonyx::rewrite {

// MatMul, scale, mask, Softmax and MatMul become the internal form of Attention (domain
// "sardonyx"), which reads and writes the layout batch x length x heads x size where Transposes
// stand around.
void fuse_attention(GraphIndex& index);

}  // namespace sardonyx::rewrite
