#include "kernels/move/non_max_suppression.h"

#include <algorithm>

#include "kernels/move/selected_boxes.h"

namespace sardonyx::kernels {
namespace {

Box box_of(const float* b, bool center) {
  if (center) {
    const float w = b[2] / 2, h = b[3] / 2;
    return {b[1] - h, b[0] - w, b[1] + h, b[0] + w};
  }
  const auto [y0, y1] = std::minmax(b[0], b[2]);
  const auto [x0, x1] = std::minmax(b[1], b[3]);
  return {y0, x0, y1, x1};
}

struct Candidate {
  float score;
  int64_t box;
};

}  // namespace

CountedVector<int64_t> non_max_suppression(const SuppressionOptions& options, int64_t batches,
                                           int64_t classes, int64_t spatial, const float* boxes,
                                           const float* scores) {
  CountedVector<int64_t> chosen;
  if (options.max_per_class <= 0) return chosen;
  CountedVector<Candidate> candidates;
  SelectedBoxes kept;
  for (int64_t pair = 0; pair < batches * classes; ++pair) {
    const int64_t batch = pair / classes;
    candidates.clear();
    kept.clear();
    for (int64_t i = 0; i < spatial; ++i) {
      const float score = scores[pair * spatial + i];
      if (score != score) continue;
      if (!options.has_score_threshold || score > options.score_threshold) {
        candidates.push_back({score, i});
      }
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.score > b.score || (a.score == b.score && a.box < b.box);
    });
    for (const Candidate& candidate : candidates) {
      if (kept.count() >= options.max_per_class) break;
      const Box box =
          box_of(boxes + (batch * spatial + candidate.box) * 4, options.center_point_box);
      if (kept.any_overlaps(box, options.iou_threshold)) continue;
      kept.add(box);
      chosen.insert(chosen.end(), {batch, pair % classes, candidate.box});
    }
  }
  return chosen;
}

}  // namespace sardonyx::kernels
