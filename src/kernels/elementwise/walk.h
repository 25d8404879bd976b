// Running an element-wise loop over a broadcast plan, in chunks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/elementwise/broadcast.h"

namespace sardonyx::kernels {

// Elements a chunk takes, about a microsecond's work where an element costs 0.1 ns.
inline constexpr int64_t element_grain = 8192;

// Whether so many elements had better stay on the caller's thread.
inline bool stays_alone(int64_t elements, const ThreadPool& pool) {
  constexpr int64_t worth_waking = 4 * element_grain;
  return elements <= 2 * element_grain || (elements <= worth_waking && pool.asleep());
}

// Calls body(begin, end) for chunks of [0, n), on several threads.
template <class Body>
void for_chunks(int64_t n, ThreadPool& pool, Body&& body) {
  if (stays_alone(n, pool)) {
    if (n > 0) body(int64_t{0}, n);
    return;
  }
  pool.parallel_for(n, element_grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

// Calls row(offsets, y, n) for each run of n elements inside output elements [begin, end) along
// which every input has a constant stride: plan.strides[i][rank - 1]. `offsets` are the inputs'.
template <class Row>
void walk_rows(const BroadcastPlan& plan, int64_t begin, int64_t end, Row&& row) {
  int64_t offsets[BroadcastPlan::max_inputs] = {};
  if (plan.rank == 0) {
    if (begin < end) row(offsets, begin, end - begin);
    return;
  }
  const int last = plan.rank - 1;
  int64_t index[BroadcastPlan::max_rank];
  int64_t rest = begin;
  for (int d = last; d >= 0; --d) {
    index[d] = rest % plan.dims[d];
    rest /= plan.dims[d];
    for (int i = 0; i < plan.inputs; ++i) offsets[i] += index[d] * plan.strides[i][d];
  }
  for (int64_t at = begin; at < end;) {
    const int64_t n = std::min(plan.dims[last] - index[last], end - at);
    row(offsets, at, n);
    at += n;
    index[last] += n;
    for (int i = 0; i < plan.inputs; ++i) offsets[i] += n * plan.strides[i][last];
    for (int d = last; d > 0 && index[d] == plan.dims[d]; --d) {
      index[d] = 0;
      ++index[d - 1];
      for (int i = 0; i < plan.inputs; ++i) {
        offsets[i] += plan.strides[i][d - 1] - plan.dims[d] * plan.strides[i][d];
      }
    }
  }
}

// walk_rows over the whole output, on several threads.
template <class Row>
void walk_all(const BroadcastPlan& plan, ThreadPool& pool, Row&& row) {
  for_chunks(plan.count, pool,
             [&](int64_t begin, int64_t end) { walk_rows(plan, begin, end, row); });
}

// The inputs' strides inside the rows that walk_rows gives.
inline int64_t row_stride(const BroadcastPlan& plan, int input) {
  return plan.rank == 0 ? 0 : plan.strides[input][plan.rank - 1];
}

}  // namespace sardonyx::kernels
