#include "ops/contrib/cache_rows.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/convert/cast.h"

namespace sardonyx::ops {
namespace {

constexpr int64_t chunk = 64;

// The nearest whole number in [low, high]; what is no number becomes 0.
int whole(float value, int low, int high) {
  const float near = std::nearbyint(value);
  if (!(near == near)) return 0;
  return static_cast<int>(std::clamp(near, static_cast<float>(low), static_cast<float>(high)));
}

// `row` holds the numbers from `first` on, `count` of them, divided by their scales.
void store_quantized(const CacheFormat& format, const float* row, int64_t first, int64_t count,
                     std::byte* to) {
  if (format.is_packed) {
    for (int64_t i = 0; i < count; i += 2) {
      const int low = whole(row[i], -8, 7) + 8,
                high = i + 1 < count ? whole(row[i + 1], -8, 7) + 8 : 8;
      to[(first + i) / 2] = static_cast<std::byte>(low | high << 4);
    }
  } else if (format.type == ElementType::int8) {
    for (int64_t i = 0; i < count; ++i)
      to[first + i] = static_cast<std::byte>(whole(row[i], -128, 127));
  } else {
    kernels::cast_row(ElementType::float32, format.type, row, to + first, count);
  }
}

void load_quantized(const CacheFormat& format, const std::byte* from, int64_t first, int64_t count,
                    float* row) {
  if (format.is_packed) {
    for (int64_t i = 0; i < count; ++i) {
      const int byte = std::to_integer<int>(from[(first + i) / 2]);
      row[i] = static_cast<float>((i % 2 == 0 ? byte & 15 : byte >> 4) - 8);
    }
  } else {
    kernels::cast_row(format.type, ElementType::float32, from + first, row, count);
  }
}

// The same of bytes with a sign, which compilers make vectors of.
void load_bytes(const std::byte* from, const ChannelScales& scales, int64_t size, float* to) {
  const auto* bytes = reinterpret_cast<const int8_t*>(from);
  if (scales.step == 0) {
    const float scale = scales.data[0];
    for (int64_t c = 0; c < size; ++c) to[c] = static_cast<float>(bytes[c]) * scale;
  } else {
    for (int64_t c = 0; c < size; ++c) to[c] = static_cast<float>(bytes[c]) * scales.data[c];
  }
}

bool reads_scales(const NodeView& node, int which, int scale) {
  const char* name = which == 0 ? "k_quant_type" : "v_quant_type";
  const std::string type = node.attr_string(name, "NONE");
  if (type == "NONE") return false;
  if (type != "PER_TENSOR" && type != "PER_CHANNEL")
    node.fail("{} must be NONE, PER_TENSOR or PER_CHANNEL; got '{}'", name, type);
  if (!node.has_input(scale))
    node.fail("{} needs the input {}", name, which == 0 ? "k_scale" : "v_scale");
  return true;
}

}  // namespace

int64_t CacheFormat::bytes(int64_t size) const { return byte_size(type, columns(size)); }

CacheFormat cache_format(const NodeView& node, ElementType cache, ElementType query, int k_scale) {
  const bool of_keys = reads_scales(node, 0, k_scale),
             of_values = reads_scales(node, 1, k_scale + 1);
  if (of_keys != of_values)
    node.fail(ErrorCode::unsupported, "only one of key and value in a quantised past");
  if (!of_keys) {
    if (cache != query)
      node.fail(ErrorCode::unsupported, "a past of {} with a query of {} and k_quant_type NONE",
                name_of(cache), name_of(query));
    return {.type = cache};
  }
  const bool packed = cache == ElementType::uint8;
  if (!packed && cache != ElementType::int8 && cache != ElementType::float8e4m3fn)
    node.fail(ErrorCode::unsupported, "a quantised past of {}", name_of(cache));
  if (const int64_t bits = node.attr_int("kv_cache_bit_width", packed ? 4 : 8);
      bits != (packed ? 4 : 8))
    node.fail(ErrorCode::unsupported, "a past of {} bits in {}", bits, name_of(cache));
  return {.type = cache, .is_quantized = true, .is_packed = packed};
}

void store_cache_row(const CacheFormat& format, ElementType type, const std::byte* from,
                     const ChannelScales& scales, int64_t size, std::byte* to) {
  if (!format.is_quantized) return kernels::cast_row(type, format.type, from, to, size);
  const float most = format.type == ElementType::float8e4m3fn ? 448.0f : 1e9f;
  float row[chunk];
  for (int64_t c = 0; c < size; c += chunk) {
    const int64_t count = std::min(chunk, size - c);
    kernels::cast_row(type, ElementType::float32, from + byte_size(type, c), row, count);
    // ONNX Runtime multiplies, which tells where a value lies in the middle between two numbers.
    for (int64_t i = 0; i < count; ++i)
      row[i] = std::clamp(row[i] * (1 / scales.at(c + i)), -most, most);
    store_quantized(format, row, c, count, to);
  }
}

void load_cache_row(const CacheFormat& format, const std::byte* from, const ChannelScales& scales,
                    int64_t size, float* to) {
  if (!format.is_quantized)
    return kernels::cast_row(format.type, ElementType::float32, from, to, size);
  if (format.type == ElementType::int8) return load_bytes(from, scales, size, to);
  for (int64_t c = 0; c < size; c += chunk) {
    const int64_t count = std::min(chunk, size - c);
    load_quantized(format, from, c, count, to + c);
    for (int64_t i = 0; i < count; ++i) to[c + i] *= scales.at(c + i);
  }
}

}  // namespace sardonyx::ops
