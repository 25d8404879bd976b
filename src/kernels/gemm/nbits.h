// Products with a matrix of 2, 4 or 8 bits an element, scaled block by block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// Column j of the [k, n] matrix is `data` from j * column_bytes() on, element after element from
// the low bits of each byte, each block beginning a byte. Element i of column j is
// (q - zero) * scale, both of block (group ? group[i] : i / block).
struct NBitsMatrix {
  int64_t k = 0, n = 0;
  int bits = 4;        // 2, 4 or 8
  int64_t block = 32;  // elements; block * bits is a multiple of 8
  const uint8_t* data = nullptr;
  const float* scales = nullptr;  // [n, blocks]
  // [n, blocks], at most one of them; without: 2^(bits - 1) everywhere.
  const uint8_t* zeros = nullptr;
  const float* float_zeros = nullptr;
  const int32_t* group = nullptr;  // [k], each in [0, blocks)

  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t block_bytes() const { return block * bits / 8; }
  int64_t column_bytes() const { return blocks() * block_bytes(); }
};

// Columns [begin, end) as floats, one after the other, k values each.
void dequantize_columns(const NBitsMatrix& b, int64_t begin, int64_t end, float* out);

// y [m, n] = a [m, k] times b, plus bias [n] (may be null). Few rows read the quantised matrix as
// it is; many rows multiply with columns that are made floats a few at a time. Looks at sizes only,
// not at the pointers of b (group: whether there is one).
int64_t nbits_scratch_bytes(const NBitsMatrix& b, int64_t m, int threads);
// `alone` is a pool of one thread. Results do not depend on the number of threads.
void nbits_product(const NBitsMatrix& b, int64_t m, const float* a, const float* bias, float* y,
                   void* scratch, ThreadPool& alone, ThreadPool& pool);

// The same with columns that `dequantize(begin, end, out)` makes: for formats of other kinds.
class ColumnSource {
 public:
  virtual ~ColumnSource() = default;
  virtual void columns(int64_t begin, int64_t end, float* out) const = 0;
};
int64_t sliced_scratch_bytes(int64_t m, int64_t n, int64_t k, int threads);
void sliced_product(const ColumnSource& b, int64_t m, int64_t n, int64_t k, const float* a,
                    const float* bias, float* y, void* scratch, ThreadPool& alone,
                    ThreadPool& pool);

}  // namespace sardonyx::kernels
