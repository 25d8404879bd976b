// ArgMax and ArgMin.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// Along the middle of [outer, n, inner], y is [outer, inner]: where the largest (or smallest)
// element is, the last of several if select_last. NaN counts as both largest and smallest.
// Throws Error (run_failed) for n = 0 with any output.
void arg_extreme(bool largest, bool select_last, ElementType type, const void* x, int64_t* y,
                 int64_t outer, int64_t n, int64_t inner, ThreadPool& pool);

}  // namespace sardonyx::kernels
