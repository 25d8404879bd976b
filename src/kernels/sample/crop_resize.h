// Parts of images brought to one size.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

struct CropSizes {
  int64_t images = 0, channels = 0, height = 0, width = 0;
  int64_t crops = 0, out_height = 0, out_width = 0;
};

// y [crops, channels, out_height, out_width] from images [images, channels, height, width]. A box
// is y1, x1, y2, x2, where 0 and 1 are the first and the last pixel; `outside` is what lies around
// an image. Every image number must be in [0, images).
template <class T>
void crop_and_resize(const CropSizes& sizes, const T* x, const T* boxes, const int32_t* image,
                     bool nearest, T outside, T* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
