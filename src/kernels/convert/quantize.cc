#include "kernels/convert/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "base/fail.h"
#include "kernels/convert/byte_scale.h"
#include "kernels/convert/cast.h"
#include "kernels/convert/low_precision.h"
#include "kernels/convert/packed.h"
#include "kernels/convert/tiles.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t tile_size = 512;
constexpr int64_t chunk_size = 16384;  // a multiple of what packs into a byte

const void* at_element(ElementType type, const void* data, int64_t i) {
  return static_cast<const std::byte*>(data) + byte_size(type, i);
}
void* at_element(ElementType type, void* data, int64_t i) {
  return static_cast<std::byte*>(data) + byte_size(type, i);
}

template <class From>
void convert_integers(const void* x, float* y, int64_t n) {
  const auto* from = static_cast<const From*>(x);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(from[i]);
}

// Elements [first, first + n) as float; n is at most a tile.
void load_floats(ElementType type, const void* data, int64_t first, float* y, int64_t n) {
  if (is_packed(type)) {
    uint8_t codes[tile_size];
    unpack(type, data, first, codes, n);
    if (is_floating(type)) return to_floats(type, codes, y, n);
    if (is_signed_integer(type)) return convert_integers<int8_t>(codes, y, n);
    return convert_integers<uint8_t>(codes, y, n);
  }
  const void* from = at_element(type, data, first);
  switch (type) {
    case ElementType::int8: return convert_integers<int8_t>(from, y, n);
    case ElementType::uint8: return convert_integers<uint8_t>(from, y, n);
    case ElementType::int16: return convert_integers<int16_t>(from, y, n);
    case ElementType::uint16: return convert_integers<uint16_t>(from, y, n);
    case ElementType::int32: return convert_integers<int32_t>(from, y, n);
    case ElementType::float64: return convert_integers<double>(from, y, n);
    case ElementType::float8e8m0: {
      const auto* codes = static_cast<const uint8_t*>(from);
      for (int64_t i = 0; i < n; ++i) y[i] = e8m0_to_float(codes[i]);
      return;
    }
    default: return to_floats(type, from, y, n);
  }
}

void load_doubles(ElementType type, const void* data, int64_t first, double* y, int64_t n) {
  if (type == ElementType::float64) {
    std::copy_n(static_cast<const double*>(data) + first, n, y);
  } else if (type == ElementType::int32) {
    std::copy_n(static_cast<const int32_t*>(data) + first, n, y);
  } else {
    float values[tile_size];
    load_floats(type, data, first, values, n);
    std::copy_n(values, n, y);
  }
}

// Calls body(element, parameter, step, count) for runs of elements [begin, end) whose parameters
// are parameter, parameter + step, ...; a run has at most a tile.
template <class Body>
void for_runs(const QuantizeLayout& l, int64_t begin, int64_t end, Body&& body) {
  for (int64_t at = begin; at < end;) {
    const int64_t i = at % l.inner, j = at / l.inner % l.n, o = at / l.inner / l.n;
    const int64_t parameter = o * l.outer_stride + j / l.block * l.axis_stride + i * l.inner_stride;
    int64_t count = l.inner - i, step = l.inner_stride;
    if (l.inner == 1) {
      // Along the axis: a block has one parameter; without blocks each element has the next.
      const bool each = l.block == 1;
      count = each ? l.n - j : std::min(l.block - j % l.block, l.n - j);
      step = each ? l.axis_stride : 0;
    }
    count = std::min({count, end - at, tile_size});
    body(at, parameter, step, count);
    at += count;
  }
}

template <class T>
void load_as(ElementType type, const void* data, int64_t first, T* y, int64_t n) {
  if constexpr (std::is_same_v<T, double>)
    load_doubles(type, data, first, y, n);
  else
    load_floats(type, data, first, y, n);
}

// Parameters of a run, one for each element.
template <class T>
void load_parameters(ElementType type, const void* data, int64_t parameter, int64_t step, int64_t n,
                     T* y) {
  if (data == nullptr) {
    std::fill_n(y, n, T(0));
  } else if (step == 0) {
    load_as(type, data, parameter, y, 1);
    std::fill(y + 1, y + n, y[0]);
  } else {
    load_as(type, data, parameter, y, n);
  }
}

struct Range {
  float low, high;
};
Range range_of(ElementType type) {
  switch (type) {
    case ElementType::uint8: return {0, 255};
    case ElementType::int8: return {-128, 127};
    case ElementType::uint16: return {0, 65535};
    case ElementType::int16: return {-32768, 32767};
    case ElementType::uint4: return {0, 15};
    case ElementType::int4: return {-8, 7};
    case ElementType::uint2: return {0, 3};
    case ElementType::int2: return {-2, 1};
    default: fail(ErrorCode::unsupported, "no quantization to {}", name_of(type));
  }
}

// Nearest, ties to even: adding 1.5 * 2^23 leaves no room for a fraction. The quotient is first
// brought near the range, so that it is small enough.
template <class T>
void round_and_clip(const T* quotient, const float* zero, Range range, float* y, int64_t n) {
  constexpr float magic = 12582912.0f;
  for (int64_t i = 0; i < n; ++i) {
    const T low = static_cast<T>(range.low - zero[i] - 1),
            high = static_cast<T>(range.high - zero[i] + 1);
    T q = quotient[i] > low ? quotient[i] : low;  // NaN: low
    q = q < high ? q : high;
    // A double must not be rounded to float before it is rounded to an integer.
    const float whole = std::is_same_v<T, double> ? static_cast<float>(std::nearbyint(q))
                                                  : (static_cast<float>(q) + magic) - magic;
    const float value = whole + zero[i];
    y[i] = std::min(std::max(value, range.low), range.high);
  }
}

template <class To>
void store_integers(const float* x, void* y, int64_t n) {
  auto* to = static_cast<To*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(static_cast<int32_t>(x[i]));
}

// One byte an element for packed types, whose bytes are joined afterwards.
void store(ElementType type, const float* x, void* y, int64_t n) {
  switch (type) {
    case ElementType::uint8:
    case ElementType::uint4:
    case ElementType::uint2: return store_integers<uint8_t>(x, y, n);
    case ElementType::int8:
    case ElementType::int4:
    case ElementType::int2: return store_integers<int8_t>(x, y, n);
    case ElementType::uint16: return store_integers<uint16_t>(x, y, n);
    default: return store_integers<int16_t>(x, y, n);
  }
}

void store_small_floats(const QuantizeTypes& types, const float* x, void* y, int64_t n) {
  CastOptions options;
  options.saturate = types.saturate;
  if (is_packed(types.y)) return to_float16(types.y, x, y, n);
  floats_to_float8(types.y, x, static_cast<uint8_t*>(y), n, options);
}

void round_to(ElementType precision, float* x, int64_t n) {
  if (precision != ElementType::float16 && precision != ElementType::bfloat16) return;
  uint16_t halves[tile_size];
  to_float16(precision, x, halves, n);
  to_floats(precision, halves, x, n);
}
void round_to(ElementType, double*, int64_t) {}

// One run: at most a tile. `y` is where the first element goes, one byte an element if packed.
template <class T>
void quantize_run(const QuantizeTypes& t, const void* x, const void* scale, const void* zero,
                  int64_t at, int64_t parameter, int64_t step, int64_t n, void* y) {
  T values[tile_size], scales[tile_size];
  float zeros[tile_size], whole[tile_size];
  load_as(t.x, x, at, values, n);
  load_parameters(t.scale, scale, parameter, step, n, scales);
  load_parameters(t.y, zero, parameter, step, n, zeros);
  round_to(t.precision, values, n);
  round_to(t.precision, scales, n);
  for (int64_t i = 0; i < n; ++i) values[i] /= scales[i];
  round_to(t.precision, values, n);
  if (is_floating(t.y)) {
    for (int64_t i = 0; i < n; ++i) whole[i] = static_cast<float>(values[i]) + zeros[i];
    return store_small_floats(t, whole, y, n);
  }
  round_and_clip(values, zeros, range_of(t.y), whole, n);
  store(t.y, whole, y, n);
}

bool is_byte(ElementType type) { return type == ElementType::int8 || type == ElementType::uint8; }

// The parameters of a run that has one pair of them.
ByteScale byte_scale(ElementType type, const void* scale, const void* zero, int64_t parameter) {
  float offset = 0;
  if (zero != nullptr) load_floats(type, zero, parameter, &offset, 1);
  return {type, static_cast<const float*>(scale)[parameter], static_cast<int32_t>(offset)};
}

}  // namespace

void quantize(const QuantizeTypes& types, const QuantizeLayout& layout, const void* x,
              const void* scale, const void* zero, void* y, ThreadPool& pool) {
  const bool packed = is_packed(types.y), wide = types.precision == ElementType::float64;
  const bool bytes = is_byte(types.y) && types.x == ElementType::float32 &&
                     types.scale == ElementType::float32 && types.precision == ElementType::float32;
  pool.parallel_for(layout.size(), chunk_size, [&](int64_t begin, int64_t end, int) {
    uint8_t codes[chunk_size];
    for_runs(layout, begin, end, [&](int64_t at, int64_t parameter, int64_t step, int64_t n) {
      void* to = packed ? static_cast<void*>(codes + (at - begin)) : at_element(types.y, y, at);
      if (bytes && step == 0)
        floats_to_bytes(byte_scale(types.y, scale, zero, parameter),
                        static_cast<const float*>(x) + at, to, n);
      else if (wide)
        quantize_run<double>(types, x, scale, zero, at, parameter, step, n, to);
      else
        quantize_run<float>(types, x, scale, zero, at, parameter, step, n, to);
    });
    if (packed) pack(types.y, codes, y, begin, end - begin);
  });
}

void dequantize(ElementType x_type, ElementType scale_type, ElementType y_type,
                const QuantizeLayout& layout, const void* x, const void* scale, const void* zero,
                void* y, ThreadPool& pool) {
  const bool bytes =
      is_byte(x_type) && scale_type == ElementType::float32 && y_type == ElementType::float32;
  pool.parallel_for(layout.size(), chunk_size, [&](int64_t begin, int64_t end, int) {
    for_runs(layout, begin, end, [&](int64_t at, int64_t parameter, int64_t step, int64_t n) {
      if (bytes && step == 0)
        return bytes_to_floats(byte_scale(x_type, scale, zero, parameter),
                               at_element(x_type, x, at), static_cast<float*>(y) + at, n);
      float values[tile_size], scales[tile_size], zeros[tile_size];
      load_floats(x_type, x, at, values, n);
      load_parameters(scale_type, scale, parameter, step, n, scales);
      load_parameters(x_type, zero, parameter, step, n, zeros);
      for (int64_t i = 0; i < n; ++i) values[i] = (values[i] - zeros[i]) * scales[i];
      if (y_type == ElementType::float64) {
        std::copy_n(values, n, static_cast<double*>(y) + at);
      } else {
        to_float16(y_type, values, at_element(y_type, y, at), n);
      }
    });
  });
}

namespace {

FloatRange range_of(const float* x, int64_t n, ThreadPool& pool) {
  constexpr int64_t most = 64;
  const int64_t each = std::max<int64_t>(16384, (n + most - 1) / most),
                count = (n + each - 1) / each;
  FloatRange parts[most];
  pool.parallel_for(count, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      parts[i] = range_with_zero(x + i * each, std::min(each, n - i * each));
  });
  FloatRange all;
  for (int64_t i = 0; i < count; ++i)
    all = {std::min(all.low, parts[i].low), std::max(all.high, parts[i].high)};
  return all;
}

}  // namespace

ByteScale dynamic_scale(const float* x, int64_t n, ThreadPool& pool) {
  const FloatRange range = range_of(x, n, pool);
  const float low = range.low, high = range.high;
  ByteScale made;
  made.scale = low == high ? 1.0f : (high - low) / 255.0f;
  const float wanted = 0.0f - low / made.scale;  // NaN where the range is infinite
  made.zero = static_cast<int32_t>(wanted >= 0 ? std::nearbyint(std::min(wanted, 255.0f)) : 0.0f);
  return made;
}

void dynamic_quantize(const float* x, int64_t n, uint8_t* y, float* scale, uint8_t* zero,
                      ThreadPool& pool) {
  const ByteScale how = dynamic_scale(x, n, pool);
  *scale = how.scale, *zero = static_cast<uint8_t>(how.zero);
  QuantizeLayout layout;
  layout.inner = n;
  quantize({}, layout, x, scale, zero, y, pool);
}

}  // namespace sardonyx::kernels
