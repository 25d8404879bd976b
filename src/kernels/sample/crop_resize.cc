#include "kernels/sample/crop_resize.h"

#include <algorithm>
#include <cmath>

namespace sardonyx::kernels {
namespace {

// Where output `i` of `count` lies on an axis of `size` pixels.
template <class T>
T place(T begin, T end, int64_t size, int64_t i, int64_t count) {
  const T last = static_cast<T>(size - 1);
  if (count <= 1) return T(0.5) * (begin + end) * last;
  return begin * last + static_cast<T>(i) * ((end - begin) * last / static_cast<T>(count - 1));
}

// NaN is not inside.
template <class T>
bool is_inside(T at, int64_t size) {
  return at >= 0 && at <= static_cast<T>(size - 1);
}

template <class T>
T sample(const T* plane, int64_t width, T down, T along, bool nearest) {
  if (nearest)
    return plane[static_cast<int64_t>(std::round(down)) * width +
                 static_cast<int64_t>(std::round(along))];
  const T top = std::floor(down), left = std::floor(along);
  const auto y0 = static_cast<int64_t>(top), y1 = static_cast<int64_t>(std::ceil(down));
  const auto x0 = static_cast<int64_t>(left), x1 = static_cast<int64_t>(std::ceil(along));
  const auto between = [&](int64_t line) {
    const T a = plane[line * width + x0], b = plane[line * width + x1];
    return a + (b - a) * (along - left);
  };
  const T upper = between(y0);
  return upper + (between(y1) - upper) * (down - top);
}

}  // namespace

template <class T>
void crop_and_resize(const CropSizes& s, const T* x, const T* boxes, const int32_t* image,
                     bool nearest, T outside, T* y, ThreadPool& pool) {
  const int64_t area = s.out_height * s.out_width, plane = s.height * s.width;
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, area));
  pool.parallel_for(s.crops * s.channels, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t crop = at / s.channels, channel = at % s.channels;
      const T* box = boxes + crop * 4;
      const T* from = x + (image[crop] * s.channels + channel) * plane;
      T* to = y + at * area;
      for (int64_t i = 0; i < s.out_height; ++i) {
        const T down = place(box[0], box[2], s.height, i, s.out_height);
        for (int64_t j = 0; j < s.out_width; ++j, ++to) {
          const T along = place(box[1], box[3], s.width, j, s.out_width);
          *to = is_inside(down, s.height) && is_inside(along, s.width)
                    ? sample(from, s.width, down, along, nearest)
                    : outside;
        }
      }
    }
  });
}

template void crop_and_resize<float>(const CropSizes&, const float*, const float*, const int32_t*,
                                     bool, float, float*, ThreadPool&);
template void crop_and_resize<double>(const CropSizes&, const double*, const double*,
                                      const int32_t*, bool, double, double*, ThreadPool&);

}  // namespace sardonyx::kernels
