// Pooling of lines that lie side by side with their padding; inside pool/ only.
#pragma once

#include <cstdint>

#include "kernels/pool/window.h"

namespace sardonyx::kernels {

// The most floats of lines at once, and the room that must be behind them.
constexpr int64_t pool_lines_floats = 3072, pool_lines_room = 64;

// to[i] = from[i], or what both make of it, for i < n.
void pool_line(PoolKind kind, bool first, const float* from, float* to, int64_t n);

// `rows` lines, `pitch` floats each, joined in place over `kernel` elements `dilation` apart; then
// y[r * out + k] is element k * stride of line r, an average divided by rows_inside[r] *
// columns_inside[k].
void pool_lines(PoolKind kind, float* lines, int64_t rows, int64_t pitch, int64_t kernel,
                int64_t dilation, int64_t stride, int64_t out, const float* rows_inside,
                const float* columns_inside, float* y);

}  // namespace sardonyx::kernels
