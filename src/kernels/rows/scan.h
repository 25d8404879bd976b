// CumSum, CumProd and TopK along the middle of [outer, n, inner].
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

enum class ScanOp : int32_t { sum, product };

// Floats of 16 to 64 bits, int32, int64, uint32, uint64. `exclusive` leaves the element itself out.
void cumulate(ScanOp op, ElementType type, const void* x, void* y, int64_t outer, int64_t n,
              int64_t inner, bool exclusive, bool reverse, ThreadPool& pool);

// The k largest (or smallest) elements and where they are; y and positions are [outer, k, inner].
// Of equal elements the lower position comes first. NaN counts as the largest. `sorted` or not, the
// result is in order. `scratch` must hold topk_scratch_bytes. Number types of 8 bits and more.
int64_t topk_scratch_bytes(int64_t n, int threads);  // threads: of the pool that will run it
void topk(ElementType type, const void* x, void* y, int64_t* positions, int64_t outer, int64_t n,
          int64_t inner, int64_t k, bool largest, void* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
