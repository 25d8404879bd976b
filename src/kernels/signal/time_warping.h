// The cheapest way through a matrix of costs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/counted.h"

namespace sardonyx::kernels {

// The places (row, column) of the cheapest path from the first to the last element of [m, n],
// where each step goes down, right, or both. Of equally cheap steps it prefers the one to the
// right.
CountedVector<std::pair<int32_t, int32_t>> time_warping_path(const float* costs, int64_t m,
                                                             int64_t n);

}  // namespace sardonyx::kernels
