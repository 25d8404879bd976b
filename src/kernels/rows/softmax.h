// Softmax, LogSoftmax and Hardmax along the middle dimension of [outer, n, inner].
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// Floats of 16 to 64 bits; y may be x. A row of -inf alone gives NaN, as the formula does.
void softmax(ElementType type, const void* x, void* y, int64_t outer, int64_t n, int64_t inner,
             ThreadPool& pool);
void log_softmax(ElementType type, const void* x, void* y, int64_t outer, int64_t n, int64_t inner,
                 ThreadPool& pool);
// 1 at the first largest element, 0 elsewhere. y may not be x.
void hardmax(ElementType type, const void* x, void* y, int64_t outer, int64_t n, int64_t inner,
             ThreadPool& pool);

}  // namespace sardonyx::kernels
