// Normalisations. float16, bfloat16, float32 and float64; the 16-bit types are summed and scaled in
// float32. Where a pointer is said to be optional it may be null. y may be x.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// How scale and bias repeat over the rows: row r takes parameter row (r / every) % rows. One
// parameter row for all is {1, 1}.
struct RowParameters {
  int64_t every = 1;
  int64_t rows = 1;
};

// x is [rows, n]: y = (x - mean) / (sqrt(variance + epsilon) + beside) * scale + bias. scale, bias
// (optional) are [parameters.rows, n]; mean and inv_std_dev (optional outputs; the latter is what
// x - mean is multiplied by) are [rows] of mean_type: float32, or `type` itself.
void layer_norm(ElementType type, const void* x, const void* scale, const void* bias, void* y,
                ElementType mean_type, void* mean, void* inv_std_dev, int64_t rows, int64_t n,
                double epsilon, ThreadPool& pool, RowParameters parameters = {}, double beside = 0);

// y = x / sqrt(mean(x^2) + epsilon) * scale (optional).
void rms_norm(ElementType type, const void* x, const void* scale, void* y, int64_t rows, int64_t n,
              double epsilon, ThreadPool& pool, RowParameters parameters = {});

// x is [n, channels, inner]; each of `groups` groups of channels is normalised alone; scale and
// bias (optional) are [channels]. groups = channels is InstanceNormalization.
void group_norm(ElementType type, const void* x, const void* scale, const void* bias, void* y,
                int64_t n, int64_t channels, int64_t inner, int64_t groups, double epsilon,
                ThreadPool& pool);

// Inference: y = (x - mean) / sqrt(variance + epsilon) * scale + bias; the four are [channels].
// scale and bias are of scale_type, mean and variance of mean_type.
void batch_norm(ElementType type, const void* x, ElementType scale_type, const void* scale,
                const void* bias, ElementType mean_type, const void* mean, const void* variance,
                void* y, int64_t n, int64_t channels, int64_t inner, double epsilon,
                ThreadPool& pool);

// Mean and (population) variance of each channel of [n, channels, inner], written as mean_type.
void channel_moments(ElementType type, const void* x, ElementType mean_type, void* mean,
                     void* variance, int64_t n, int64_t channels, int64_t inner, ThreadPool& pool);

// Along the middle of [outer, n, inner]: x / ||x||_p, p 1 or 2; a zero norm gives zeros.
void lp_norm(ElementType type, const void* x, void* y, int64_t outer, int64_t n, int64_t inner,
             int p, ThreadPool& pool);

// LocalResponseNormalization on [n, channels, inner]: y = x / (bias + alpha / size * sum of the
// squares of the channels within the window)^beta. y may not be x.
void lrn(ElementType type, const void* x, void* y, int64_t n, int64_t channels, int64_t inner,
         int64_t size, float alpha, float beta, float bias, ThreadPool& pool);

}  // namespace sardonyx::kernels
