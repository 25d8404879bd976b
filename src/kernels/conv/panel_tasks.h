// How a convolution that is a product is cut into tasks. Internal to kernels/conv.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/conv/geometry.h"
#include "kernels/gemm/blocking.h"

namespace sardonyx::kernels {

// Whether the weights of a group stay in the second-level cache.
inline bool weights_stay_near(const ConvGeometry& g) {
  return g.terms * g.group_out * 4 <= small_b_bytes;
}

// Each task is a block of pixels times some panels of output channels. Neighbouring tasks have the
// same block, which a worker prepares once.
class PanelTasks {
 public:
  // `blocks`: of all groups, and where they are cut image by image, of all images; `per_task`:
  // panels, see panels_per_task.
  PanelTasks(const Panels& panels, int64_t terms, int64_t blocks, int64_t per_task)
      : panels_(panels.count()),
        panel_work_(panels.width * terms),
        blocks_(blocks),
        per_task_(per_task),
        shares_(divide_up(panels_, per_task)) {}

  int64_t count() const { return blocks_ * shares_; }
  // Tasks that are worth handing to another thread, where a block has at most so many pixels.
  int64_t grain(int64_t pixels) const {
    return divide_up(task_work, std::max<int64_t>(1, pixels * per_task_ * panel_work_));
  }

  int64_t block(int64_t task) const { return task / shares_; }
  // Its panels are [begin, end).
  int64_t begin(int64_t task) const { return task % shares_ * per_task_; }
  int64_t end(int64_t task) const { return std::min(begin(task) + per_task_, panels_); }

 private:
  int64_t panels_;
  int64_t panel_work_;  // for each pixel
  int64_t blocks_;
  int64_t per_task_;
  int64_t shares_;  // of a block's panels
};

}  // namespace sardonyx::kernels
