#include "kernels/rows/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/fail.h"
#include "kernels/rows/grain.h"
#include "kernels/rows/row_math.h"
#include "kernels/rows/values.h"

namespace sardonyx::kernels {
namespace {

// Columns of [n, inner] worked on together.
constexpr int64_t block = 256;

template <class C>
void softmax_row(ElementType type, const void* x, void* y, int64_t begin, int64_t n, bool log) {
  C top = least_of<C>();
  visit_values<C>(type, x, begin, n,
                  [&](const C* v, int64_t, int64_t some) { top = larger(top, row_max(v, some)); });
  C sum = 0;
  if (log) {
    visit_values<C>(type, x, begin, n,
                    [&](const C* v, int64_t, int64_t some) { sum += row_sum_exp(v, top, some); });
    // x - top first: exact where the two are close, whatever their size.
    const C rest = std::log(sum);
    map_values<C>(type, x, y, begin, n, [&](const C* v, C* to, int64_t, int64_t some) {
      row_affine(v, C{1}, -top, to, some);
      row_affine(to, C{1}, -rest, to, some);
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

// Columns [column, column + width) of one [n, inner] matrix that begins at element `base`.
template <class C>
void softmax_columns(ElementType type, const void* x, void* y, int64_t base, int64_t n,
                     int64_t inner, int64_t column, int64_t width, bool log) {
  alignas(64) C top[block], sum[block], exps[block];
  std::fill_n(top, width, least_of<C>());
  std::fill_n(sum, width, C{0});
  for (int64_t i = 0; i < n; ++i) {
    visit_values<C>(type, x, base + i * inner + column, width,
                    [&](const C* v, int64_t at, int64_t some) {
                      column_steps(ColumnOp::max, v, 0, 1, top + at, some);
                    });
  }
  for (int64_t i = 0; i < n; ++i) {
    visit_values<C>(
        type, x, base + i * inner + column, width,
        [&](const C* v, int64_t at, int64_t some) { column_exp(v, top + at, sum + at, some); });
  }
  for (int64_t j = 0; j < width; ++j) sum[j] = log ? std::log(sum[j]) : C{1} / sum[j];
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = base + i * inner + column;
    map_values<C>(type, x, y, row, width, [&](const C* v, C* to, int64_t at, int64_t some) {
      if (log) {
        for (int64_t j = 0; j < some; ++j) to[j] = v[j] - top[at + j] - sum[at + j];
        return;
      }
      std::fill_n(exps, some, C{0});
      column_exp(v, top + at, exps, some);
      for (int64_t j = 0; j < some; ++j) to[j] = exps[j] * sum[at + j];
    });
  }
}

// Rows of few elements, a block of them turned so that vectors hold an element of many.
constexpr int64_t few_elements = 16;
template <class C>
void softmax_side_by_side(const C* x, C* y, int64_t rows, int64_t n, bool log) {
  alignas(64) C turned[few_elements * block];
  for (int64_t r = 0; r < rows; r += block, x += block * n, y += block * n) {
    const int64_t width = std::min(block, rows - r);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = 0; i < n; ++i) turned[i * block + j] = x[j * n + i];
    }
    softmax_columns<C>(element_of<C>(), turned, turned, 0, n, block, 0, width, log);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = 0; i < n; ++i) y[j * n + i] = turned[i * block + j];
    }
  }
}

// Few columns, [n, inner] of them from element `base` on: as many rows as fill a block lie side by
// side, each column with sums of its own, which are joined in the end.
template <class C>
void softmax_few_columns(ElementType type, const void* x, void* y, int64_t base, int64_t n,
                         int64_t inner, bool log) {
  alignas(64) C top[block], sum[block], exps[block];
  const int64_t rows = std::min(n, block / inner), width = rows * inner, total = n * inner;
  std::fill_n(top, width, least_of<C>());
  std::fill_n(sum, width, C{0});
  const auto visit = [&](auto&& visitor) {
    for (int64_t i = 0; i < total; i += width)
      visit_values<C>(type, x, base + i, std::min(width, total - i), visitor);
  };
  const auto join = [&](C* values, auto&& op) {
    for (int64_t c = 0; c < inner; ++c)
      for (int64_t i = c + inner; i < width; i += inner) values[c] = op(values[c], values[i]);
    for (int64_t i = inner; i < width; ++i) values[i] = values[i - inner];
  };
  visit([&](const C* v, int64_t at, int64_t some) {
    column_steps(ColumnOp::max, v, 0, 1, top + at, some);
  });
  join(top, [](C a, C b) { return larger(a, b); });
  visit([&](const C* v, int64_t at, int64_t some) { column_exp(v, top + at, sum + at, some); });
  join(sum, [](C a, C b) { return a + b; });
  for (int64_t j = 0; j < width; ++j) sum[j] = log ? std::log(sum[j]) : C{1} / sum[j];
  for (int64_t i = 0; i < total; i += width) {
    map_values<C>(type, x, y, base + i, std::min(width, total - i),
                  [&](const C* v, C* to, int64_t at, int64_t some) {
                    if (log) {
                      for (int64_t j = 0; j < some; ++j) to[j] = v[j] - top[at + j] - sum[at + j];
                      return;
                    }
                    std::fill_n(exps, some, C{0});
                    column_exp(v, top + at, exps, some);
                    for (int64_t j = 0; j < some; ++j) to[j] = exps[j] * sum[at + j];
                  });
  }
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
  for_rows_of(outer, n * inner, pool, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const int64_t base = o * n * inner;
      std::memset(element_at(type, y, base), 0,
                  static_cast<size_t>(n * inner * (bit_width(type) / 8)));
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t hot = wide ? first_largest<double>(type, x, base + i, n, inner)
                                 : first_largest<float>(type, x, base + i, n, inner);
        if (wide) {
          put_value(type, y, base + hot * inner + i, 1.0);
        } else {
          put_value(type, y, base + hot * inner + i, 1.0f);
        }
      }
    }
  });
}

}  // namespace sardonyx::kernels
