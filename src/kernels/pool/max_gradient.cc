// What flows back through the largest of windows.
#include <algorithm>
#include <type_traits>

#include "kernels/pool/pool.h"
#include "kernels/pool/span.h"
#include "kernels/pool/window.h"
#include "kernels/rows/grain.h"

namespace sardonyx::kernels {
namespace {

// Adds to `to` where each window took its element from.
void add_whole_windows(const PoolShape& s, const float* x, const int32_t* taps, int64_t count,
                       const float* dy, int64_t windows, float* to) {
  constexpr int64_t block = 128;
  float largest[block];
  int64_t places[block];
  for (int64_t k = 0; k < windows; k += block) {
    const int64_t some = std::min(block, windows - k), first = k * s.stride[2];
    pool_places(x + first, s.stride[2], taps, count, some, first, largest, places);
    for (int64_t i = 0; i < some; ++i) to[places[i]] += dy[k + i];
  }
}

// Of one window, of any size.
template <class T>
void add_window(const PoolShape& s, const WindowSpans& w, const T* x, T dy, T* to) {
  int64_t found = -1;
  visit_window(s, w, [&](int64_t at) {
    if (found < 0 || x[at] > x[found] || (x[at] != x[at] && x[found] == x[found])) found = at;
  });
  if (found >= 0) to[found] += dy;
}

template <class T>
void one_plane(const PoolShape& s, const T* x, const T* dy, T* dx) {
  std::fill_n(dx, volume(s.in), T{0});
  const bool by_vectors = std::is_same_v<T, float> && has_few_taps(s);
  for (int64_t row = 0; row < s.out[0] * s.out[1]; ++row) {
    const T* from = dy + row * s.out[2];
    WindowSpans w;
    w.at[0] = span_of(s, 0, row / s.out[1]);
    w.at[1] = span_of(s, 1, row % s.out[1]);
    for (int64_t k = 0; k < s.out[2];) {
      w.at[2] = span_of(s, 2, k);
      if (!by_vectors) {
        add_window(s, w, x, from[k++], dx);
        continue;
      }
      const int64_t windows = std::max<int64_t>(1, whole_windows(s, k));
      // Places count from the first window's: its elements are `taps` of the plane.
      int32_t taps[max_taps];
      int64_t count = 0;
      visit_window(s, w, [&](int64_t at) { taps[count++] = static_cast<int32_t>(at); });
      if constexpr (std::is_same_v<T, float>) {
        if (count > 0) add_whole_windows(s, x, taps, count, from + k, windows, dx);
      }
      k += windows;
    }
  }
}

template <class T>
void each_plane(const PoolShape& s, const T* x, const T* dy, T* dx, ThreadPool& pool) {
  check_pool_shape(s);
  const int64_t in = volume(s.in), out = volume(s.out);
  int64_t cost = out;
  for (const int64_t size : s.kernel) cost *= std::min<int64_t>(size, 256);
  for_rows_of(s.planes, in + cost, pool, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) one_plane(s, x + p * in, dy + p * out, dx + p * in);
  });
}

}  // namespace

void max_pool_gradient(const PoolShape& shape, const float* x, const float* dy, float* dx,
                       ThreadPool& pool) {
  each_plane(shape, x, dy, dx, pool);
}
void max_pool_gradient(const PoolShape& shape, const double* x, const double* dy, double* dx,
                       ThreadPool& pool) {
  each_plane(shape, x, dy, dx, pool);
}

}  // namespace sardonyx::kernels
