// Pooling over regions of interest: RoiAlign and MaxRoiPool.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

struct RoiShape {
  int64_t batch = 0, channels = 0, height = 0, width = 0;  // of x
  int64_t rois = 0, out_height = 0, out_width = 0;
  double spatial_scale = 1;
  // RoiAlign only.
  int64_t sampling_ratio = 0;  // samples along each side of a bin; 0: as many as input pixels
  bool half_pixel = true;
  bool maximum = false;  // else the average
};

// rois [rois, 4] as x1, y1, x2, y2; images says of each which batch it is in. An index outside [0,
// batch) and a region that would need more than 65536 samples along a side of a bin throw Error
// (run_failed).
template <class T>
void roi_align(const RoiShape& shape, const T* x, const T* rois, const int64_t* images, T* y,
               ThreadPool& pool);

// rois [rois, 5] as batch, x1, y1, x2, y2; bins that hold no pixel give 0.
template <class T>
void max_roi_pool(const RoiShape& shape, const T* x, const T* rois, T* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
