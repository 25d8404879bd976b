// Conversion between the number types (Cast, CastLike, and every kernel that computes in float).
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

enum class RoundMode : int32_t { up, down, nearest };  // for float8e8m0

struct CastOptions {
  bool saturate = true;  // float8 only: out of range gives the largest value
  RoundMode round_mode = RoundMode::up;
};

// Every type but strings and complex numbers.
bool supports_cast(ElementType from, ElementType to);

// y[i] = (to) x[i] for i < n. Floats go to integers towards zero; beyond the integer's range the
// result is the nearest bound, NaN gives 0 — one answer on every machine where the standard leaves
// it open. Integers wrap. Packed types are read and written whole: `y` must hold byte_size(to, n).
// Throws Error (unsupported) where !supports_cast.
void cast(ElementType from, ElementType to, const void* x, void* y, int64_t n,
          const CastOptions& options, ThreadPool& pool);

// The same on the calling thread.
void cast_row(ElementType from, ElementType to, const void* x, void* y, int64_t n,
              const CastOptions& options = {});

// float16, bfloat16, float8* float6* and float4e2m1 (one a byte, unpacked) from and to float32, on
// the calling thread, for tiles; also float32 itself (a copy). to_float16 rounds to nearest even
// and saturates float8.
void to_floats(ElementType type, const void* x, float* y, int64_t n);
void to_float16(ElementType type, const float* x, void* y, int64_t n);

}  // namespace sardonyx::kernels
