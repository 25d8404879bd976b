// Which elements of an axis lie in a window; inside pool/ only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

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

// --- Windows of all axes
// --------------------------------------------------------------------------

struct WindowSpans {
  Span at[PoolShape::axes];
  bool empty() const {
    return at[0].begin >= at[0].end || at[1].begin >= at[1].end || at[2].begin >= at[2].end;
  }
};

// visit(offset in the plane) for each element of the window inside the input.
template <class Visit>
void visit_window(const PoolShape& s, const WindowSpans& w, Visit&& visit) {
  if (w.empty()) return;
  for (int64_t i = w.at[0].begin; i < w.at[0].end; ++i) {
    const int64_t plane = (w.at[0].origin + i * s.dilation[0]) * s.in[1];
    for (int64_t j = w.at[1].begin; j < w.at[1].end; ++j) {
      const int64_t row = (plane + w.at[1].origin + j * s.dilation[1]) * s.in[2];
      for (int64_t k = w.at[2].begin; k < w.at[2].end; ++k) {
        visit(row + w.at[2].origin + k * s.dilation[2]);
      }
    }
  }
}

inline int64_t volume(const int64_t* dims) { return dims[0] * dims[1] * dims[2]; }

// Output pixels of a row, from k on, whose windows reach over neither of its ends, nor into what is
// cropped.
inline int64_t whole_windows(const PoolShape& s, int64_t k) {
  const int64_t reach = (s.kernel[2] - 1) * s.dilation[2];
  const int64_t row = s.in[2] + std::min<int64_t>(0, s.pad_after[2]);
  const int64_t end = row - reach + s.pad_before[2];  // of the places where windows begin
  if (k * s.stride[2] < s.pad_before[2] || end <= k * s.stride[2]) return 0;
  return std::min(s.out[2], (end - 1) / s.stride[2] + 1) - k;
}

// Windows of so few elements, in planes whose places are 32 bits.
inline constexpr int64_t max_taps = 64;
inline bool has_few_taps(const PoolShape& s) {
  return s.kernel[0] <= max_taps && s.kernel[1] <= max_taps && s.kernel[2] <= max_taps &&
         volume(s.kernel) <= max_taps && volume(s.in) <= std::numeric_limits<int32_t>::max();
}

}  // namespace sardonyx::kernels
