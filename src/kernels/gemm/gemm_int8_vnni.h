// Products of bytes by the dot products of AVX-512 (VNNI). Internal to kernels/gemm.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm_int8.h"

namespace sardonyx::kernels {

// byte_panel_product where has_avx512_vnni().
void vnni_panel_product(bool panel_signed, const uint8_t* rows, int64_t row_stride, int64_t count,
                        int64_t groups, const uint8_t* panel, int64_t columns, int32_t* sums);

// byte_panel_finish where has_avx512_vnni(): a few rows at a time, or as many as matrix tiles are
// worth, whose sums stay near until they are finished.
void vnni_panel_finish(const ByteRowsOf& rows, const uint8_t* panel, const ByteFinish& how,
                       const int32_t* row_sums, int64_t columns, void* y, int64_t y_stride,
                       BytesAhead ahead);

}  // namespace sardonyx::kernels
