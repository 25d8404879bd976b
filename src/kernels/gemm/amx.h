// Products of bytes on the matrix tiles of AMX. Internal to kernels/gemm.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm_int8.h"

namespace sardonyx::kernels {

// byte_panel_product where has_amx(), for a number of groups that is a multiple
// of 16.
void byte_tiles_product(bool panel_signed, const uint8_t* rows, int64_t row_stride, int64_t count,
                        int64_t groups, const uint8_t* panel, int32_t* sums, BytesAhead ahead);

}  // namespace sardonyx::kernels
