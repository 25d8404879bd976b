#include "kernels/attention/rotary.h"

#include <algorithm>

#include "base/fail.h"

namespace sardonyx::kernels {
namespace {

void rotate(const RotaryShape& s, const float* x, const float* c, const float* sn, float* y) {
  const int64_t half = s.rotated / 2, step = s.interleaved ? 2 : 1,
                second = s.interleaved ? 1 : half;
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i * step], b = x[i * step + second];
    y[i * step] = c[i] * a - sn[i] * b;
    y[i * step + second] = sn[i] * a + c[i] * b;
  }
  if (x != y) std::copy(x + 2 * half, x + s.head_size, y + 2 * half);
}

}  // namespace

void rotary_embedding(const RotaryShape& s, const float* x, const float* cosine, const float* sine,
                      const int64_t* positions, float* y, ThreadPool& pool) {
  const int64_t half = s.rotated / 2, per_row = s.heads * s.head_size;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, per_row));
  pool.parallel_for(s.batch * s.length, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t batch = at / s.length, i = at % s.length;
      int64_t row = at;
      if (positions) {
        row = positions[at];
        if (row < 0 || row >= s.cache_rows) {
          fail(ErrorCode::run_failed, "position_ids must be in [0, {}); got {}", s.cache_rows, row);
        }
      }
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t offset = batch * s.length * per_row + h * s.head_stride + i * s.row_stride;
        rotate(s, x + offset, cosine + row * half, sine + row * half, y + offset);
      }
    }
  });
}

}  // namespace sardonyx::kernels
