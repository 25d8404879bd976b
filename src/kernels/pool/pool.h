// Pooling over windows of N x C x spatial tensors, spatial rank 1 to 3.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// Window geometry; unused leading axes keep their defaults: a rank 2 pool sets [1] and [2].
struct PoolShape {
  static constexpr int axes = 3;
  int64_t planes = 0;  // N times C
  int64_t in[axes] = {1, 1, 1};
  int64_t out[axes] = {1, 1, 1};
  int64_t kernel[axes] = {1, 1, 1};
  int64_t stride[axes] = {1, 1, 1};
  int64_t dilation[axes] = {1, 1, 1};
  int64_t pad_before[axes] = {};
  int64_t pad_after[axes] = {};
};

// Padding below 0 crops. Throws Error (bad_input) for sizes below 1, cropping of more than an axis,
// and what lies beyond 2^40.
void check_pool_shape(const PoolShape& shape);

// Padding never wins; a window with nothing but padding gives the lowest value and index -1.
// `indices` (optional) are positions in the whole [planes, in…] tensor, with the spatial axes
// counted from the first one fastest when column_major. float16 to float64, int8, uint8 and wider.
void max_pool(ElementType type, const PoolShape& shape, const void* x, void* y, int64_t* indices,
              bool column_major, ThreadPool& pool);

// What flows back: each element of dx is the sum of dy over the windows that max_pool took it from.
void max_pool_gradient(const PoolShape& shape, const float* x, const float* dy, float* dx,
                       ThreadPool& pool);
void max_pool_gradient(const PoolShape& shape, const double* x, const double* dy, double* dx,
                       ThreadPool& pool);

// The mean over the window's elements inside the input, or inside input and padding.
void average_pool(ElementType type, const PoolShape& shape, const void* x, void* y,
                  bool count_include_pad, ThreadPool& pool);

// The same with channels last: x is [planes, in…, channels], planes counting the batch. float32;
// the largest also of int8 and uint8.
void max_pool_nhwc(ElementType type, const PoolShape& shape, int64_t channels, const void* x,
                   void* y, ThreadPool& pool);
void average_pool_nhwc(const PoolShape& shape, int64_t channels, const float* x, float* y,
                       bool count_include_pad, ThreadPool& pool);

// (sum |x|^p)^(1/p).
void lp_pool(ElementType type, const PoolShape& shape, const void* x, void* y, double p,
             ThreadPool& pool);

// y[indices[i]] = x[i] for i < n, the other `size` elements of y zero. An index outside throws
// Error (run_failed). Every type with a Cell but strings.
void max_unpool(ElementType type, const void* x, const int64_t* indices, int64_t n, void* y,
                int64_t size, ThreadPool& pool);

}  // namespace sardonyx::kernels
