// Inverses of square matrices.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// Two matrices of doubles a thread.
int64_t inverse_scratch_bytes(int64_t n, int threads);

// y = x^-1 of matrices [matrices, n, n], by elimination in double. A matrix that has none gives
// infinities and NaN.
template <class T>
void inverse(const T* x, int64_t matrices, int64_t n, T* y, void* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
