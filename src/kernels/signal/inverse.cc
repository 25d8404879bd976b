#include "kernels/signal/inverse.h"

#include <algorithm>
#include <cmath>

namespace sardonyx::kernels {
namespace {

// Brings a to the unit matrix, and by the same steps the unit matrix to the inverse.
void eliminate(double* a, double* y, int64_t n) {
  std::fill_n(y, n * n, 0.0);
  for (int64_t i = 0; i < n; ++i) y[i * n + i] = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      std::swap_ranges(y + k * n, y + (k + 1) * n, y + pivot * n);
    }
    const double factor = 1 / a[k * n + k];
    for (int64_t j = 0; j < n; ++j) a[k * n + j] *= factor, y[k * n + j] *= factor;
    for (int64_t i = 0; i < n; ++i) {
      const double times = a[i * n + k];
      if (i == k || times == 0) continue;
      for (int64_t j = 0; j < n; ++j) {
        a[i * n + j] -= times * a[k * n + j];
        y[i * n + j] -= times * y[k * n + j];
      }
    }
  }
}

}  // namespace

int64_t inverse_scratch_bytes(int64_t n, int threads) { return 2 * n * n * 8 * threads; }

template <class T>
void inverse(const T* x, int64_t matrices, int64_t n, T* y, void* scratch, ThreadPool& pool) {
  const int64_t size = n * n, grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, size * n));
  pool.parallel_for(matrices, grain, [&](int64_t begin, int64_t end, int worker) {
    double* own = static_cast<double*>(scratch) + worker * 2 * size;
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(x + i * size, size, own);
      eliminate(own, own + size, n);
      std::transform(own + size, own + 2 * size, y + i * size,
                     [](double v) { return static_cast<T>(v); });
    }
  });
}

template void inverse<float>(const float*, int64_t, int64_t, float*, void*, ThreadPool&);
template void inverse<double>(const double*, int64_t, int64_t, double*, void*, ThreadPool&);

}  // namespace sardonyx::kernels
