// Which passes there are, in the order in which they run.
#pragma once

#include <span>

#include "passes/pass.h"

namespace sardonyx::passes {

// For running: everything.
std::span<const Pass> optimizing_passes();
// Constants folded and dead nodes removed.
std::span<const Pass> cleaning_passes();
// The same, but nodes that could become arithmetic on bytes are left in place, so that the passes
// for running may follow.
std::span<const Pass> folding_passes();

}  // namespace sardonyx::passes
