#include "kernels/sample/grid_sample.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <type_traits>

#include "kernels/sample/plane_points.h"

namespace sardonyx::kernels {
namespace {

constexpr int max_taps = 256;  // 4 along each of 4 dimensions

// Position v folded back at `low` and `high` until it lies between them.
template <class T>
T reflect(T v, T low, T high) {
  const T range = high - low;
  if (!(range > 0)) return low;
  T distance = std::fmod(std::abs(v - low), 2 * range);
  if (distance > range) distance = 2 * range - distance;
  return low + distance;
}

template <class T>
struct AxisTaps {
  int count = 1;
  int64_t index[4] = {};  // -1: outside, counts as 0
  T weight[4] = {1};
};

template <class T>
class AxisSampler {
 public:
  AxisSampler(const GridShape& s, int64_t size) : s_(s), size_(size) {
    low_ = s.align_corners ? T(0) : T(-0.5);
    high_ = static_cast<T>(size) - (s.align_corners ? T(1) : T(0.5));
  }

  AxisTaps<T> taps(T position) const {
    T x = s_.align_corners ? (position + 1) / 2 * static_cast<T>(size_ - 1)
                           : ((position + 1) * static_cast<T>(size_) - 1) / 2;
    if (std::isnan(x)) x = 0;
    if (s_.mode == SampleMode::nearest) x = std::nearbyint(x);
    if (x < low_ || x > high_) {
      if (s_.padding == SamplePadding::border) x = std::clamp(x, T(0), static_cast<T>(size_ - 1));
      if (s_.padding == SamplePadding::reflection) x = reflect(x, low_, high_);
    }
    x = std::clamp(x, T(-4), static_cast<T>(size_ + 4));  // far outside is as far as this
    AxisTaps<T> result;
    if (s_.mode == SampleMode::nearest) {
      result.index[0] = element(static_cast<int64_t>(x));
      return result;
    }
    const T whole = std::floor(x), part = x - whole;
    if (s_.mode == SampleMode::linear) {
      result.count = 2;
      result.weight[0] = 1 - part, result.weight[1] = part;
    } else {
      result.count = 4;
      cubic(part, result.weight);
    }
    const int64_t first = static_cast<int64_t>(whole) - (result.count == 4 ? 1 : 0);
    for (int i = 0; i < result.count; ++i) result.index[i] = element(first + i);
    return result;
  }

 private:
  int64_t element(int64_t i) const {
    if (i >= 0 && i < size_) return i;
    switch (s_.padding) {
      case SamplePadding::zeros: return -1;
      case SamplePadding::border: return std::clamp<int64_t>(i, 0, size_ - 1);
      case SamplePadding::reflection: break;
    }
    return std::clamp<int64_t>(static_cast<int64_t>(reflect(static_cast<T>(i), low_, high_)), 0,
                               size_ - 1);
  }

  // Keys' cubic convolution, a = -3/4, for taps at -1, 0, 1, 2.
  static void cubic(T x, T (&w)[4]) {
    constexpr T a = T(-0.75);
    const auto near = [](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [](T d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    w[0] = far(x + 1), w[1] = near(x), w[2] = near(1 - x), w[3] = far(2 - x);
  }

  const GridShape& s_;
  int64_t size_;
  T low_, high_;
};

// All taps of one position: offsets into a channel of x, and weights.
template <class T>
struct PointTaps {
  int count = 0;
  int64_t offset[max_taps];
  T weight[max_taps];
};

template <class T>
void point_taps(const GridShape& s, const T* position, PointTaps<T>& taps) {
  taps.count = 1, taps.offset[0] = 0, taps.weight[0] = 1;
  for (int d = 0; d < s.rank; ++d) {
    const AxisTaps<T> axis = AxisSampler<T>(s, s.in[d]).taps(position[s.rank - 1 - d]);
    PointTaps<T> next;
    for (int i = 0; i < taps.count; ++i) {
      for (int j = 0; j < axis.count; ++j) {
        if (axis.index[j] < 0) continue;
        next.offset[next.count] = taps.offset[i] * s.in[d] + axis.index[j];
        next.weight[next.count++] = taps.weight[i] * axis.weight[j];
      }
    }
    taps.count = next.count;
    std::copy_n(next.offset, next.count, taps.offset);
    std::copy_n(next.weight, next.count, taps.weight);
  }
}

template <class V, class T>
V weighted(const PointTaps<T>& taps, const V* plane) {
  if constexpr (std::is_same_v<V, std::string> || std::is_integral_v<V>) {
    return taps.count == 0 ? V() : plane[taps.offset[0]];
  } else {
    V sum{};
    if constexpr (std::is_same_v<V, T>) {
      for (int k = 0; k < taps.count; ++k) sum += taps.weight[k] * plane[taps.offset[k]];
    } else {
      using Part = typename V::value_type;
      for (int k = 0; k < taps.count; ++k)
        sum += static_cast<Part>(taps.weight[k]) * plane[taps.offset[k]];
    }
    return sum;
  }
}

// One point of every channel.
template <class V, class T>
void sample_point(const GridShape& s, int64_t pixels, const V* x, const T* position, V* y) {
  PointTaps<T> taps;
  if (pixels > 0) point_taps(s, position, taps);
  for (int64_t c = 0; c < s.channels; ++c) y[c * s.points] = weighted(taps, x + c * pixels);
}

// Points [begin, end) of one image.
template <class V, class T>
void sample_range(const GridShape& s, int64_t pixels, const V* x, const T* grid, V* y,
                  int64_t begin, int64_t end) {
  if constexpr (std::is_same_v<V, float> && std::is_same_v<T, float>) {
    if (places_points(s)) {
      PlanePoints points;
      for (int64_t i = begin; i < end; i += PlanePoints::most) {
        place_points(s, grid + i * 2, std::min(end - i, PlanePoints::most), points);
        sample_points(points, x, pixels, y + i, s.points, s.channels);
      }
      return;
    }
  }
  for (int64_t i = begin; i < end; ++i) sample_point(s, pixels, x, grid + i * s.rank, y + i);
}

}  // namespace

template <class V, class T>
void grid_sample(const GridShape& s, const V* x, const T* grid, V* y, ThreadPool& pool) {
  int64_t pixels = 1;
  for (int d = 0; d < s.rank; ++d) pixels *= s.in[d];
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, s.channels));
  pool.parallel_for(s.batch * s.points, grain, [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const int64_t n = begin / s.points, first = begin - n * s.points,
                    count = std::min(end - begin, s.points - first);
      sample_range(s, pixels, x + n * s.channels * pixels, grid + n * s.points * s.rank,
                   y + n * s.channels * s.points, first, first + count);
      begin += count;
    }
  });
}

template void grid_sample(const GridShape&, const float*, const float*, float*, ThreadPool&);
template void grid_sample(const GridShape&, const double*, const double*, double*, ThreadPool&);
template void grid_sample(const GridShape&, const std::complex<float>*, const double*,
                          std::complex<float>*, ThreadPool&);
template void grid_sample(const GridShape&, const std::complex<double>*, const double*,
                          std::complex<double>*, ThreadPool&);
template void grid_sample(const GridShape&, const uint64_t*, const double*, uint64_t*, ThreadPool&);
template void grid_sample(const GridShape&, const std::string*, const double*, std::string*,
                          ThreadPool&);

}  // namespace sardonyx::kernels
