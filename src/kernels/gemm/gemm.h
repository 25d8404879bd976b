// fp32 matrix multiplication: C = epilogue(A * B), A of M x K, B of K x N, C of M x N.
//
// All strides count floats. Sizes may be 0: with K = 0 the sums are 0, with M or N = 0 nothing
// happens. Sizes and buffers are the caller's to check; C overlaps no input (a residual may be C).
// Nothing here allocates: run functions get `scratch`, aligned to 64 bytes and as large as their
// size function says for the same sizes and pool.threads(). One scratch serves one call at a time.
// Every element of C is the same sum in the same order whatever the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "kernels/gemm/epilogue.h"
#include "sardonyx/element_type.h"

namespace sardonyx {
class ThreadPool;
}

namespace sardonyx::kernels {

// --- B known beforehand -------------------------------------------------------------------------

// B is packed in its own type: float32, float16 or bfloat16. Few rows of A read it as it is. On
// matrix tiles the products with a half-precision B are as precise as its type, not as float32.

// Bytes of a packed B; 0 when K or N is 0. Depends on K, N, the type and the instruction set only.
int64_t packed_b_size(int64_t K, int64_t N, ElementType type = ElementType::float32);

// Packs element (k, n) at b[k * row_stride + n * column_stride], counting elements; b itself may
// lie at any address. `packed` is aligned to 64 bytes and may be shared by any number of runs.
// `pool` may be null. A large b whose rows or columns are dense is packed in pieces of its memory
// from the beginning on; `done`, where there is one, hears of each after it was read.
using PieceDone = std::function<void(std::span<const std::byte> piece)>;
void pack_b(const void* b, int64_t row_stride, int64_t column_stride, int64_t K, int64_t N,
            void* packed, ThreadPool* pool, ElementType type = ElementType::float32,
            const PieceDone& done = {});

struct PackedMatrix {
  const void* data = nullptr;
  ElementType type = ElementType::float32;
  // float32 values that stand for half precision: products need be no more precise than float16's.
  bool coarse = false;
};

int64_t gemm_packed_b_scratch_bytes(int64_t M, int64_t N, int64_t K, int64_t lda, int threads,
                                    ElementType type = ElementType::float32);

// A is row-major with row stride lda, C with ldc. Who multiplies with one large matrix again and
// again asks for every second product `backwards`: what was read last is still near then. It only
// concerns time.
void gemm_packed_b(int64_t M, int64_t N, int64_t K, const float* a, int64_t lda,
                   const PackedMatrix& packed_b, float* c, int64_t ldc, const Epilogue& epilogue,
                   void* scratch, ThreadPool& pool, bool backwards = false);

// --- Both operands known only when it runs ------------------------------------------------------

// A matrix inside memory: element (i, j) is at data[i * row_stride + j * column_stride].
struct StridedMatrix {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
};

// Looks at the strides, not at the data.
int64_t gemm_scratch_bytes(int64_t M, int64_t N, int64_t K, const StridedMatrix& a,
                           const StridedMatrix& b, int threads);

void gemm(int64_t M, int64_t N, int64_t K, const StridedMatrix& a, const StridedMatrix& b, float* c,
          int64_t ldc, const Epilogue& epilogue, void* scratch, ThreadPool& pool);

// --- Many products at once ----------------------------------------------------------------------

// The batch dimensions, outermost first: how many, and how far apart each operand's matrices are
// (stride 0 repeats one matrix). c strides must keep the outputs apart.
struct GemmBatch {
  static constexpr int max_rank = 8;
  int rank = 0;  // 0: one product
  int64_t size[max_rank] = {};
  int64_t a_stride[max_rank] = {};
  int64_t b_stride[max_rank] = {};
  int64_t c_stride[max_rank] = {};

  int64_t count() const {
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= size[i];
    return product;
  }
};

int64_t batched_gemm_scratch_bytes(const GemmBatch& batch, int64_t M, int64_t N, int64_t K,
                                   const StridedMatrix& a, const StridedMatrix& b, int threads);

// The residual, where there is one, is laid out as C over the batch too; the bias is shared.
void batched_gemm(const GemmBatch& batch, int64_t M, int64_t N, int64_t K, const StridedMatrix& a,
                  const StridedMatrix& b, float* c, int64_t ldc, const Epilogue& epilogue,
                  void* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
