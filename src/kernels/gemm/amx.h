// Products of bytes on the matrix tiles of AMX. Internal to kernels/gemm.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "kernels/gemm/gemm_int8.h"

namespace sardonyx::kernels {

// Whether matrix tiles are there, and take rows of so many groups.
inline bool byte_tiles_take(int64_t groups) { return groups % 16 == 0 && groups > 0 && has_amx(); }

// Whether they are worth their setting up, too.
inline bool byte_tiles_apply(int64_t rows, int64_t groups) {
  constexpr int64_t few_rows = 4;
  return rows > few_rows && byte_tiles_take(groups);
}

enum class SignedBytes { rows, panel, both };

// byte_panel_product where has_amx(), for a number of groups that is a multiple of 16. The sums of
// each row begin with the 64 numbers of `start`, or with 0 where that is null. Of 32 columns and
// fewer only the first 32 sums may be written.
void byte_tiles_product(SignedBytes which, const uint8_t* rows, int64_t row_stride, int64_t count,
                        int64_t groups, const uint8_t* panel, int64_t columns, const int32_t* start,
                        int32_t* sums, BytesAhead ahead);

}  // namespace sardonyx::kernels
