// Which elements of a row come before the last of those found so far: what TopK asks.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// Places of x's elements that stand above `worst` (below it where not `largest`), in order, and how
// many. NaN is above every number. `places` has room for n and n is below 2^31.
int64_t filter_topk(const float* x, int64_t n, float worst, bool largest, int32_t* places);
int64_t filter_topk(const double* x, int64_t n, double worst, bool largest, int32_t* places);
int64_t filter_topk(const int64_t* x, int64_t n, int64_t worst, bool largest, int32_t* places);
int64_t filter_topk(const uint64_t* x, int64_t n, uint64_t worst, bool largest, int32_t* places);

}  // namespace sardonyx::kernels
