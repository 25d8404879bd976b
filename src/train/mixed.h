// Seeds and draws that follow from one another without a generator's state.
#pragma once

#include <cstdint>

namespace sardonyx {

// Another number for each z, without a pattern (SplitMix64).
inline uint64_t mixed(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace sardonyx
