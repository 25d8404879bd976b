// The boxes that suppression has kept, to be compared with another; internal to kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/counted.h"

namespace sardonyx::kernels {

struct Box {
  float y0, x0, y1, x1;  // y0 <= y1, x0 <= x1 but for NaN
  float area() const { return (y1 - y0) * (x1 - x0); }
};

// Boxes in groups, of each their coordinates side by side.
class SelectedBoxes {
 public:
  static constexpr int64_t group = 16, fields = 5;

  int64_t count() const { return count_; }
  void clear();
  void add(const Box& box);
  // Whether the intersection with one of them, divided by the union, is above the threshold.
  bool any_overlaps(const Box& box, float threshold) const;

 private:
  int64_t count_ = 0;
  CountedVector<float>
      values_;  // [groups, fields, group]: y0, x0, y1, x1, area; places not taken are 0
};

}  // namespace sardonyx::kernels
