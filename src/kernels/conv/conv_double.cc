#include "kernels/conv/conv_double.h"

#include <algorithm>

namespace sardonyx::kernels {
namespace {

// Output positions [first, last) for which in = o * stride + offset lies in [0, size).
struct Range {
  int64_t first, last;
};
Range inside(int64_t offset, int64_t stride, int64_t size, int64_t out) {
  const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t last = size <= offset ? 0 : (size - offset + stride - 1) / stride;
  return {std::min(first, out), std::clamp<int64_t>(last, 0, out)};
}

struct Axes {  // three spatial axes, the missing ones in front
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
          dilation[3] = {1, 1, 1}, pad[3] = {};
  explicit Axes(const ConvParams& s) {
    for (int i = 0; i < s.rank; ++i) {
      const int to = 3 - s.rank + i;
      const auto from = static_cast<size_t>(i);
      in[to] = s.in[from], out[to] = s.out[from], kernel[to] = s.kernel[from];
      stride[to] = s.stride[from], dilation[to] = s.dilation[from], pad[to] = s.pad_begin[from];
    }
  }
};

// Adds one kernel tap of one channel to an output plane.
void add_tap(const Axes& a, const int64_t (&tap)[3], const double* x, double weight, double* y) {
  int64_t offset[3];
  Range range[3];
  for (int i = 0; i < 3; ++i) {
    offset[i] = tap[i] * a.dilation[i] - a.pad[i];
    range[i] = inside(offset[i], a.stride[i], a.in[i], a.out[i]);
  }
  for (int64_t d = range[0].first; d < range[0].last; ++d) {
    for (int64_t h = range[1].first; h < range[1].last; ++h) {
      const int64_t in_row = (d * a.stride[0] + offset[0]) * a.in[1] + h * a.stride[1] + offset[1];
      const double* from = x + in_row * a.in[2] + offset[2];
      double* to = y + (d * a.out[1] + h) * a.out[2];
      if (a.stride[2] == 1) {
        for (int64_t w = range[2].first; w < range[2].last; ++w) to[w] += weight * from[w];
      } else {
        for (int64_t w = range[2].first; w < range[2].last; ++w)
          to[w] += weight * from[w * a.stride[2]];
      }
    }
  }
}

// One output plane: `y` holds its initial value.
void plane(const ConvParams& s, const Axes& a, const double* x, const double* w, double* y) {
  const int64_t channels = s.in_channels / s.group, in_plane = a.in[0] * a.in[1] * a.in[2];
  for (int64_t c = 0; c < channels; ++c) {
    int64_t tap[3];
    for (tap[0] = 0; tap[0] < a.kernel[0]; ++tap[0]) {
      for (tap[1] = 0; tap[1] < a.kernel[1]; ++tap[1]) {
        for (tap[2] = 0; tap[2] < a.kernel[2]; ++tap[2]) add_tap(a, tap, x + c * in_plane, *w++, y);
      }
    }
  }
}

// Calls body(image, output channel, group, plane index) for every output plane.
template <class Body>
void for_planes(const ConvParams& s, ThreadPool& pool, Body&& body) {
  pool.parallel_for(s.batch * s.out_channels, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t m = i % s.out_channels;
      body(i / s.out_channels, m, m / (s.out_channels / s.group), i);
    }
  });
}

}  // namespace

void conv_double(const ConvParams& s, const double* x, const double* w, const double* bias,
                 double* y, ThreadPool& pool) {
  const Axes a(s);
  const int64_t in_plane = a.in[0] * a.in[1] * a.in[2], out_plane = a.out[0] * a.out[1] * a.out[2];
  const int64_t channels = s.in_channels / s.group,
                taps = channels * a.kernel[0] * a.kernel[1] * a.kernel[2];
  for_planes(s, pool, [&](int64_t n, int64_t m, int64_t g, int64_t at) {
    double* to = y + at * out_plane;
    std::fill(to, to + out_plane, bias ? bias[m] : 0.0);
    plane(s, a, x + (n * s.in_channels + g * channels) * in_plane, w + m * taps, to);
  });
}

}  // namespace sardonyx::kernels
