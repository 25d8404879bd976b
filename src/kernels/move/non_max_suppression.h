// NonMaxSuppression.
#pragma once

#include <cstdint>
#include <vector>

#include "base/counted.h"

namespace sardonyx::kernels {

struct SuppressionOptions {
  bool center_point_box = false;  // boxes are [x, y, width, height], else two corners [y, x]
  int64_t max_per_class = 0;      // boxes kept per batch and class
  float iou_threshold = 0;        // a box is dropped whose overlap is above
  bool has_score_threshold = false;
  float score_threshold = 0;  // only scores above are looked at
};

// boxes [batches, spatial, 4], scores [batches, classes, spatial]. Gives triples (batch, class,
// box), in order of batch, class, falling score; equal scores by lower box.
CountedVector<int64_t> non_max_suppression(const SuppressionOptions& options, int64_t batches,
                                           int64_t classes, int64_t spatial, const float* boxes,
                                           const float* scores);

}  // namespace sardonyx::kernels
