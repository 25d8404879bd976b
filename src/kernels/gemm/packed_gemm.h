// gemm_packed_b for any A. Internal to kernels/gemm.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.h"

namespace sardonyx::kernels {

int64_t packed_scratch_bytes(int64_t M, int64_t N, int64_t K, const StridedMatrix& a, int threads,
                             ElementType type = ElementType::float32);

void run_packed(int64_t M, int64_t N, int64_t K, const StridedMatrix& a,
                const PackedMatrix& packed_b, float* c, int64_t ldc, const Epilogue& epilogue,
                void* scratch, ThreadPool& pool, bool backwards = false);

}  // namespace sardonyx::kernels
