// What one run of a model costs.
#pragma once

#include "ir/model.h"
#include "ops/custom.h"
#include "sardonyx/info.h"

namespace sardonyx {

// Counts the floating-point operations of the model's main graph, upgraded to the newest opset:
// products and convolutions exactly, two for each multiply-add; other computing operators one for
// each element they make (of reductions and pooling: for each they read), those that only move data
// nothing. The body of a loop counts once, the dearer branch of an If. Sizes decided by the run
// count as their upper bound where one is known, and as 1 where none is. External data is not
// needed. `custom` is borrowed for the call. Throws Error where the model can't be lowered.
Cost cost_of(const ir::Model& model, const DimSizes& sizes, const ops::CustomTable& custom);

}  // namespace sardonyx
