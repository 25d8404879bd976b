#include "kernels/conv/columns.h"

#include <algorithm>

namespace sardonyx::kernels {
namespace {

struct Grid {  // three axes, the missing ones in front
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {};
  explicit Grid(const ConvShape& s) {
    for (int i = 0; i < s.rank; ++i) {
      const int to = 3 - s.rank + i;
      const auto from = static_cast<size_t>(i);
      in[to] = s.in[from], out[to] = s.out[from], kernel[to] = s.kernel[from];
      stride[to] = s.stride[from], dilation[to] = s.dilation[from], pad[to] = s.pad_begin[from];
    }
  }
};

// Grid positions [first, last) that land inside the image.
struct Range {
  int64_t first, last;
};
Range landing(int64_t offset, int64_t stride, int64_t out, int64_t in) {
  const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t last = out <= offset ? 0 : (out - offset + stride - 1) / stride;
  return {std::min(first, in), std::clamp<int64_t>(last, 0, in)};
}

template <class T>
void add_tap(const Grid& g, const int64_t (&tap)[3], const T* column, T* y) {
  int64_t offset[3];
  Range range[3];
  for (int i = 0; i < 3; ++i) {
    offset[i] = tap[i] * g.dilation[i] - g.pad[i];
    range[i] = landing(offset[i], g.stride[i], g.out[i], g.in[i]);
  }
  for (int64_t d = range[0].first; d < range[0].last; ++d) {
    for (int64_t h = range[1].first; h < range[1].last; ++h) {
      const T* from = column + (d * g.in[1] + h) * g.in[2];
      const int64_t row = (d * g.stride[0] + offset[0]) * g.out[1] + h * g.stride[1] + offset[1];
      T* to = y + row * g.out[2] + offset[2];
      if (g.stride[2] == 1) {
        for (int64_t w = range[2].first; w < range[2].last; ++w) to[w] += from[w];
      } else {
        for (int64_t w = range[2].first; w < range[2].last; ++w) to[w * g.stride[2]] += from[w];
      }
    }
  }
}

template <class T>
void add_planes(const ConvShape& shape, int64_t planes, const T* columns, const T* bias,
                int64_t biases, T* y, ThreadPool& pool) {
  const Grid g(shape);
  const int64_t positions = g.in[0] * g.in[1] * g.in[2], pixels = g.out[0] * g.out[1] * g.out[2];
  const int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const int64_t grain =
      std::max<int64_t>(1, 32768 / std::max<int64_t>(1, taps * positions + pixels));
  pool.parallel_for(planes, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p) {
      T* image = y + p * pixels;
      std::fill(image, image + pixels, bias ? bias[p % biases] : T(0));
      const T* column = columns + p * taps * positions;
      int64_t tap[3];
      for (tap[0] = 0; tap[0] < g.kernel[0]; ++tap[0]) {
        for (tap[1] = 0; tap[1] < g.kernel[1]; ++tap[1]) {
          for (tap[2] = 0; tap[2] < g.kernel[2]; ++tap[2], column += positions)
            add_tap(g, tap, column, image);
        }
      }
    }
  });
}

}  // namespace

void add_columns(const ConvShape& shape, int64_t planes, const float* columns, const float* bias,
                 int64_t biases, float* y, ThreadPool& pool) {
  add_planes(shape, planes, columns, bias, biases, y, pool);
}

void add_columns(const ConvShape& shape, int64_t planes, const double* columns, const double* bias,
                 int64_t biases, double* y, ThreadPool& pool) {
  add_planes(shape, planes, columns, bias, biases, y, pool);
}

void add_columns(const ConvShape& shape, int64_t planes, const std::complex<float>* columns,
                 std::complex<float>* y, ThreadPool& pool) {
  add_planes<std::complex<float>>(shape, planes, columns, nullptr, 1, y, pool);
}

void add_columns(const ConvShape& shape, int64_t planes, const std::complex<double>* columns,
                 std::complex<double>* y, ThreadPool& pool) {
  add_planes<std::complex<double>>(shape, planes, columns, nullptr, 1, y, pool);
}

}  // namespace sardonyx::kernels
