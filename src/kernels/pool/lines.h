// Pooling of lines that lie side by side with their padding; inside pool/ only.
#pragma once

#include <cstdint>

#include "kernels/pool/window.h"

namespace sardonyx::kernels {

// The most floats of lines at once, and the room that must be behind them.
constexpr int64_t pool_lines_floats = 3072, pool_lines_room = 64;

// Input lines that one output line joins: `count` of them, the first at this place of the plane.
struct PoolColumn {
  int64_t first = 0, count = 0;
};

// Line r of `lines`, `pitch` floats after the one before: what the `in` floats of its input lines
// make together, which lie `step` floats apart in the plane; as it is where there are none.
void pool_columns(PoolKind kind, const float* plane, int64_t in, int64_t step,
                  const PoolColumn* columns, int64_t rows, float* lines, int64_t pitch);

// `rows` lines, `pitch` floats each, joined in place over `kernel` elements `dilation` apart; then
// y[r * out + k] is element k * stride of line r, an average divided by rows_inside[r] *
// columns_inside[k].
void pool_lines(PoolKind kind, float* lines, int64_t rows, int64_t pitch, int64_t kernel,
                int64_t dilation, int64_t stride, int64_t out, const float* rows_inside,
                const float* columns_inside, float* y);

}  // namespace sardonyx::kernels
