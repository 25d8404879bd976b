// The columns of a deformable convolution: its input sampled at shifted positions.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"

namespace sardonyx::kernels {

// columns[c][t][o] = mask * x[c] at (o * stride + t * dilation - pad + offset), linearly
// interpolated, 0 outside; for one image, T float or double. offset is [offset_groups, taps, rank,
// out...], mask (may be null) [offset_groups, taps, out...].
template <class T>
void deform_columns(const ConvParams& shape, int64_t offset_groups, const T* x, const T* offset,
                    const T* mask, T* columns, ThreadPool& pool);

}  // namespace sardonyx::kernels
