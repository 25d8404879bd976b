// Products of bytes on processors with AVX2, or AVX-512, that have no dot products of bytes (VNNI).
//
// Their instruction that multiplies bytes adds two products in 16 bits, where they may not fit: it
// takes the groups of terms whose signed operands are small enough. Of two groups whose operands
// are smaller still the sums are added as they are. Of those that do not fit, the operands are
// widened to pairs of 16 bits, terms 0 and 2 of a group apart from 1 and 3. Which groups are which
// is found when a signed panel is packed, and stands behind it. Internal to kernels/gemm.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm_int8.h"

namespace sardonyx::kernels {

// Whether products on this machine are those below.
bool sums_in_16_bits();

// What stands behind the `groups` of a signed panel, found for one strip after the other.
int64_t byte_flags_bytes(int64_t groups);
void find_byte_flags(int8_t* panel, int64_t groups, int64_t strip);

// byte_panel_product of more than a few rows.
void avx2_panel_product(bool panel_signed, const uint8_t* rows, int64_t row_stride, int64_t count,
                        int64_t groups, const uint8_t* panel, int64_t columns, int32_t* sums,
                        BytesAhead ahead);

}  // namespace sardonyx::kernels
