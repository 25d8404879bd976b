// What Gather and Scatter share: indices that are checked, and the walks that follow them.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/move/gather.h"

namespace sardonyx::kernels {

[[noreturn]] void bad_index(int64_t index, int64_t dim, int64_t position);

// An index in [-dim, dim) as one in [0, dim). `position` says which it is, for the message.
inline int64_t wrapped(int64_t index, int64_t dim, int64_t position) {
  const int64_t forward = index < 0 ? index + dim : index;
  if (forward < 0 || forward >= dim) bad_index(index, dim, position);
  return forward;
}

void check_index_count(const Indices& indices, int64_t expected);
int64_t checked_elements(std::span<const int64_t> shape);

// Elements of the indices in order, and where in the data they stand but for the axis.
struct AxisWalk {
  static constexpr int max_rank = 16;
  int32_t rank = 0;
  int64_t count = 0;
  int64_t axis_dim = 0, axis_stride = 0;
  int64_t dims[max_rank] = {};     // of the indices
  int64_t strides[max_rank] = {};  // of the data; 0 along the axis
};
AxisWalk walk_axis(std::span<const int64_t> shape, int64_t axis,
                   std::span<const int64_t> index_shape);

struct AxisPosition {
  AxisPosition(const AxisWalk& w, int64_t position) : walk(w) {
    for (int d = walk.rank; d-- > 0;) {
      index[d] = position % walk.dims[d];
      position /= walk.dims[d];
      offset += index[d] * walk.strides[d];
    }
  }
  void step() {
    for (int d = walk.rank; d-- > 0;) {
      offset += walk.strides[d];
      if (++index[d] < walk.dims[d]) return;
      offset -= walk.dims[d] * walk.strides[d];
      index[d] = 0;
    }
  }
  const AxisWalk& walk;
  int64_t index[AxisWalk::max_rank] = {};
  int64_t offset = 0;
};

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
