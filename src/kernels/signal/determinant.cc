#include "kernels/signal/determinant.h"

#include <algorithm>
#include <cmath>

namespace sardonyx::kernels {
namespace {

double eliminate(double* a, int64_t n) {
  double product = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    if (a[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      product = -product;
    }
    product *= a[k * n + k];
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return product;
}

}  // namespace

int64_t determinant_scratch_bytes(int64_t n, int threads) { return n * n * 8 * threads; }

template <class T>
void determinant(const T* x, int64_t matrices, int64_t n, T* y, void* scratch, ThreadPool& pool) {
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, n * n * n));
  pool.parallel_for(matrices, grain, [&](int64_t begin, int64_t end, int worker) {
    double* own = static_cast<double*>(scratch) + worker * n * n;
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(x + i * n * n, n * n, own);
      y[i] = static_cast<T>(eliminate(own, n));
    }
  });
}

template void determinant<float>(const float*, int64_t, int64_t, float*, void*, ThreadPool&);
template void determinant<double>(const double*, int64_t, int64_t, double*, void*, ThreadPool&);

}  // namespace sardonyx::kernels
