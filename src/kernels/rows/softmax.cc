#include "kernels/rows/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/fail.h"
#include "kernels/elementwise/unary.h"
#include "kernels/rows/extremes.h"
#include "kernels/rows/grain.h"
#include "kernels/rows/row_math.h"
#include "kernels/rows/short_softmax.h"
#include "kernels/rows/values.h"

namespace sardonyx::kernels {
namespace {

// Columns of [n, inner] worked on together.
constexpr int64_t block = 256;

template <class C>
void softmax_row(ElementType type, const void* x, void* y, int64_t begin, int64_t n, bool log) {
  C top = min_of<C>();
  visit_values<C>(type, x, begin, n,
                  [&](const C* v, int64_t, int64_t some) { top = larger(top, row_max(v, some)); });
  C sum = 0;
  if (log) {
    visit_values<C>(type, x, begin, n,
                    [&](const C* v, int64_t, int64_t some) { sum += row_sum_exp(v, top, some); });
    // x - top first: exact where the two are close, whatever their size.
    const C rest = std::log(sum);
    map_values<C>(type, x, y, begin, n, [&](const C* v, C* to, int64_t, int64_t some) {
      row_shift(v, top, rest, to, some);
    });
    return;
  }
  if (type == element_of<C>()) {
    auto* to = static_cast<C*>(y) + begin;
    sum = row_exp(static_cast<const C*>(x) + begin, top, to, n);
    row_affine(to, C{1} / sum, C{0}, to, n);
    return;
  }
  // The exponentials are computed twice rather than rounded to 16 bits in between.
  visit_values<C>(type, x, begin, n,
                  [&](const C* v, int64_t, int64_t some) { sum += row_sum_exp(v, top, some); });
  map_values<C>(type, x, y, begin, n, [&](const C* v, C* to, int64_t, int64_t some) {
    row_exp(v, top, to, some);
    row_affine(to, C{1} / sum, C{0}, to, some);
  });
}

// y = exp(x - top) / sum, or its logarithm, column by column; `rests` are the sums' inverses, or
// their logarithms.
template <class C>
void finish_columns(ElementType type, const void* x, void* y, int64_t begin, int64_t n,
                    const C* top, const C* rests, bool log) {
  if (!log && type == element_of<C>()) {  // the exponentials are there
    C* to = static_cast<C*>(y) + begin;
    return column_scale(to, rests, to, n);
  }
  alignas(64) C unused[block] = {};
  map_values<C>(type, x, y, begin, n, [&](const C* v, C* to, int64_t at, int64_t some) {
    if (log) return column_shift(v, top + at, rests + at, to, some);
    column_exp(v, top + at, to, unused, some);
    column_scale(to, rests + at, to, some);
  });
}

// sums += exp(x - top); the exponentials stay in y where that does not round them.
template <class C>
void add_exponentials(ElementType type, const void* x, void* y, int64_t begin, int64_t n,
                      const C* top, C* sums, bool log) {
  C* to = !log && type == element_of<C>() ? static_cast<C*>(y) + begin : nullptr;
  visit_values<C>(type, x, begin, n, [&](const C* v, int64_t at, int64_t some) {
    column_exp(v, top + at, to, sums + at, some);
  });
}

// What finish_columns takes of sums.
template <class C>
void make_rests(C* sums, int64_t n, bool log) {
  if constexpr (std::is_same_v<C, float>) {
    if (log) return unary_tile(UnaryOp::log)(sums, sums, n, {});
  }
  for (int64_t j = 0; j < n; ++j) sums[j] = log ? std::log(sums[j]) : C{1} / sums[j];
}

// Columns [column, column + width) of one [n, inner] matrix that begins at element `base`.
template <class C>
void softmax_columns(ElementType type, const void* x, void* y, int64_t base, int64_t n,
                     int64_t inner, int64_t column, int64_t width, bool log) {
  alignas(64) C top[block], sum[block];
  std::fill_n(top, width, min_of<C>());
  std::fill_n(sum, width, C{0});
  const auto row = [&](int64_t i) { return base + i * inner + column; };
  for (int64_t i = 0; i < n; ++i) {
    visit_values<C>(type, x, row(i), width, [&](const C* v, int64_t at, int64_t some) {
      column_steps(ColumnOp::max, v, 0, 1, top + at, some);
    });
  }
  for (int64_t i = 0; i < n; ++i) add_exponentials(type, x, y, row(i), width, top, sum, log);
  make_rests(sum, width, log);
  for (int64_t i = 0; i < n; ++i) finish_columns(type, x, y, row(i), width, top, sum, log);
}

// Rows of few elements, a block of them transposed so that vectors hold an element of many.
constexpr int64_t few_elements = 16;
template <class C>
void softmax_side_by_side(const C* x, C* y, int64_t rows, int64_t n, bool log) {
  alignas(64) C transposed[few_elements * block];
  for (int64_t r = 0; r < rows; r += block, x += block * n, y += block * n) {
    const int64_t width = std::min(block, rows - r);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = 0; i < n; ++i) transposed[i * block + j] = x[j * n + i];
    }
    softmax_columns<C>(element_of<C>(), transposed, transposed, 0, n, block, 0, width, log);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = 0; i < n; ++i) y[j * n + i] = transposed[i * block + j];
    }
  }
}

// Few columns, [n, inner] of them from element `base` on: as many rows as fill a block lie side by
// side, each column with sums of its own, which are joined in the end.
template <class C>
void softmax_few_columns(ElementType type, const void* x, void* y, int64_t base, int64_t n,
                         int64_t inner, bool log) {
  alignas(64) C top[block], sum[block];
  const int64_t rows = std::min(n, block / inner), width = rows * inner, total = n * inner;
  std::fill_n(top, width, min_of<C>());
  std::fill_n(sum, width, C{0});
  const auto each = [&](auto&& visit) {
    for (int64_t i = 0; i < total; i += width) visit(base + i, std::min(width, total - i));
  };
  const auto join = [&](C* values, auto&& op) {
    for (int64_t c = 0; c < inner; ++c)
      for (int64_t i = c + inner; i < width; i += inner) values[c] = op(values[c], values[i]);
  };
  const auto repeat = [&](C* values) {
    for (int64_t i = inner; i < width; ++i) values[i] = values[i - inner];
  };
  each([&](int64_t begin, int64_t some) {
    visit_values<C>(type, x, begin, some, [&](const C* v, int64_t at, int64_t count) {
      column_steps(ColumnOp::max, v, 0, 1, top + at, count);
    });
  });
  join(top, [](C a, C b) { return larger(a, b); });
  repeat(top);
  each([&](int64_t begin, int64_t some) {
    add_exponentials(type, x, y, begin, some, top, sum, log);
  });
  join(sum, [](C a, C b) { return a + b; });
  make_rests(sum, inner, log);
  repeat(sum);
  each(
      [&](int64_t begin, int64_t some) { finish_columns(type, x, y, begin, some, top, sum, log); });
}

template <class C>
void softmax_all(ElementType type, const void* x, void* y, int64_t outer, int64_t n, int64_t inner,
                 bool log, ThreadPool& pool) {
  if (n == 0 || inner == 0) return;
  if (inner == 1) {
    return for_rows_of(outer, 4 * n, pool, [&](int64_t begin, int64_t end) {
      if constexpr (std::is_same_v<C, float>) {
        const auto* from = static_cast<const float*>(x) + begin * n;
        auto* to = static_cast<float*>(y) + begin * n;
        // By all rows, not those at hand: bits must not depend on who computes them.
        constexpr int64_t few_rows = 3;
        if (type == ElementType::float32 && log && n > few_elements &&
            log_softmax_short_rows(from, to, end - begin, n))
          return;
        if (type == ElementType::float32 && !log &&
            ((outer > few_rows && softmax_narrow_rows(from, to, end - begin, n)) ||
             softmax_short_rows(from, to, end - begin, n)))
          return;
      }
      if (n <= few_elements && outer > 1 && type == element_of<C>()) {
        return softmax_side_by_side(static_cast<const C*>(x) + begin * n,
                                    static_cast<C*>(y) + begin * n, end - begin, n, log);
      }
      for (int64_t r = begin; r < end; ++r) softmax_row<C>(type, x, y, r * n, n, log);
    });
  }
  const int64_t blocks = (inner + block - 1) / block;
  for_rows_of(outer * blocks, 4 * n * std::min(inner, block), pool,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  if (inner <= block / 2) {
                    softmax_few_columns<C>(type, x, y, i * n * inner, n, inner, log);
                    continue;
                  }
                  const int64_t column = i % blocks * block;
                  softmax_columns<C>(type, x, y, i / blocks * n * inner, n, inner, column,
                                     std::min(block, inner - column), log);
                }
              });
}

void softmax_or_log(ElementType type, const void* x, void* y, int64_t outer, int64_t n,
                    int64_t inner, bool log, ThreadPool& pool) {
  switch (type) {
    case ElementType::float32:
    case ElementType::float16:
    case ElementType::bfloat16: return softmax_all<float>(type, x, y, outer, n, inner, log, pool);
    case ElementType::float64: return softmax_all<double>(type, x, y, outer, n, inner, log, pool);
    default: fail(ErrorCode::unsupported, "Softmax does not take {}", name_of(type));
  }
}

// The first largest of n values `inner` apart; a NaN counts as the largest.
template <class C>
int64_t first_largest(ElementType type, const void* x, int64_t begin, int64_t n, int64_t inner) {
  int64_t best = 0;
  C top = value_at<C>(type, x, begin);
  for (int64_t i = 1; i < n && top == top; ++i) {
    const C v = value_at<C>(type, x, begin + i * inner);
    if (v > top || v != v) {
      top = v;
      best = i;
    }
  }
  return best;
}

int64_t first_largest(ElementType type, const void* x, int64_t begin, int64_t n, int64_t inner) {
  return type == ElementType::float64 ? first_largest<double>(type, x, begin, n, inner)
                                      : first_largest<float>(type, x, begin, n, inner);
}

void put_zeros(ElementType type, void* y, int64_t begin, int64_t n) {
  std::memset(element_at(type, y, begin), 0, static_cast<size_t>(n * (bit_width(type) / 8)));
}
void put_one(ElementType type, void* y, int64_t at) {
  if (type == ElementType::float64)
    put_value(type, y, at, 1.0);
  else
    put_value(type, y, at, 1.0f);
}

// Rows [first, first + rows), at most a block of them.
void hardmax_rows(ElementType type, const void* x, void* y, int64_t first, int64_t rows,
                  int64_t n) {
  int64_t hot[block];
  if (type == ElementType::float32 && n < INT32_MAX) {
    extreme_of_rows(true, false, static_cast<const float*>(x) + first * n, rows, n, hot);
  } else {
    for (int64_t r = 0; r < rows; ++r) hot[r] = first_largest(type, x, (first + r) * n, n, 1);
  }
  put_zeros(type, y, first * n, rows * n);
  for (int64_t r = 0; r < rows; ++r) put_one(type, y, (first + r) * n + hot[r]);
}

// `width` columns, at most a block of them, n elements `inner` apart in each.
void hardmax_columns(ElementType type, const void* x, void* y, int64_t base, int64_t n,
                     int64_t inner, int64_t width) {
  int64_t hot[block];
  if (type == ElementType::float32 && n < INT32_MAX) {
    extreme_of_columns(true, false, static_cast<const float*>(x) + base, inner, n, width, hot);
  } else {
    for (int64_t i = 0; i < width; ++i) hot[i] = first_largest(type, x, base + i, n, inner);
  }
  for (int64_t i = 0; i < n; ++i) put_zeros(type, y, base + i * inner, width);
  for (int64_t i = 0; i < width; ++i) put_one(type, y, base + hot[i] * inner + i);
}

}  // namespace

void softmax(ElementType type, const void* x, void* y, int64_t outer, int64_t n, int64_t inner,
             ThreadPool& pool) {
  softmax_or_log(type, x, y, outer, n, inner, false, pool);
}

void log_softmax(ElementType type, const void* x, void* y, int64_t outer, int64_t n, int64_t inner,
                 ThreadPool& pool) {
  softmax_or_log(type, x, y, outer, n, inner, true, pool);
}

void hardmax(ElementType type, const void* x, void* y, int64_t outer, int64_t n, int64_t inner,
             ThreadPool& pool) {
  const bool wide = type == ElementType::float64;
  if (!wide && type != ElementType::float32 && type != ElementType::float16 &&
      type != ElementType::bfloat16) {
    fail(ErrorCode::unsupported, "Hardmax does not take {}", name_of(type));
  }
  if (n == 0 || inner == 0) return;
  if (inner == 1) {
    return for_rows_of(outer, n, pool, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r += block)
        hardmax_rows(type, x, y, r, std::min(block, end - r), n);
    });
  }
  const int64_t blocks = (inner + block - 1) / block;
  for_rows_of(outer * blocks, n * std::min(inner, block), pool, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % blocks * block;
      hardmax_columns(type, x, y, i / blocks * n * inner + column, n, inner,
                      std::min(block, inner - column));
    }
  });
}

}  // namespace sardonyx::kernels
