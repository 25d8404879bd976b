#include "kernels/convert/cast.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "base/fail.h"
#include "kernels/convert/cast_loops.h"
#include "kernels/convert/low_precision.h"
#include "kernels/convert/packed.h"
#include "kernels/convert/tiles.h"

namespace sardonyx::kernels {
namespace {

using enum Basic;

Basic basic_of(ElementType type) {
  switch (type) {
    case ElementType::float32: return f32;
    case ElementType::float64: return f64;
    case ElementType::int8:
    case ElementType::int4:
    case ElementType::int2: return i8;
    case ElementType::uint8:
    case ElementType::uint4:
    case ElementType::uint2: return u8;
    case ElementType::int16: return i16;
    case ElementType::uint16: return u16;
    case ElementType::int32: return i32;
    case ElementType::uint32: return u32;
    case ElementType::int64: return i64;
    case ElementType::uint64: return u64;
    case ElementType::boolean: return b1;
    default: return f32;  // the narrow floats, converted to float
  }
}

bool is_narrow_float(ElementType type) {
  return is_floating(type) && type != ElementType::float32 && type != ElementType::float64;
}

bool is_direct(ElementType type) { return !is_narrow_float(type) && !is_packed(type); }

constexpr int64_t tile = 1024;

const uint8_t* at_element(const void* x, ElementType type, int64_t i) {
  return static_cast<const uint8_t*>(x) + i * bit_width(type) / 8;
}

void narrow_to_floats(ElementType type, const void* x, int64_t first, float* y, int64_t n) {
  if (is_packed(type)) {
    uint8_t codes[tile];
    unpack(type, x, first, codes, n);
    return float8_to_floats(type, codes, y, n);
  }
  to_floats(type, at_element(x, type, first), y, n);
}

void floats_to_narrow(ElementType type, const float* x, void* y, int64_t first, int64_t n,
                      const CastOptions& options) {
  auto* out = const_cast<uint8_t*>(at_element(y, type, first));
  if (type == ElementType::float16) {
    floats_to_half(x, reinterpret_cast<uint16_t*>(out), n);
  } else if (type == ElementType::bfloat16) {
    floats_to_bfloat16(x, reinterpret_cast<uint16_t*>(out), n);
  } else if (is_packed(type)) {
    uint8_t codes[tile];
    floats_to_float8(type, x, codes, n, options);
    pack(type, codes, y, first, n);
  } else {
    floats_to_float8(type, x, out, n, options);
  }
}

void odd_floats(const double* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = round_to_odd(x[i]);
}

// One tile, elements [first, first + n), n <= tile.
void cast_tile(ElementType from, ElementType to, const void* x, void* y, int64_t first, int64_t n,
               const CastOptions& options) {
  alignas(64) uint8_t source_buffer[tile * sizeof(float)];
  alignas(64) uint8_t target_buffer[tile * sizeof(float)];
  const void* source = at_element(x, from, first);
  if (is_narrow_float(from) && to == ElementType::float32)
    return narrow_to_floats(from, x, first, static_cast<float*>(y) + first, n);
  if (is_narrow_float(from)) {
    narrow_to_floats(from, x, first, reinterpret_cast<float*>(source_buffer), n);
    source = source_buffer;
  } else if (is_packed(from)) {
    unpack(from, x, first, source_buffer, n);
    source = source_buffer;
  }
  if (is_direct(to)) {
    auto* out = const_cast<uint8_t*>(at_element(y, to, first));
    return cast_loop(basic_of(from), basic_of(to))(source, out, n);
  }
  const void* target = target_buffer;
  if (is_narrow_float(to) && from == ElementType::float64) {
    odd_floats(static_cast<const double*>(source), reinterpret_cast<float*>(target_buffer), n);
  } else if (is_narrow_float(to) && basic_of(from) == f32) {
    target = source;
  } else {
    cast_loop(basic_of(from), basic_of(to))(source, target_buffer, n);
  }
  if (is_narrow_float(to)) {
    floats_to_narrow(to, static_cast<const float*>(target), y, first, n, options);
  } else {
    pack(to, static_cast<const uint8_t*>(target), y, first, n);
  }
}

void cast_range(ElementType from, ElementType to, const void* x, void* y, int64_t begin,
                int64_t end, const CastOptions& options) {
  if (is_direct(from) && is_direct(to)) {
    return cast_loop(basic_of(from), basic_of(to))(
        at_element(x, from, begin), const_cast<uint8_t*>(at_element(y, to, begin)), end - begin);
  }
  for (int64_t i = begin; i < end; i += tile) {
    cast_tile(from, to, x, y, i, end - i < tile ? end - i : tile, options);
  }
}

bool is_castable(ElementType type) {
  return is_floating(type) || is_integer(type) || type == ElementType::boolean;
}

// Of no elements there may be no address, which memcpy may not be given.
void copy_floats(const void* x, void* y, int64_t n) {
  if (n > 0) std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
}

}  // namespace

bool supports_cast(ElementType from, ElementType to) {
  return is_castable(from) && is_castable(to);
}

void cast_row(ElementType from, ElementType to, const void* x, void* y, int64_t n,
              const CastOptions& options) {
  if (!supports_cast(from, to)) {
    fail(ErrorCode::unsupported, "no conversion from {} to {}", name_of(from), name_of(to));
  }
  if (from == to) {
    if (n > 0) std::memcpy(y, x, static_cast<size_t>(byte_size(from, n)));
    return;
  }
  cast_range(from, to, x, y, 0, n, options);
}

void cast(ElementType from, ElementType to, const void* x, void* y, int64_t n,
          const CastOptions& options, ThreadPool& pool) {
  constexpr int64_t grain = 32 * tile;
  if (n <= grain || from == to || !supports_cast(from, to)) {
    return cast_row(from, to, x, y, n, options);
  }
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
    cast_range(from, to, x, y, begin, end, options);
  });
}

void to_floats(ElementType type, const void* x, float* y, int64_t n) {
  switch (type) {
    case ElementType::float32: return copy_floats(x, y, n);
    case ElementType::float16: return half_to_floats(static_cast<const uint16_t*>(x), y, n);
    case ElementType::bfloat16: return bfloat16_to_floats(static_cast<const uint16_t*>(x), y, n);
    default: return float8_to_floats(type, static_cast<const uint8_t*>(x), y, n);
  }
}

void to_float16(ElementType type, const float* x, void* y, int64_t n) {
  switch (type) {
    case ElementType::float32: return copy_floats(x, y, n);
    case ElementType::float16: return floats_to_half(x, static_cast<uint16_t*>(y), n);
    case ElementType::bfloat16: return floats_to_bfloat16(x, static_cast<uint16_t*>(y), n);
    default: return floats_to_float8(type, x, static_cast<uint8_t*>(y), n, {});
  }
}

}  // namespace sardonyx::kernels
