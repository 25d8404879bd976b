// Which elements of an axis lie in a window; inside pool/ only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/pool/pool.h"

namespace sardonyx::kernels {

// Window positions [begin, end) that fall inside the input, and the input position of position 0.
struct Span {
  int64_t begin, end;
  int64_t origin;
};

// Rounded up; most windows are not dilated, and a division takes as long as some of their elements.
inline int64_t steps_up(int64_t distance, int64_t step) {
  return step == 1 ? distance : (distance + step - 1) / step;
}

inline Span span_of(const PoolShape& s, int axis, int64_t out) {
  const int64_t origin = out * s.stride[axis] - s.pad_before[axis];
  const int64_t d = s.dilation[axis];
  const int64_t begin = origin >= 0 ? 0 : steps_up(-origin, d);
  const int64_t end = origin >= s.in[axis] ? 0 : steps_up(s.in[axis] - origin, d);
  return {std::min(begin, s.kernel[axis]), std::clamp<int64_t>(end, 0, s.kernel[axis]), origin};
}

// Window positions that lie inside input and padding together.
inline int64_t padded_positions(const PoolShape& s, int axis, const Span& span) {
  const int64_t room = s.in[axis] + s.pad_after[axis] - span.origin;
  return std::clamp<int64_t>(steps_up(room, s.dilation[axis]), 0, s.kernel[axis]);
}

}  // namespace sardonyx::kernels
