// What Gather and Scatter share: indices that are checked, and the walks that follow them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernels/move/gather.h"

namespace sardonyx::kernels {

[[noreturn]] void bad_index(int64_t index, int64_t dim, int64_t position);

// An index in [-dim, dim) as one in [0, dim). `position` says which it is, for the message.
inline int64_t wrapped(int64_t index, int64_t dim, int64_t position) {
  const auto size = static_cast<uint64_t>(dim);
  if (static_cast<uint64_t>(index) < size) [[likely]]
    return index;
  const int64_t forward = index + (index < 0 ? dim : 0);
  if (static_cast<uint64_t>(forward) >= size) bad_index(index, dim, position);
  return forward;
}

void check_index_count(const Indices& indices, int64_t expected);
int64_t checked_elements(std::span<const int64_t> shape);

// Elements of the indices in order, and where in the data they stand but for the axis.
struct AxisWalk {
  static constexpr int max_rank = 16;
  int32_t rank =
      0;  // at least 1; dimensions of one index are left out, and those that walk alike one
  int64_t count = 0;
  int64_t axis_dim = 0, axis_stride = 0;
  int64_t dims[max_rank] = {};     // of the indices
  int64_t strides[max_rank] = {};  // of the data; 0 along the axis
};
AxisWalk walk_axis(std::span<const int64_t> shape, int64_t axis,
                   std::span<const int64_t> index_shape);

// Indices that name one element again and again, as those of an Expand do, from so many on.
constexpr int64_t min_equal_indices = 8;

template <class Index>
bool all_equal(const Index* indices, int64_t n) {
  return indices[0] == indices[n - 1] &&
         std::memcmp(indices, indices + 1, static_cast<size_t>(n - 1) * sizeof(Index)) == 0;
}

template <class Index, class Visit>
void visit_places(const AxisWalk& walk, const Index* indices, int64_t begin, int64_t end,
                  const Visit& visit) {
  if (begin >= end) return;
  const int last = walk.rank - 1;
  int64_t index[AxisWalk::max_rank] = {}, offset = 0, rest = begin;
  for (int d = last; d >= 0; --d) {
    index[d] = rest % walk.dims[d];
    rest /= walk.dims[d];
    offset += index[d] * walk.strides[d];
  }
  const int64_t dim = walk.axis_dim, along = walk.axis_stride, step = walk.strides[last];
  for (int64_t i = begin;;) {
    const int64_t stop = std::min(end, i + walk.dims[last] - index[last]);
    if (along == 1 && step == 0) {
      for (; i < stop; ++i) visit(offset + wrapped(indices[i], dim, i), i, int64_t{1});
    } else if (step == 1 && stop - i >= min_equal_indices && all_equal(indices + i, stop - i)) {
      visit(offset + wrapped(indices[i], dim, i) * along, i, stop - i);
      i = stop;
    } else {
      for (int64_t at = offset; i < stop; ++i, at += step)
        visit(at + wrapped(indices[i], dim, i) * along, i, int64_t{1});
    }
    if (i == end) return;
    offset -= index[last] * step;
    index[last] = 0;
    for (int d = last; d-- > 0;) {
      offset += walk.strides[d];
      if (++index[d] < walk.dims[d]) break;
      offset -= walk.dims[d] * walk.strides[d];
      index[d] = 0;
    }
  }
}

// visit(element of the data, i, n) for indices [begin, end), n of them at a time.
template <class Visit>
void visit_places(const AxisWalk& walk, const Indices& indices, int64_t begin, int64_t end,
                  const Visit& visit) {
  if (indices.wide)
    visit_places(walk, static_cast<const int64_t*>(indices.data), begin, end, visit);
  else
    visit_places(walk, static_cast<const int32_t*>(indices.data), begin, end, visit);
}

// Index tuples as the ND operators have them: each names a run of `inner` elements of the data.
struct TupleWalk {
  static constexpr int max_depth = 32;
  int32_t depth = 0;
  int64_t inner = 1;
  int64_t tuples = 0;
  int64_t tuples_per_batch = 1;
  int64_t batch_stride = 0;
  int64_t dims[max_depth] = {};
  int64_t strides[max_depth] = {};

  int64_t offset(const Indices& indices, int64_t tuple) const;
};
TupleWalk walk_tuples(std::span<const int64_t> shape, int64_t batch_dims,
                      std::span<const int64_t> index_shape);

}  // namespace sardonyx::kernels
