// What follows a product and is done before its results are stored.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// A bias, a sum with another value and an activation behind Conv, ConvTranspose, MatMul or Gemm,
// and a factor right behind MatMul, each read by nothing else, become part of the internal form of
// it.
void fuse_epilogues(GraphIndex& index);

}  // namespace sardonyx::passes
