// Pooling of planes in blocks of lines; inside pool/ only.
#pragma once

#include "base/thread_pool.h"
#include "kernels/pool/pool.h"
#include "kernels/pool/window.h"

namespace sardonyx::kernels {

// Whether pool_by_lines takes windows of this kind: not far apart nor of very many elements.
bool pools_by_lines(const PoolShape& shape);

// For shapes of which pools_by_lines is true.
void pool_by_lines(PoolKind kind, const PoolShape& shape, const float* x, float* y,
                   bool count_include_pad, ThreadPool& pool);

}  // namespace sardonyx::kernels
