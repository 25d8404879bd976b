// Internal to kernels/conv/depthwise_bytes.cc, which is compiled once for each instruction set.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// The taps of one output pixel that lie inside the input: their pixels and weights.
struct ByteTaps {
  static constexpr int64_t most = 256;
  int64_t count = 0;
  const uint8_t* x[most];
  const float* weights[most];
};

}  // namespace sardonyx::kernels
