// Determinants.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// The determinant of each [n, n] matrix, by elimination with pivots in double; `scratch` holds
// determinant_scratch_bytes. T is float or double.
int64_t determinant_scratch_bytes(int64_t n, int threads);
template <class T>
void determinant(const T* x, int64_t matrices, int64_t n, T* y, void* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
