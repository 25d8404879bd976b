#include "kernels/pool/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/fail.h"
#include "kernels/move/by_cell.h"
#include "kernels/pool/nchw.h"
#include "kernels/pool/span.h"
#include "kernels/pool/window.h"
#include "kernels/rows/grain.h"
#include "kernels/rows/row_math.h"
#include "kernels/rows/values.h"

namespace sardonyx::kernels {
namespace {

// body(plane, output row of it) in chunks, where a row is a run along the last axis.
template <class Body>
void for_output_rows(const PoolShape& s, ThreadPool& pool, Body&& body) {
  const int64_t rows = s.out[0] * s.out[1];
  int64_t cost = s.out[2];
  for (const int64_t size : s.kernel) cost *= std::min<int64_t>(size, 256);
  for_rows_of(s.planes * rows, cost, pool, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r / rows, r % rows);
  });
}

// one(spans, first input element, output element) for each output.
template <class One>
void for_outputs(const PoolShape& s, ThreadPool& pool, One&& one) {
  for_output_rows(s, pool, [&](int64_t plane, int64_t row) {
    WindowSpans w;
    w.at[0] = span_of(s, 0, row / s.out[1]);
    w.at[1] = span_of(s, 1, row % s.out[1]);
    const int64_t to = (plane * s.out[0] * s.out[1] + row) * s.out[2];
    for (int64_t k = 0; k < s.out[2]; ++k) {
      w.at[2] = span_of(s, 2, k);
      one(w, plane * volume(s.in), to + k);
    }
  });
}

int64_t column_major_of(const PoolShape& s, int64_t offset) {
  const int64_t k = offset % s.in[2];
  const int64_t j = offset / s.in[2] % s.in[1];
  const int64_t i = offset / s.in[2] / s.in[1];
  return (k * s.in[1] + j) * s.in[0] + i;
}

int64_t lowest_integer(ElementType type) {
  if (!is_signed_integer(type)) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - bit_width(type));
}

// `Stored`: what the elements are, where that is known; void where `type` alone tells.
template <class C, class Stored = void>
void max_pool_plain(ElementType type, const PoolShape& s, const void* x, void* y, int64_t* indices,
                    bool column_major, ThreadPool& pool) {
  const auto read = [=](int64_t i) {
    if constexpr (std::is_void_v<Stored>) {
      return value_at<C>(type, x, i);
    } else {
      return static_cast<C>(static_cast<const Stored*>(x)[i]);
    }
  };
  for_outputs(s, pool, [&](const WindowSpans& w, int64_t base, int64_t to) {
    C best = min_of<C>();
    int64_t found = -1;
    visit_window(s, w, [&](int64_t at) {
      const C v = read(base + at);
      if (found < 0 || v > best || (v != v && best == best)) {
        best = v;
        found = at;
      }
    });
    if (found < 0 && std::is_integral_v<C>) best = static_cast<C>(lowest_integer(type));
    if constexpr (std::is_void_v<Stored>) {
      put_value<C>(type, y, to, best);
    } else {
      static_cast<Stored*>(y)[to] = static_cast<Stored>(best);
    }
    if (indices == nullptr) return;
    if (found >= 0) found = base + (column_major ? column_major_of(s, found) : found);
    indices[to] = found;
  });
}

// Window positions that lie inside input and padding together, for the divisor.
double padded_count(const PoolShape& s, const WindowSpans& w) {
  double count = 1;
  for (int a = 0; a < PoolShape::axes; ++a)
    count *= static_cast<double>(padded_positions(s, a, w.at[a]));
  return count;
}

double inside_count(const WindowSpans& w) {
  double count = 1;
  for (const Span& span : w.at) {
    count *= static_cast<double>(std::max<int64_t>(span.end - span.begin, 0));
  }
  return count;
}

template <class C>
void average_pool_plain(ElementType type, const PoolShape& s, const void* x, void* y,
                        bool count_include_pad, ThreadPool& pool) {
  for_outputs(s, pool, [&](const WindowSpans& w, int64_t base, int64_t to) {
    C sum = 0;
    visit_window(s, w, [&](int64_t at) { sum += value_at<C>(type, x, base + at); });
    const double count = count_include_pad ? padded_count(s, w) : inside_count(w);
    put_value<C>(type, y, to, count == 0 ? C{0} : sum / static_cast<C>(count));
  });
}

template <class C>
void lp_pool_plain(ElementType type, const PoolShape& s, const void* x, void* y, double p,
                   ThreadPool& pool) {
  for_outputs(s, pool, [&](const WindowSpans& w, int64_t base, int64_t to) {
    C sum = 0;
    visit_window(s, w, [&](int64_t at) {
      const C v = std::fabs(value_at<C>(type, x, base + at));
      sum += p == 1 ? v : p == 2 ? v * v : std::pow(v, static_cast<C>(p));
    });
    const C root = p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, static_cast<C>(1 / p));
    put_value<C>(type, y, to, root);
  });
}

// A window as large as the whole input: one row to reduce.
bool is_global(const PoolShape& s) {
  for (int a = 0; a < PoolShape::axes; ++a) {
    if (s.out[a] != 1 || s.kernel[a] != s.in[a] || s.dilation[a] != 1 || s.pad_before[a] != 0 ||
        s.pad_after[a] != 0) {
      return false;
    }
  }
  return volume(s.in) > 0;
}

void global_float(PoolKind kind, const PoolShape& s, const float* x, float* y, ThreadPool& pool) {
  const int64_t n = volume(s.in);
  constexpr int64_t few = 256;
  for_rows_of(s.planes, n, pool, [&](int64_t begin, int64_t end) {
    if (n <= few) {
      pool_planes(kind, x + begin * n, end - begin, n, y + begin);
      if (kind == PoolKind::max) return;
      for (int64_t p = begin; p < end; ++p) y[p] /= static_cast<float>(n);
      return;
    }
    for (int64_t p = begin; p < end; ++p) {
      y[p] = kind == PoolKind::max ? row_max(x + p * n, n)
                                   : row_sum(x + p * n, n) / static_cast<float>(n);
    }
  });
}

// Output rows by vectors: for each window row and column one pass over the outputs whose element
// lies inside, adding or comparing into the row; then the divisor.
void rows_float(PoolKind kind, const PoolShape& s, const float* x, float* y, bool count_include_pad,
                ThreadPool& pool) {
  if (pools_by_lines(s)) return pool_by_lines(kind, s, x, y, count_include_pad, pool);
  for_output_rows(s, pool, [&](int64_t plane, int64_t row) {
    const float* in = x + plane * volume(s.in);
    float* out = y + (plane * s.out[0] * s.out[1] + row) * s.out[2];
    WindowSpans w;
    w.at[0] = span_of(s, 0, row / s.out[1]);
    w.at[1] = span_of(s, 1, row % s.out[1]);
    std::fill_n(out, s.out[2], kind == PoolKind::max ? min_of<float>() : 0.0f);
    for (int64_t i = w.at[0].begin; i < w.at[0].end; ++i) {
      const int64_t depth = (w.at[0].origin + i * s.dilation[0]) * s.in[1];
      for (int64_t j = w.at[1].begin; j < w.at[1].end; ++j) {
        const float* from = in + (depth + w.at[1].origin + j * s.dilation[1]) * s.in[2];
        pool_row(kind, s.in[2], s.out[2], s.kernel[2], s.stride[2], s.dilation[2], s.pad_before[2],
                 from, out);
      }
    }
    if (kind == PoolKind::max) return;
    for (int64_t k = 0; k < s.out[2];) {
      w.at[2] = span_of(s, 2, k);
      const double count = count_include_pad ? padded_count(s, w) : inside_count(w);
      const auto divisor = static_cast<float>(count == 0 ? 1 : count);  // the sum of nothing is 0
      const int64_t end = k + std::max<int64_t>(1, whole_windows(s, k));
      for (; k < end; ++k) out[k] /= divisor;
    }
  });
}

// The largest with their places.
void places_float(const PoolShape& s, const float* x, float* y, int64_t* places, bool column_major,
                  ThreadPool& pool) {
  for_output_rows(s, pool, [&](int64_t plane, int64_t row) {
    const int64_t base = plane * volume(s.in);
    const int64_t to = (plane * s.out[0] * s.out[1] + row) * s.out[2];
    WindowSpans w;
    w.at[0] = span_of(s, 0, row / s.out[1]);
    w.at[1] = span_of(s, 1, row % s.out[1]);
    for (int64_t k = 0; k < s.out[2];) {
      w.at[2] = span_of(s, 2, k);
      const int64_t windows = std::max<int64_t>(1, whole_windows(s, k));
      int32_t taps[max_taps];
      int64_t count = 0;
      visit_window(s, w, [&](int64_t at) { taps[count++] = static_cast<int32_t>(at); });
      if (count == 0) {
        std::fill_n(y + to + k, windows, min_of<float>());
        std::fill_n(places + to + k, windows, int64_t{-1});
      } else {
        pool_places(x + base, s.stride[2], taps, count, windows, base, y + to + k, places + to + k);
      }
      k += windows;
    }
    if (!column_major) return;
    for (int64_t i = to; i < to + s.out[2]; ++i) {
      if (places[i] >= 0) places[i] = base + column_major_of(s, places[i] - base);
    }
  });
}

// pool_pixels for any elements; those of bytes only know the largest.
template <class T>
void join_pixels(PoolKind kind, const T* const* taps, int64_t count, int64_t step, int64_t pixels,
                 int64_t channels, float scale, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    pool_pixels(kind, taps, count, step, pixels, channels, scale, y);
  } else {
    max_pixels(taps, count, step, pixels, channels, y);
  }
}

// A window of more elements than are taken at once.
template <class T>
void wide_window_nhwc(PoolKind kind, const PoolShape& s, int64_t channels, const T* in,
                      const WindowSpans& w, float scale, T* out) {
  constexpr int64_t most = 64;
  const T* taps[most];
  int64_t count = 0;
  const auto join = [&] {
    join_pixels(kind, taps, count, 0, 1, channels, 1.0f, out);
    taps[0] = out;
    count = 1;
  };
  visit_window(s, w, [&](int64_t at) {
    taps[count++] = in + at * channels;
    if (count == most) join();
  });
  join_pixels(kind, taps, count, 0, 1, channels, scale, out);
}

// One output row with channels last.
template <class T>
void row_nhwc(PoolKind kind, const PoolShape& s, int64_t channels, const T* in, WindowSpans w,
              bool count_include_pad, T* out) {
  constexpr double most = 64;
  const T* taps[static_cast<size_t>(most)];
  for (int64_t k = 0; k < s.out[2];) {
    w.at[2] = span_of(s, 2, k);
    const int64_t pixels = std::max<int64_t>(1, whole_windows(s, k));
    const double inside = inside_count(w),
                 divisor = count_include_pad ? padded_count(s, w) : inside;
    const float scale = kind == PoolKind::max || divisor == 0 ? 1 : static_cast<float>(1 / divisor);
    if (inside == 0) {
      std::fill_n(out, pixels * channels, kind == PoolKind::max ? min_of<T>() : T{});
    } else if (inside > most) {
      for (int64_t p = 0; p < pixels; ++p) {
        w.at[2] = span_of(s, 2, k + p);
        wide_window_nhwc(kind, s, channels, in, w, scale, out + p * channels);
      }
    } else {
      int64_t count = 0;
      visit_window(s, w, [&](int64_t at) { taps[count++] = in + at * channels; });
      join_pixels(kind, taps, count, s.stride[2] * channels, pixels, channels, scale, out);
    }
    k += pixels;
    out += pixels * channels;
  }
}

// body(first element of the plane, window with its column still open, first element of the output
// row) for each output row with channels last.
template <class Body>
void for_rows_nhwc(const PoolShape& s, int64_t channels, ThreadPool& pool, Body&& body) {
  check_pool_shape(s);
  if (channels < 1) return;
  int64_t cost = s.out[2] * channels;
  for (const int64_t size : s.kernel) cost *= std::min<int64_t>(size, 256);
  const int64_t rows = s.out[0] * s.out[1];
  for_rows_of(s.planes * rows, cost, pool, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      WindowSpans w;
      w.at[0] = span_of(s, 0, r % rows / s.out[1]);
      w.at[1] = span_of(s, 1, r % s.out[1]);
      body(r / rows * volume(s.in) * channels, w, r * s.out[2] * channels);
    }
  });
}

template <class T>
void pool_nhwc(PoolKind kind, const PoolShape& s, int64_t channels, const void* x, void* y,
               bool count_include_pad, ThreadPool& pool) {
  for_rows_nhwc(s, channels, pool, [&](int64_t in, const WindowSpans& w, int64_t out) {
    row_nhwc(kind, s, channels, static_cast<const T*>(x) + in, w, count_include_pad,
             static_cast<T*>(y) + out);
  });
}

template <class Call>
void by_float_type(const char* op, ElementType type, Call&& call) {
  if (is_floating(type) && bit_width(type) >= 8) {
    return type == ElementType::float64 ? call(double{}) : call(float{});
  }
  fail(ErrorCode::unsupported, "{} does not take {}", op, name_of(type));
}

}  // namespace

void check_pool_shape(const PoolShape& s) {
  constexpr int64_t limit = int64_t{1} << 40;
  for (int a = 0; a < PoolShape::axes; ++a) {
    const bool sound = s.kernel[a] >= 1 && s.stride[a] >= 1 && s.dilation[a] >= 1 && s.in[a] >= 0 &&
                       s.out[a] >= 0 && s.pad_before[a] >= -s.in[a] && s.pad_after[a] >= -s.in[a];
    const int64_t most = std::max({s.kernel[a], s.stride[a], s.dilation[a], s.in[a], s.out[a],
                                   s.pad_before[a], s.pad_after[a]});
    int64_t reach;
    if (!sound || most > limit ||
        __builtin_mul_overflow(std::max(s.kernel[a], s.out[a]),
                               std::max(s.dilation[a], s.stride[a]), &reach) ||
        reach > (int64_t{1} << 61)) {
      fail(ErrorCode::bad_input,
           "pooling window of {} (stride {}, dilation {}, padding {} and {}) over an axis of {} "
           "with {} outputs: sizes must be at least 1, what is cropped at most the axis, none "
           "beyond 2^40",
           s.kernel[a], s.stride[a], s.dilation[a], s.pad_before[a], s.pad_after[a], s.in[a],
           s.out[a]);
    }
  }
}

void max_pool(ElementType type, const PoolShape& shape, const void* x, void* y, int64_t* indices,
              bool column_major, ThreadPool& pool) {
  check_pool_shape(shape);
  if (type == ElementType::float32 && indices == nullptr) {
    const auto* from = static_cast<const float*>(x);
    auto* to = static_cast<float*>(y);
    if (is_global(shape)) return global_float(PoolKind::max, shape, from, to, pool);
    return rows_float(PoolKind::max, shape, from, to, false, pool);
  }
  if (type == ElementType::float32 && has_few_taps(shape)) {
    return places_float(shape, static_cast<const float*>(x), static_cast<float*>(y), indices,
                        column_major, pool);
  }
  if (is_integer(type) && bit_width(type) >= 8 && type != ElementType::uint64) {
    if (type == ElementType::uint8)
      return max_pool_plain<int64_t, uint8_t>(type, shape, x, y, indices, column_major, pool);
    if (type == ElementType::int8)
      return max_pool_plain<int64_t, int8_t>(type, shape, x, y, indices, column_major, pool);
    return max_pool_plain<int64_t>(type, shape, x, y, indices, column_major, pool);
  }
  by_float_type("MaxPool", type, [&](auto zero) {
    max_pool_plain<decltype(zero)>(type, shape, x, y, indices, column_major, pool);
  });
}

void average_pool(ElementType type, const PoolShape& shape, const void* x, void* y,
                  bool count_include_pad, ThreadPool& pool) {
  check_pool_shape(shape);
  if (type == ElementType::float32) {
    const auto* from = static_cast<const float*>(x);
    auto* to = static_cast<float*>(y);
    if (is_global(shape)) return global_float(PoolKind::average, shape, from, to, pool);
    return rows_float(PoolKind::average, shape, from, to, count_include_pad, pool);
  }
  by_float_type("AveragePool", type, [&](auto zero) {
    average_pool_plain<decltype(zero)>(type, shape, x, y, count_include_pad, pool);
  });
}

void max_pool_nhwc(ElementType type, const PoolShape& shape, int64_t channels, const void* x,
                   void* y, ThreadPool& pool) {
  constexpr auto kind = PoolKind::max;
  switch (type) {
    case ElementType::uint8: return pool_nhwc<uint8_t>(kind, shape, channels, x, y, false, pool);
    case ElementType::int8: return pool_nhwc<int8_t>(kind, shape, channels, x, y, false, pool);
    default: return pool_nhwc<float>(kind, shape, channels, x, y, false, pool);
  }
}

void average_pool_nhwc(const PoolShape& shape, int64_t channels, const float* x, float* y,
                       bool count_include_pad, ThreadPool& pool) {
  pool_nhwc<float>(PoolKind::average, shape, channels, x, y, count_include_pad, pool);
}

void lp_pool(ElementType type, const PoolShape& shape, const void* x, void* y, double p,
             ThreadPool& pool) {
  check_pool_shape(shape);
  by_float_type("LpPool", type,
                [&](auto zero) { lp_pool_plain<decltype(zero)>(type, shape, x, y, p, pool); });
}

void max_unpool(ElementType type, const void* x, const int64_t* indices, int64_t n, void* y,
                int64_t size, ThreadPool&) {
  by_cell(cell_of(type), [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    auto* to = static_cast<T*>(y);
    std::fill_n(to, size, T{});
    for (int64_t i = 0; i < n; ++i) {
      if (indices[i] < 0 || indices[i] >= size) {
        fail(ErrorCode::run_failed,
             "MaxUnpool: index {} (element {}) is not in [0, {}), the size of the output",
             indices[i], i, size);
      }
      to[indices[i]] = static_cast<const T*>(x)[i];
    }
  });
}

}  // namespace sardonyx::kernels
