#include "kernels/rows/normalize.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "kernels/rows/grain.h"
#include "kernels/rows/row_math.h"
#include "kernels/rows/values.h"

namespace sardonyx::kernels {
namespace {

template <class C>
C row_total(ElementType type, const void* x, int64_t begin, int64_t n) {
  C sum = 0;
  visit_values<C>(type, x, begin, n,
                  [&](const C* v, int64_t, int64_t some) { sum += row_sum(v, some); });
  return sum;
}

template <class C>
C row_squares(ElementType type, const void* x, int64_t begin, int64_t n, C center) {
  C sum = 0;
  visit_values<C>(type, x, begin, n, [&](const C* v, int64_t, int64_t some) {
    sum += row_sum_squares(v, center, some);
  });
  return sum;
}

// Up to a tile of an optional parameter row as C: the memory itself, or a converted copy.
template <class C>
struct ParameterTile {
  alignas(64) C copy[value_tile];

  const C* get(ElementType type, const void* p, int64_t begin, int64_t n) {
    if (p == nullptr) return nullptr;
    if (type == element_of<C>()) return static_cast<const C*>(p) + begin;
    cast_row(type, element_of<C>(), element_at(type, p, begin), copy, n);
    return copy;
  }
};

template <class C>
void normalize_row(ElementType type, const void* x, void* y, int64_t begin, int64_t n, C center,
                   C factor, const void* scale, const void* bias, int64_t parameters) {
  if (type == element_of<C>()) {
    const C* s = scale == nullptr ? nullptr : static_cast<const C*>(scale) + parameters;
    const C* b = bias == nullptr ? nullptr : static_cast<const C*>(bias) + parameters;
    return row_normalize(static_cast<const C*>(x) + begin, center, factor, s, b,
                         static_cast<C*>(y) + begin, n);
  }
  map_values<C>(type, x, y, begin, n, [&](const C* v, C* to, int64_t at, int64_t some) {
    ParameterTile<C> scales, biases;
    row_normalize(v, center, factor, scales.get(type, scale, parameters + at, some),
                  biases.get(type, bias, parameters + at, some), to, some);
  });
}

struct Moments {
  ElementType type;
  void* mean;
  void* inv_std_dev;
};

template <class C>
void put_moments(const Moments& moments, int64_t row, C mean, C factor) {
  if (moments.mean != nullptr) put_value<C>(moments.type, moments.mean, row, mean);
  if (moments.inv_std_dev != nullptr) put_value<C>(moments.type, moments.inv_std_dev, row, factor);
}

// What keeps a divisor from 0: added to the variance, and to its root.
struct Epsilons {
  double variance, deviation;
};

template <class C>
C deviation_factor(C squares, int64_t n, Epsilons epsilons) {
  const C variance = squares / static_cast<C>(n) + static_cast<C>(epsilons.variance);
  return C{1} / (std::sqrt(variance) + static_cast<C>(epsilons.deviation));
}

// Rows [begin, end) of floats. The sum of a row is taken two rows ahead, its squares one row ahead,
// so that rows come from memory while others are computed and no sum waits for the one before it.
void layer_norm_rows(const float* x, const float* scale, const float* bias, float* y,
                     const Moments& moments, int64_t begin, int64_t end, int64_t n,
                     Epsilons epsilons, RowParameters parameters) {
  const auto size = static_cast<float>(n);
  const auto row_at = [&](int64_t r) { return x + std::min(r, end - 1) * n; };
  float mean = row_sum(row_at(begin), n) / size;
  float squares = row_sum_squares(row_at(begin), mean, n);
  float next_mean = row_sum(row_at(begin + 1), n) / size;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t at = r / parameters.every % parameters.rows * n;
    const float factor = deviation_factor(squares, n, epsilons);
    // Behind the last row the last one's own memory stands in for rows: nobody uses their moments.
    const RowMoments ahead = row_normalize_ahead(
        {x + r * n, mean, factor, scale == nullptr ? nullptr : scale + at,
         bias == nullptr ? nullptr : bias + at, y + r * n, row_at(r + 1), next_mean, row_at(r + 2)},
        n);
    put_moments(moments, r, mean, factor);
    mean = next_mean;
    squares = ahead.squares;
    next_mean = ahead.sum / size;
  }
}

template <class C>
void layer_norm_all(ElementType type, const void* x, const void* scale, const void* bias, void* y,
                    const Moments& moments, int64_t rows, int64_t n, Epsilons epsilons,
                    ThreadPool& pool, RowParameters parameters) {
  for_rows_of(rows, 3 * n, pool, [&](int64_t begin, int64_t end) {
    if (type == ElementType::float32 && end - begin > 1) {
      return layer_norm_rows(static_cast<const float*>(x), static_cast<const float*>(scale),
                             static_cast<const float*>(bias), static_cast<float*>(y), moments,
                             begin, end, n, epsilons, parameters);
    }
    for (int64_t r = begin; r < end; ++r) {
      const C mean = row_total<C>(type, x, r * n, n) / static_cast<C>(n);
      const C factor = deviation_factor(row_squares<C>(type, x, r * n, n, mean), n, epsilons);
      const int64_t at = r / parameters.every % parameters.rows * n;
      normalize_row<C>(type, x, y, r * n, n, mean, factor, scale, bias, at);
      put_moments(moments, r, mean, factor);
    }
  });
}

template <class C>
void rms_norm_all(ElementType type, const void* x, const void* scale, void* y, int64_t rows,
                  int64_t n, double epsilon, ThreadPool& pool, RowParameters parameters) {
  for_rows_of(rows, 2 * n, pool, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const C mean = row_squares<C>(type, x, r * n, n, C{0}) / static_cast<C>(n);
      const C factor = C{1} / std::sqrt(mean + static_cast<C>(epsilon));
      const int64_t at = r / parameters.every % parameters.rows * n;
      normalize_row<C>(type, x, y, r * n, n, C{0}, factor, scale, nullptr, at);
    }
  });
}

// y = x * a + b for the `inner` elements of one channel.
template <class C>
void affine(ElementType type, const void* x, void* y, int64_t begin, int64_t n, C a, C b) {
  map_values<C>(type, x, y, begin, n,
                [&](const C* v, C* to, int64_t, int64_t some) { row_affine(v, a, b, to, some); });
}

template <class C>
void group_norm_all(ElementType type, const void* x, const void* scale, const void* bias, void* y,
                    int64_t n, int64_t channels, int64_t inner, int64_t groups, double epsilon,
                    ThreadPool& pool) {
  const int64_t width = channels / groups;
  const int64_t size = width * inner;
  for_rows_of(n * groups, 3 * size, pool, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const C mean = row_total<C>(type, x, g * size, size) / static_cast<C>(size);
      const C variance = row_squares<C>(type, x, g * size, size, mean) / static_cast<C>(size);
      const C factor = C{1} / std::sqrt(variance + static_cast<C>(epsilon));
      for (int64_t c = 0; c < width; ++c) {
        const int64_t channel = g % groups * width + c;
        const C a = scale == nullptr ? factor : factor * value_at<C>(type, scale, channel);
        const C b = bias == nullptr ? C{0} : value_at<C>(type, bias, channel);
        affine<C>(type, x, y, g * size + c * inner, inner, a, b - mean * a);
      }
    }
  });
}

template <class C>
void batch_norm_all(ElementType type, const void* x, ElementType scale_type, const void* scale,
                    const void* bias, ElementType mean_type, const void* mean, const void* variance,
                    void* y, int64_t n, int64_t channels, int64_t inner, double epsilon,
                    ThreadPool& pool) {
  for_rows_of(n * channels, inner, pool, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t c = r % channels;
      const C spread = value_at<C>(mean_type, variance, c) + static_cast<C>(epsilon);
      const C a = value_at<C>(scale_type, scale, c) / std::sqrt(spread);
      const C b = value_at<C>(scale_type, bias, c) - value_at<C>(mean_type, mean, c) * a;
      affine<C>(type, x, y, r * inner, inner, a, b);
    }
  });
}

template <class C>
void moments_all(ElementType type, const void* x, ElementType mean_type, void* mean, void* variance,
                 int64_t n, int64_t channels, int64_t inner, ThreadPool& pool) {
  const auto count = static_cast<C>(n * inner);
  for_rows_of(channels, 2 * n * inner, pool, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      C sum = 0, squares = 0;
      for (int64_t i = 0; i < n; ++i) {
        sum += row_total<C>(type, x, (i * channels + c) * inner, inner);
      }
      const C center = sum / count;
      for (int64_t i = 0; i < n; ++i) {
        squares += row_squares<C>(type, x, (i * channels + c) * inner, inner, center);
      }
      put_value<C>(mean_type, mean, c, center);
      put_value<C>(mean_type, variance, c, squares / count);
    }
  });
}

template <class C>
void lp_norm_row(ElementType type, const void* x, void* y, int64_t begin, int64_t n, int p) {
  C sum = 0;
  visit_values<C>(type, x, begin, n, [&](const C* v, int64_t, int64_t some) {
    sum += p == 1 ? row_sum_abs(v, some) : row_sum_squares(v, C{0}, some);
  });
  const C norm = p == 1 ? sum : std::sqrt(sum);
  map_values<C>(type, x, y, begin, n,
                [&](const C* v, C* to, int64_t, int64_t some) { row_divide(v, norm, to, some); });
}

constexpr int64_t block = 256;  // columns worked on together

// `width` columns, at most a block of them, n elements `inner` apart in each. Where they are all
// columns of a matrix, as many rows as fill a block lie side by side, each with sums of its own.
template <class C>
void lp_norm_columns(ElementType type, const void* x, void* y, int64_t base, int64_t n,
                     int64_t inner, int64_t width, int p) {
  alignas(64) C norms[block];
  const int64_t rows = width == inner ? std::min(n, block / inner) : 1, all = rows * width;
  std::fill_n(norms, all, C{0});
  const auto each = [&](auto&& visit) {
    for (int64_t i = 0; i < n; i += rows) visit(base + i * inner, std::min(rows, n - i) * width);
  };
  each([&](int64_t begin, int64_t some) {
    visit_values<C>(type, x, begin, some, [&](const C* v, int64_t at, int64_t count) {
      column_steps(p == 1 ? ColumnOp::sum_abs : ColumnOp::sum_squares, v, 0, 1, norms + at, count);
    });
  });
  for (int64_t i = width; i < all; ++i) norms[i % width] += norms[i];
  for (int64_t i = 0; i < width; ++i) norms[i] = p == 1 ? norms[i] : std::sqrt(norms[i]);
  for (int64_t i = width; i < all; ++i) norms[i] = norms[i - width];
  each([&](int64_t begin, int64_t some) {
    map_values<C>(type, x, y, begin, some, [&](const C* v, C* to, int64_t at, int64_t count) {
      column_divide(v, norms + at, to, count);
    });
  });
}

template <class C>
void lp_norm_all(ElementType type, const void* x, void* y, int64_t outer, int64_t n, int64_t inner,
                 int p, ThreadPool& pool) {
  if (inner == 1) {
    return for_rows_of(outer, 2 * n, pool, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) lp_norm_row<C>(type, x, y, r * n, n, p);
    });
  }
  if (n == 0 || inner == 0) return;
  const int64_t blocks = (inner + block - 1) / block;
  for_rows_of(outer * blocks, 2 * n * std::min(inner, block), pool,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t column = i % blocks * block;
                  lp_norm_columns<C>(type, x, y, i / blocks * n * inner + column, n, inner,
                                     std::min(block, inner - column), p);
                }
              });
}

// call(C{}) with the type that arithmetic on `type` is done in.
template <class Call>
void by_arithmetic(const char* op, ElementType type, Call&& call) {
  switch (type) {
    case ElementType::float16:
    case ElementType::bfloat16:
    case ElementType::float32: return call(float{});
    case ElementType::float64: return call(double{});
    default: fail(ErrorCode::unsupported, "{} does not take {}", op, name_of(type));
  }
}

}  // namespace

void layer_norm(ElementType type, const void* x, const void* scale, const void* bias, void* y,
                ElementType mean_type, void* mean, void* inv_std_dev, int64_t rows, int64_t n,
                double epsilon, ThreadPool& pool, RowParameters parameters, double beside) {
  by_arithmetic("LayerNormalization", type, [&](auto zero) {
    layer_norm_all<decltype(zero)>(type, x, scale, bias, y, {mean_type, mean, inv_std_dev}, rows, n,
                                   {epsilon, beside}, pool, parameters);
  });
}

void rms_norm(ElementType type, const void* x, const void* scale, void* y, int64_t rows, int64_t n,
              double epsilon, ThreadPool& pool, RowParameters parameters) {
  by_arithmetic("RMSNormalization", type, [&](auto zero) {
    rms_norm_all<decltype(zero)>(type, x, scale, y, rows, n, epsilon, pool, parameters);
  });
}

void group_norm(ElementType type, const void* x, const void* scale, const void* bias, void* y,
                int64_t n, int64_t channels, int64_t inner, int64_t groups, double epsilon,
                ThreadPool& pool) {
  if (channels == 0) return;
  if (groups < 1 || channels % groups != 0) {
    fail(ErrorCode::bad_input, "{} groups do not divide {} channels", groups, channels);
  }
  by_arithmetic("GroupNormalization", type, [&](auto zero) {
    group_norm_all<decltype(zero)>(type, x, scale, bias, y, n, channels, inner, groups, epsilon,
                                   pool);
  });
}

void batch_norm(ElementType type, const void* x, ElementType scale_type, const void* scale,
                const void* bias, ElementType mean_type, const void* mean, const void* variance,
                void* y, int64_t n, int64_t channels, int64_t inner, double epsilon,
                ThreadPool& pool) {
  by_arithmetic("BatchNormalization", type, [&](auto zero) {
    batch_norm_all<decltype(zero)>(type, x, scale_type, scale, bias, mean_type, mean, variance, y,
                                   n, channels, inner, epsilon, pool);
  });
}

void channel_moments(ElementType type, const void* x, ElementType mean_type, void* mean,
                     void* variance, int64_t n, int64_t channels, int64_t inner, ThreadPool& pool) {
  by_arithmetic("channel moments", type, [&](auto zero) {
    moments_all<decltype(zero)>(type, x, mean_type, mean, variance, n, channels, inner, pool);
  });
}

void lp_norm(ElementType type, const void* x, void* y, int64_t outer, int64_t n, int64_t inner,
             int p, ThreadPool& pool) {
  if (p != 1 && p != 2) fail(ErrorCode::bad_input, "p must be 1 or 2, not {}", p);
  by_arithmetic("LpNormalization", type, [&](auto zero) {
    lp_norm_all<decltype(zero)>(type, x, y, outer, n, inner, p, pool);
  });
}

}  // namespace sardonyx::kernels
