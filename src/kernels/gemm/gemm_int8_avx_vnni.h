// Products of bytes by the dot products that processors with AVX2 have (AVX-VNNI). Internal to
// kernels/gemm; for x86-64.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// byte_panel_product where has_avx_vnni().
void avx_vnni_panel_product(bool panel_signed, const uint8_t* rows, int64_t row_stride,
                            int64_t count, int64_t groups, const uint8_t* panel, int64_t columns,
                            int32_t* sums);

}  // namespace sardonyx::kernels
