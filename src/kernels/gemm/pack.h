// Rewriting operands so that the register tiles read them in order. Internal to kernels/gemm and
// kernels/conv.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/gemm/block.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {

// Whether rows that far apart fall into the same few sets of the first-level cache, so that `rows`
// of them push each other out.
bool rows_collide(int64_t stride, int64_t rows);

// `columns` columns of B, term after term, `width` floats each, filled up with zeros. `width` is a
// multiple of kernels.lanes.
void pack_panel(const TileKernels& kernels, const float* b, int64_t row_stride,
                int64_t column_stride, int64_t k, int64_t columns, float* out, int64_t width);

// The same for elements of 16 bits; `width` is any.
void pack_float16(const void* b, int64_t row_stride, int64_t column_stride, int64_t k,
                  int64_t columns, uint16_t* out, int64_t width);

// Strips [first, last) of A, each term after term, kernels.strip_width floats each: a StripOperand
// of stride kernels.strip_width and distance k * kernels.strip_width.
void pack_strips(const TileKernels& kernels, const Strips& strips, int64_t first, int64_t last,
                 const float* a, int64_t row_stride, int64_t column_stride, int64_t k, float* out);

// bytes(n): what a kernel needs on a pool of n threads. What is bound for several may have to run
// on one (ThreadPool::for_caller), whose work may be cut into larger parts.
template <class Bytes>
int64_t max_scratch(int threads, Bytes&& bytes) {
  return std::max(bytes(1), bytes(threads));
}

// Scratch memory of a run in which every worker keeps one packed block at a time: a line for each
// worker, then its space.
class PackedBlocks {
 public:
  PackedBlocks(void* scratch, int threads, int64_t worker_floats)
      : scratch_(static_cast<char*>(scratch)), threads_(threads), worker_floats_(worker_floats) {
    if (worker_floats_ == 0) return;
    for (int i = 0; i < threads; ++i) held(i) = -1;
  }

  float* space(int worker) const {
    if (worker_floats_ == 0) return nullptr;
    return reinterpret_cast<float*>(scratch_ + threads_ * scratch_alignment) +
           worker * worker_floats_;
  }

  // Whether the worker must pack `block` because it holds another; it holds `block` from now on.
  bool changes(int worker, int64_t block) const {
    if (held(worker) == block) return false;
    held(worker) = block;
    return true;
  }

  // A number that a task leaves to the next one of its worker.
  int64_t& left(int worker) const { return numbers(worker)[1]; }

 private:
  int64_t* numbers(int worker) const {
    return reinterpret_cast<int64_t*>(scratch_ + worker * scratch_alignment);
  }
  int64_t& held(int worker) const { return numbers(worker)[0]; }

  char* scratch_;
  int threads_;
  int64_t worker_floats_;
};

}  // namespace sardonyx::kernels
