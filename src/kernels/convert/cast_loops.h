// Conversions between types of whole machine numbers. Inside convert/ only.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// Every other type is reached through float or a byte.
enum class Basic : int { f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, b1, count_ };

using CastLoop = void (*)(const void* x, void* y, int64_t n);
CastLoop cast_loop(Basic from, Basic to);

}  // namespace sardonyx::kernels
