// Steps of optimizers in arithmetic, as functions of training models have them.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// What ops::internal::AdamW says, with constants that float32 holds for all but the rate and the
// two divisors.
void fuse_optimizers(GraphIndex& index);

}  // namespace sardonyx::passes
