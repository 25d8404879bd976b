// Rows of keys and values as a cache stores them: as they are, or quantised with one scale, or one
// for each channel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/node_view.h"
#include "sardonyx/element_type.h"

namespace sardonyx::ops {

struct CacheFormat {
  ElementType type = ElementType::float32;  // of the tensor
  bool is_quantized = false;
  bool is_packed =
      false;  // two numbers of 4 bits a byte, the first one low, each 8 more than it is

  // Elements of the tensor that hold a row of `size` numbers, and their bytes.
  int64_t columns(int64_t size) const { return is_packed ? size / 2 + size % 2 : size; }
  int64_t bytes(int64_t size) const;
};

// Scales of the channels of one head; all are one where step is 0.
struct ChannelScales {
  const float* data = nullptr;
  int64_t step = 0;

  float at(int64_t channel) const { return data[channel * step]; }
};

// What attributes k_quant_type, v_quant_type and kv_cache_bit_width say of a cache of this type,
// with queries of another. Fails where they do not fit, or where scales are absent, which are
// inputs k_scale and the one behind it.
CacheFormat cache_format(const NodeView& node, ElementType cache, ElementType query, int k_scale);

// `from` has elements of `type`.
void store_cache_row(const CacheFormat& format, ElementType type, const std::byte* from,
                     const ChannelScales& scales, int64_t size, std::byte* to);
void load_cache_row(const CacheFormat& format, const std::byte* from, const ChannelScales& scales,
                    int64_t size, float* to);

}  // namespace sardonyx::ops
