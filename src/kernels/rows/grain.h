// How rows are cut into chunks; inside rows/ and pool/ only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// Elements worth a fork where each costs some tenths of a nanosecond.
inline constexpr int64_t row_grain = 8192;

// body(begin, end) over `rows` rows of about `elements` elements each.
template <class Body>
void for_rows_of(int64_t rows, int64_t elements, ThreadPool& pool, Body&& body) {
  if (rows <= 0) return;
  const int64_t grain = std::max<int64_t>(1, row_grain / std::max<int64_t>(elements, 1));
  const int64_t most = pool.asleep() ? 4 * grain : grain;
  if (rows <= most) return body(int64_t{0}, rows);
  pool.parallel_for(rows, grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

}  // namespace sardonyx::kernels
