// Combining operators into internal ones (domain "sardonyx") whose kernels do the work at once.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::rewrite {

// `scope`: what is known of the graph's values. Fused nodes keep the names of their outputs, so
// the scope stays right; unused producers are left for the caller to remove.
void fuse(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::rewrite
