// The gradient of a convolution's weights:
// dw[m][c][t] = sum over n, o of dy[n][m][o] * x[n][c][o * stride + t * dilation - pad].
//
// The shapes are those of conv.h, channels first: x is batch x in_channels x in..., dy is batch x
// out_channels x out..., dw is out_channels x in_channels/group x kernel...; all dense, positions
// outside x are 0, and out is any. pad_end is not read. Sums are cut into chunks by the sizes
// alone, so that results do not depend on the number of threads. Nothing here allocates.
#pragma once

#include <cstdint>

#include "kernels/conv/conv.h"

namespace sardonyx::kernels {

// Memory for a run, aligned to 64 bytes.
int64_t conv_weight_gradient_scratch_bytes(const ConvParams& shape, int threads);

void conv_weight_gradient(const ConvParams& shape, const float* x, const float* dy, float* dw,
                          void* scratch, ThreadPool& pool);

// The plain definition, one sum at a time.
void conv_weight_gradient(const ConvParams& shape, const double* x, const double* dy, double* dw,
                          ThreadPool& pool);

// The name of the way that a run takes.
const char* conv_weight_gradient_path(const ConvParams& shape);

// One pair of a channel of x and a channel of dy: see weight_gradient.cc. Internal to kernels/conv.
struct ConvGeometry;
struct PlaneGradient {
  const ConvGeometry& geometry;
  const float* lines;   // of x, cut into the phases of the stride along the last axis
  int64_t line_floats;  // of all phases of a line
  int64_t phase_floats;
  const float* dy;
  double* sums;  // one for each tap, added to
};
void add_plane_gradient(const PlaneGradient& job);

}  // namespace sardonyx::kernels
