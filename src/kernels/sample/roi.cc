#include "kernels/sample/roi.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/fail.h"
#include "kernels/sample/plane_points.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t max_samples = 65536;

// One axis of a sample: two neighbours and their weights; none where the sample is outside.
template <class T>
struct Neighbours {
  bool inside = false;
  int64_t low = 0, high = 0;
  T low_weight = 0, high_weight = 0;
};

template <class T>
Neighbours<T> neighbours(T at, int64_t size) {
  Neighbours<T> n;
  if (!(at >= T(-1) && at <= static_cast<T>(size)) || size == 0) return n;
  at = std::max(at, T(0));
  n.inside = true;
  n.low = static_cast<int64_t>(at);
  if (n.low >= size - 1) {
    n.low = n.high = size - 1;
    at = static_cast<T>(n.low);
  } else {
    n.high = n.low + 1;
  }
  n.high_weight = at - static_cast<T>(n.low);
  n.low_weight = 1 - n.high_weight;
  return n;
}

template <class T>
class Region {
 public:
  Region(const RoiShape& s, const T* roi) : s_(s) {
    const T scale = static_cast<T>(s.spatial_scale), offset = s.half_pixel ? T(0.5) : T(0);
    left_ = roi[0] * scale - offset, top_ = roi[1] * scale - offset;
    T width = roi[2] * scale - offset - left_, height = roi[3] * scale - offset - top_;
    if (!s.half_pixel) width = std::max(width, T(1)), height = std::max(height, T(1));
    bin_height_ = height / static_cast<T>(s.out_height),
    bin_width_ = width / static_cast<T>(s.out_width);
    rows_ = samples(bin_height_), columns_ = samples(bin_width_);
  }

  int64_t samples_of_bin() const { return rows_ * columns_; }

  // Puts sample `k` of bin `bin` at place `to`; the four elements' offsets lie within a plane.
  void place(int64_t bin, int64_t k, PlanePoints& points, int64_t to) const {
    const auto y =
        neighbours(position(top_, bin_height_, bin / s_.out_width, k / columns_, rows_), s_.height);
    const auto x = neighbours(
        position(left_, bin_width_, bin % s_.out_width, k % columns_, columns_), s_.width);
    points.inside[to] = y.inside && x.inside ? PlanePoints::all : 0;
    const int64_t rows[2] = {y.low * s_.width, y.high * s_.width}, columns[2] = {x.low, x.high};
    const T down[2] = {y.low_weight, y.high_weight}, across[2] = {x.low_weight, x.high_weight};
    for (int i = 0; i < 4; ++i) {
      points.offset[i][to] = static_cast<int32_t>(rows[i / 2] + columns[i % 2]);
      points.weight[i][to] = down[i / 2] * across[i % 2];
    }
  }

  T pool(const T* plane, int64_t bin_y, int64_t bin_x) const {
    T sum = 0;
    bool first = true;
    for (int64_t i = 0; i < rows_; ++i) {
      const auto y = neighbours(position(top_, bin_height_, bin_y, i, rows_), s_.height);
      for (int64_t j = 0; j < columns_; ++j) {
        const auto x = neighbours(position(left_, bin_width_, bin_x, j, columns_), s_.width);
        const T value = y.inside && x.inside ? sample(plane, y, x) : T(0);
        if (!s_.maximum)
          sum += value;
        else if (first || value > sum)
          sum = value;
        first = false;
      }
    }
    return s_.maximum ? sum : sum / static_cast<T>(std::max<int64_t>(rows_ * columns_, 1));
  }

 private:
  int64_t samples(T bin) const {
    if (s_.sampling_ratio > 0) return s_.sampling_ratio;
    const T wanted = std::ceil(bin);
    if (!(wanted <= static_cast<T>(max_samples))) {
      fail(ErrorCode::run_failed,
           "a region of interest needs {} samples a bin; at most {} are allowed",
           static_cast<double>(wanted), max_samples);
    }
    return wanted > 0 ? static_cast<int64_t>(wanted) : 0;
  }
  static T position(T start, T bin, int64_t at, int64_t sample, int64_t count) {
    return start + static_cast<T>(at) * bin +
           (static_cast<T>(sample) + T(0.5)) * bin / static_cast<T>(count);
  }
  T sample(const T* plane, const Neighbours<T>& y, const Neighbours<T>& x) const {
    const T *upper = plane + y.low * s_.width, *lower = plane + y.high * s_.width;
    const T a = y.low_weight * x.low_weight * upper[x.low],
            b = y.low_weight * x.high_weight * upper[x.high];
    const T c = y.high_weight * x.low_weight * lower[x.low],
            d = y.high_weight * x.high_weight * lower[x.high];
    return s_.maximum ? std::max({a, b, c, d}) : a + b + c + d;
  }

  const RoiShape& s_;
  T left_, top_, bin_height_, bin_width_;
  int64_t rows_, columns_;
};

int64_t checked_image(int64_t image, int64_t batch) {
  if (image < 0 || image >= batch)
    fail(ErrorCode::run_failed, "a region's batch index must be in [0, {}); got {}", batch, image);
  return image;
}

// A float as an integer in [-2^40, 2^40]; no number: 0.
template <class T>
int64_t whole(T value) {
  constexpr T limit = T(1099511627776);
  if (std::isnan(value)) return 0;
  return static_cast<int64_t>(std::clamp(value, -limit, limit));
}

// Pixels [begin, end) of one bin along one axis.
struct Span {
  int64_t begin, end;
};
template <class T>
Span bin_span(int64_t start, int64_t end, int64_t bin, int64_t bins, int64_t size) {
  const T each = static_cast<T>(std::max<int64_t>(end - start + 1, 1)) / static_cast<T>(bins);
  const int64_t first = start + whole(std::floor(static_cast<T>(bin) * each)),
                last = start + whole(std::ceil(static_cast<T>(bin + 1) * each));
  return {std::clamp<int64_t>(first, 0, size), std::clamp<int64_t>(last, 0, size)};
}

// The averages of a region's bins, of all channels: samples are placed once, as many as PlanePoints
// holds at a time.
void average_bins(const RoiShape& s, const Region<float>& region, const float* x, float* y) {
  constexpr int64_t planes = 4;  // at once
  PlanePoints points;
  float values[planes * PlanePoints::most];
  const int64_t pixels = s.height * s.width, bins = s.out_height * s.out_width,
                each = region.samples_of_bin(), samples = bins * each;
  std::fill_n(y, s.channels * bins, 0.f);
  const auto scale = static_cast<float>(std::max<int64_t>(each, 1));
  for (int64_t first = 0; first < samples; first += PlanePoints::most) {
    points.count = std::min(samples - first, PlanePoints::most);
    for (int64_t k = 0; k < points.count; ++k)
      region.place((first + k) / each, (first + k) % each, points, k);
    for (int64_t c = 0; c < s.channels; c += planes) {
      const int64_t now = std::min(planes, s.channels - c);
      sample_points(points, x + c * pixels, pixels, values, PlanePoints::most, now);
      for (int64_t p = 0; p < now; ++p) {
        const float* value = values + p * PlanePoints::most;
        float* to = y + (c + p) * bins;
        int64_t bin = first / each, done = first % each;
        for (int64_t k = 0; k < points.count; ++k) {
          to[bin] += value[k];
          if (++done < each) continue;
          to[bin++] /= scale;
          done = 0;
        }
      }
    }
  }
}

}  // namespace

template <class T>
void roi_align(const RoiShape& s, const T* x, const T* rois, const int64_t* images, T* y,
               ThreadPool& pool) {
  const int64_t bins = s.out_height * s.out_width;
  pool.parallel_for(s.rois, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const Region<T> region(s, rois + r * 4);
      const int64_t image = checked_image(images[r], s.batch);
      if constexpr (std::is_same_v<T, float>) {
        constexpr int64_t most = std::numeric_limits<int32_t>::max();
        if (!s.maximum && s.height > 0 && s.width > 0 && s.height <= most / s.width) {
          average_bins(s, region, x + image * s.channels * s.height * s.width,
                       y + r * s.channels * bins);
          continue;
        }
      }
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* plane = x + (image * s.channels + c) * s.height * s.width;
        T* to = y + (r * s.channels + c) * bins;
        for (int64_t i = 0; i < bins; ++i)
          to[i] = region.pool(plane, i / s.out_width, i % s.out_width);
      }
    }
  });
}

template <class T>
void max_roi_pool(const RoiShape& s, const T* x, const T* rois, T* y, ThreadPool& pool) {
  const T scale = static_cast<T>(s.spatial_scale);
  pool.parallel_for(s.rois, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const T* roi = rois + r * 5;
      const int64_t image = checked_image(whole(roi[0]), s.batch);
      const int64_t left = whole(std::round(roi[1] * scale)),
                    top = whole(std::round(roi[2] * scale));
      const int64_t right = whole(std::round(roi[3] * scale)),
                    bottom = whole(std::round(roi[4] * scale));
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* plane = x + (image * s.channels + c) * s.height * s.width;
        T* to = y + (r * s.channels + c) * s.out_height * s.out_width;
        for (int64_t i = 0; i < s.out_height; ++i) {
          const Span rows = bin_span<T>(top, bottom, i, s.out_height, s.height);
          for (int64_t j = 0; j < s.out_width; ++j) {
            const Span columns = bin_span<T>(left, right, j, s.out_width, s.width);
            T best = 0;
            bool found = false;
            for (int64_t h = rows.begin; h < rows.end; ++h) {
              for (int64_t w = columns.begin; w < columns.end; ++w) {
                const T value = plane[h * s.width + w];
                if (!found || value > best) best = value;
                found = true;
              }
            }
            to[i * s.out_width + j] = best;
          }
        }
      }
    }
  });
}

template void roi_align<float>(const RoiShape&, const float*, const float*, const int64_t*, float*,
                               ThreadPool&);
template void roi_align<double>(const RoiShape&, const double*, const double*, const int64_t*,
                                double*, ThreadPool&);
template void max_roi_pool<float>(const RoiShape&, const float*, const float*, float*, ThreadPool&);
template void max_roi_pool<double>(const RoiShape&, const double*, const double*, double*,
                                   ThreadPool&);

}  // namespace sardonyx::kernels
