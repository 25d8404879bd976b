// Summing columns back into images: the second half of a transposed convolution, and Col2Im.
#pragma once

#include <complex>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"

namespace sardonyx::kernels {

// y[p][i * stride + t * dilation - pad_begin] += columns[p][t][i] for every kernel position t and
// grid position i for which that lies inside y. `shape.in` is the grid, `shape.out` the images; the
// first `planes` planes of y are overwritten, each starting from bias[p % biases] (null: 0).
void add_columns(const ConvParams& shape, int64_t planes, const float* columns, const float* bias,
                 int64_t biases, float* y, ThreadPool& pool);
void add_columns(const ConvParams& shape, int64_t planes, const double* columns, const double* bias,
                 int64_t biases, double* y, ThreadPool& pool);
void add_columns(const ConvParams& shape, int64_t planes, const uint64_t* columns,
                 const uint64_t* bias, int64_t biases, uint64_t* y, ThreadPool& pool);  // wraps
void add_columns(const ConvParams& shape, int64_t planes, const std::complex<float>* columns,
                 std::complex<float>* y, ThreadPool& pool);
void add_columns(const ConvParams& shape, int64_t planes, const std::complex<double>* columns,
                 std::complex<double>* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
