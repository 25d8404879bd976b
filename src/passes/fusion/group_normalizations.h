// GroupNormalization as exporters wrote it before there was an operator.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// Reshape to groups, InstanceNormalization, Reshape back, and a factor and a term for each channel
// where they follow: GroupNormalization.
void fuse_group_normalizations(GraphIndex& index);

}  // namespace sardonyx::passes
