// How matrix tiles (AMX) are set up.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// What the instruction that configures tiles loads. It must not be on the stack: the compiler takes
// the instruction to read its first bytes alone.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  // Eight tiles of 64 bytes in each of 16 rows, but of `rows_of_five` in each of the first five.
  constexpr explicit TileConfig(int rows_of_five = 16) {
    for (int i = 0; i < 8; ++i) {
      row_bytes[i] = 64;
      rows[i] = static_cast<uint8_t>(i < 5 ? rows_of_five : 16);
    }
  }
};

}  // namespace sardonyx::kernels
