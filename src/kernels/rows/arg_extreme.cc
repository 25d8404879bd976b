#include "kernels/rows/arg_extreme.h"

#include <algorithm>

#include "base/fail.h"
#include "kernels/rows/extremes.h"
#include "kernels/rows/grain.h"
#include "kernels/rows/reduce.h"
#include "kernels/rows/row_math.h"
#include "kernels/rows/values.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t block = 256;  // columns searched together

template <class T>
constexpr bool is_nan(T v) {
  return v != v;
}

// Extremes of `width` columns at once, `inner` apart from row to row.
template <class C>
void extreme_columns(bool largest, bool select_last, ElementType type, const void* x, int64_t* y,
                     int64_t base, int64_t n, int64_t inner, int64_t width) {
  if (type == ElementType::float32 && n < INT32_MAX) {
    return extreme_of_columns(largest, select_last, static_cast<const float*>(x) + base, inner, n,
                              width, y);
  }
  C best[block];
  for (int64_t i = 0; i < n; ++i) {
    visit_values<C>(type, x, base + i * inner, width, [&](const C* v, int64_t at, int64_t some) {
      for (int64_t j = 0; j < some; ++j) {
        C& b = best[at + j];
        const bool tie = v[j] == b || (is_nan(v[j]) && is_nan(b));
        const bool beyond = largest ? v[j] > b : v[j] < b;
        const bool better = !is_nan(b) && (beyond || is_nan(v[j]));
        if (i == 0 || better || (select_last && tie)) {
          b = v[j];
          y[at + j] = i;
        }
      }
    });
  }
}

template <class C>
int64_t extreme_of_short_row(bool largest, bool select_last, const C* x, int64_t n) {
  C best = x[0];
  int64_t found = 0;
  for (int64_t i = 1; i < n; ++i) {
    const C v = x[i];
    const bool beyond = largest ? v > best : v < best;
    const bool tie = v == best || (is_nan(v) && is_nan(best));
    if ((!is_nan(best) && (beyond || is_nan(v))) || (select_last && tie)) {
      best = v;
      found = i;
    }
  }
  return found;
}

template <class C>
int64_t extreme_row(bool largest, bool select_last, ElementType type, const void* x, int64_t base,
                    int64_t n) {
  C best = largest ? min_of<C>() : greatest_of<C>();
  visit_values<C>(type, x, base, n, [&](const C* v, int64_t, int64_t some) {
    best = largest ? larger(best, row_max(v, some)) : smaller(best, row_min(v, some));
  });
  int64_t found = -1;
  visit_values<C>(type, x, base, n, [&](const C* v, int64_t at, int64_t some) {
    if (found >= 0 && !select_last) return;
    for (int64_t j = 0; j < some; ++j) {
      if (v[j] == best || (is_nan(v[j]) && is_nan(best))) {
        found = at + j;
        if (!select_last) return;
      }
    }
  });
  return found;
}

template <class C>
void extreme_all(bool largest, bool select_last, ElementType type, const void* x, int64_t* y,
                 int64_t outer, int64_t n, int64_t inner, ThreadPool& pool) {
  if (inner == 1) {
    constexpr int64_t short_row = 16;
    return for_rows_of(outer, n, pool, [&](int64_t begin, int64_t end) {
      if (n <= short_row && type == element_of<C>()) {
        const C* rows = static_cast<const C*>(x);
        for (int64_t o = begin; o < end; ++o)
          y[o] = extreme_of_short_row(largest, select_last, rows + o * n, n);
        return;
      }
      if (type == ElementType::float32 && n < INT32_MAX) {
        return extreme_of_rows(largest, select_last, static_cast<const float*>(x) + begin * n,
                               end - begin, n, y + begin);
      }
      for (int64_t o = begin; o < end; ++o) {
        y[o] = extreme_row<C>(largest, select_last, type, x, o * n, n);
      }
    });
  }
  const int64_t blocks = (inner + block - 1) / block;
  for_rows_of(outer * blocks, n * std::min(inner, block), pool, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / blocks;
      const int64_t column = i % blocks * block;
      extreme_columns<C>(largest, select_last, type, x, y + o * inner + column,
                         o * n * inner + column, n, inner, std::min(block, inner - column));
    }
  });
}

}  // namespace

void arg_extreme(bool largest, bool select_last, ElementType type, const void* x, int64_t* y,
                 int64_t outer, int64_t n, int64_t inner, ThreadPool& pool) {
  if (outer == 0 || inner == 0) return;
  if (n == 0) fail(ErrorCode::run_failed, "the extreme of an axis without elements is nowhere");
  if (is_floating(type) && bit_width(type) >= 8 && type != ElementType::float64) {
    extreme_all<float>(largest, select_last, type, x, y, outer, n, inner, pool);
  } else if (type == ElementType::float64) {
    extreme_all<double>(largest, select_last, type, x, y, outer, n, inner, pool);
  } else if (type == ElementType::uint64) {
    extreme_all<uint64_t>(largest, select_last, type, x, y, outer, n, inner, pool);
  } else if (supports(ReduceOp::max, type)) {
    extreme_all<int64_t>(largest, select_last, type, x, y, outer, n, inner, pool);
  } else {
    fail(ErrorCode::unsupported, "ArgMax and ArgMin do not take {}", name_of(type));
  }
}

}  // namespace sardonyx::kernels
