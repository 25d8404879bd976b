// Causal depthwise convolution along one axis, with what came before as a state.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

struct CausalConvParams {
  int64_t batch = 0, channels = 0, length = 0, taps = 0;  // at least one tap
  bool silu = false;                                      // y = y * sigmoid(y)
};

// x, y: [batch, channels, length]. weights: [channels, taps]. bias: [channels] or null. past and
// present: [batch, channels, taps - 1], the inputs before x and those before what comes next;
// past may be null (zeros), present may be null; they may be one. T is float or double.
template <class T>
void causal_conv(const CausalConvParams& shape, const T* x, const T* weights, const T* bias,
                 const T* past, T* y, T* present, ThreadPool& pool);

}  // namespace sardonyx::kernels
