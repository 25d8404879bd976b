// Products of bytes by the dot products that most Arm processors have (FEAT_DotProd). These take
// two signed factors, so that the operand without a sign gives 128 less of each byte; what its
// products then lack, 128 times the sum of the other operand, stands behind a signed panel for each
// column. Internal to kernels/gemm; for aarch64.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm_int8.h"

namespace sardonyx::kernels {

// What stands behind the groups of a signed panel where has_neon_dot(), found for one strip after
// the other.
inline constexpr int64_t lost_of_columns_bytes = 4 * byte_panel_columns;
void find_lost_of_columns(int8_t* panel, int64_t groups, int64_t strip);

// byte_panel_product where has_neon_dot().
void neon_panel_product(bool panel_signed, const uint8_t* rows, int64_t row_stride, int64_t count,
                        int64_t groups, const uint8_t* panel, int64_t columns, int32_t* sums);

}  // namespace sardonyx::kernels
