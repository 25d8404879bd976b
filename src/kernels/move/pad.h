// Pad.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "kernels/move/cell.h"

namespace sardonyx::kernels {

enum class PadMode : int32_t { constant, reflect, edge, wrap };

// `before` and `after` hold one count per axis of x, negative ones crop. `value` is one element,
// used by constant only (null: zero, empty string). y has before + shape + after elements along
// each axis. Throws Error (bad_input) where a size would be negative, or where reflect, edge or
// wrap is asked to pad an axis that has no element left.
void pad(Cell cell, PadMode mode, std::span<const int64_t> shape, std::span<const int64_t> before,
         std::span<const int64_t> after, const void* value, const void* x, void* y,
         ThreadPool& pool);

}  // namespace sardonyx::kernels
