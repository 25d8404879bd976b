// Internal to kernels/conv/conv_int8.cc, which is compiled once for each instruction set.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// Lines of output positions, and where each tap of a kernel finds its input.
struct TapLines {
  const int64_t* offsets = nullptr;  // of each tap from a position's first
  int64_t taps = 0;
  int64_t lines = 0, line_stride = 0;  // bytes between the inputs of lines
  int64_t count = 0, stride = 1;       // positions in a line, bytes between their inputs
};

}  // namespace sardonyx::kernels
