#include "kernels/conv/columns.h"

#include <algorithm>
#include <type_traits>

#include "kernels/conv/column_row.h"
#include "kernels/move/transpose_block.h"

namespace sardonyx::kernels {
namespace {

struct Grid {  // three axes, the missing ones in front
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {};
  explicit Grid(const ConvParams& s) {
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

constexpr int64_t longest_row = 4096;  // of an image that is made phase by phase
constexpr int64_t max_taps = 64;       // of a row, and lines of columns that meet in it

// How rows of images are made: outputs of one phase, a stride apart, lie side by side until all are
// added up.
struct Rows {
  explicit Rows(const Grid& g) : g(g), length((g.out[2] + g.stride[2] - 1) / g.stride[2]) {
    const int64_t positions = g.in[0] * g.in[1] * g.in[2];
    int64_t count = 0;
    for (int64_t p = 0; p < g.stride[2]; ++p) {
      for (int64_t c = 0; c < g.kernel[2]; ++c) {
        const int64_t offset = c * g.dilation[2] - g.pad[2];
        const Range range = landing(offset, g.stride[2], g.out[2], g.in[2]);
        const int64_t first = range.first * g.stride[2] + offset;
        if (range.first < range.last && first % g.stride[2] == p)
          taps[count++] = {c * positions + range.first, range.last - range.first,
                           first / g.stride[2]};
      }
      ends[p] = count;
    }
  }

  // A row whose phases are all as long as the longest, and the room behind.
  static constexpr int64_t phase_floats = longest_row + 2 * max_taps;

  static bool applies(const Grid& g) {
    return g.kernel[0] * g.kernel[1] <= max_taps && g.kernel[2] <= max_taps &&
           g.stride[2] <= max_taps && (g.stride[2] <= 2 || g.out[2] <= longest_row);
  }

  // The input line whose tap lands on this one, along an axis; -1 where there is none.
  int64_t line(int axis, int64_t at, int64_t tap) const {
    const int64_t from = at - tap * g.dilation[axis] + g.pad[axis];
    if (g.stride[axis] == 1) return from < g.in[axis] ? std::max<int64_t>(from, -1) : -1;
    const bool lands =
        from >= 0 && from % g.stride[axis] == 0 && from / g.stride[axis] < g.in[axis];
    return lands ? from / g.stride[axis] : -1;
  }

  // Row (d, h) of an image; `phases` has phase_floats.
  void add(int64_t d, int64_t h, const float* columns, float bias, float* phases, float* y) const {
    const int64_t stride = g.stride[2], positions = g.in[0] * g.in[1] * g.in[2];
    const float* lines[max_taps];
    int64_t count = 0;
    for (int64_t a = 0; a < g.kernel[0]; ++a) {
      const int64_t depth = line(0, d, a);
      for (int64_t b = 0; depth >= 0 && b < g.kernel[1]; ++b) {
        const int64_t row = line(1, h, b);
        if (row < 0) continue;
        lines[count++] = columns + (a * g.kernel[1] + b) * g.kernel[2] * positions +
                         (depth * g.in[1] + row) * g.in[2];
      }
    }
    const ColumnRow job{lines, count, taps, ends, stride, g.out[2], bias};
    if (stride <= 2) return sum_columns(job, y);
    sum_columns(job, phases);
    // Words are moved as they are.
    const int64_t whole = g.out[2] / stride;
    transpose_block(sizeof(float), phases, length, y, stride, whole, stride);
    for (int64_t i = whole * stride; i < g.out[2]; ++i)
      y[i] = phases[i % stride * length + i / stride];
  }

  const Grid& g;
  int64_t length;            // of a phase
  ColumnTap taps[max_taps];  // those of a phase side by side
  int64_t ends[max_taps];    // of each phase
};

template <class T>
void add_planes(const ConvParams& shape, int64_t planes, const T* columns, const T* bias,
                int64_t biases, T* y, ThreadPool& pool) {
  const Grid g(shape);
  const int64_t positions = g.in[0] * g.in[1] * g.in[2], pixels = g.out[0] * g.out[1] * g.out[2];
  const int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const int64_t grain =
      std::max<int64_t>(1, 32768 / std::max<int64_t>(1, taps * positions + pixels));
  if constexpr (std::is_same_v<T, float>) {
    if (Rows::applies(g)) {
      const Rows rows(g);
      return pool.parallel_for(planes, grain, [&](int64_t begin, int64_t end, int) {
        alignas(64) float phases[Rows::phase_floats];
        for (int64_t plane = begin; plane < end; ++plane) {
          const float start = bias ? bias[plane % biases] : 0.0f;
          float* to = y + plane * pixels;
          for (int64_t d = 0; d < g.out[0]; ++d) {
            for (int64_t h = 0; h < g.out[1]; ++h, to += g.out[2])
              rows.add(d, h, columns + plane * taps * positions, start, phases, to);
          }
        }
      });
    }
  }
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

void add_columns(const ConvParams& shape, int64_t planes, const float* columns, const float* bias,
                 int64_t biases, float* y, ThreadPool& pool) {
  add_planes(shape, planes, columns, bias, biases, y, pool);
}

void add_columns(const ConvParams& shape, int64_t planes, const double* columns, const double* bias,
                 int64_t biases, double* y, ThreadPool& pool) {
  add_planes(shape, planes, columns, bias, biases, y, pool);
}

void add_columns(const ConvParams& shape, int64_t planes, const uint64_t* columns,
                 const uint64_t* bias, int64_t biases, uint64_t* y, ThreadPool& pool) {
  add_planes(shape, planes, columns, bias, biases, y, pool);
}

void add_columns(const ConvParams& shape, int64_t planes, const std::complex<float>* columns,
                 std::complex<float>* y, ThreadPool& pool) {
  add_planes<std::complex<float>>(shape, planes, columns, nullptr, 1, y, pool);
}

void add_columns(const ConvParams& shape, int64_t planes, const std::complex<double>* columns,
                 std::complex<double>* y, ThreadPool& pool) {
  add_planes<std::complex<double>>(shape, planes, columns, nullptr, 1, y, pool);
}

}  // namespace sardonyx::kernels
