// What a kernel's form of a constant depends on beside the constant's elements, the processor and
// the library: two requests for a constant that agree in it get the same bytes.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/element_type.h"
#include "sardonyx/value.h"

namespace sardonyx::ops {

// Who packs. Numbers are part of packed files (docs/packed_models.md): new ones are added at the
// end, and none is used again.
enum class PackFamily : uint32_t {
  matrix = 1,
  byte_matrix,
  integer_matrix,
  conv,
  conv_integer,
  conv_int8,
  conv_transpose,
  conv_transpose_depthwise,
  recurrent_input,
  recurrent_state,
  byte_recurrent,
  nbits_zero_points,
};
std::string_view name_of(PackFamily family);  // "conv_transpose"; "" for a number without a name

// Fields that a family has no use for keep their defaults.
struct PackFormat {
  PackFamily family{};
  ElementType from = ElementType::undefined;  // of the constant
  ElementType to = ElementType::undefined;    // of the packed elements
  Shape shape = {};                           // of the constant
  bool transposed = false;                    // the matrix is [N, K]
  bool nhwc = false;
  bool shuffled = false;             // input channels are interleaved
  bool shuffles_output = false;      // output channels are
  bool linear_before_reset = false;  // GRU
  int32_t winograd = 0;              // tile
  int32_t gates = 0;                 // of a recurrent layer
  int32_t bits = 0;                  // of an element
  int64_t group = 1;
  std::vector<int64_t> strides = {}, dilations = {};
  // What is packed together with the constant, by content: factors of output channels (float32),
  // zero points.
  std::vector<uint8_t> parameters = {};

  auto operator<=>(const PackFormat&) const = default;
};

// The bytes of numbers that are packed together with a constant.
std::vector<uint8_t> parameters_of(std::span<const int32_t> numbers);

// "conv float32[64,3,7,7] strides 2,2", for messages.
std::string describe(const PackFormat& format);

// The same format on every machine, as a list of bytes: fields in order, integers little-endian.
std::vector<std::byte> to_bytes(const PackFormat& format);
// Nothing where the bytes are not a format's: too few, too many, numbers that stand for nothing.
std::optional<PackFormat> pack_format_of(std::span<const std::byte> bytes);

// One array of a packed form.
struct PackPart {
  ElementType type = ElementType::undefined;  // of whole bytes
  int64_t count = 0;                          // elements
  auto operator<=>(const PackPart&) const = default;
};
int64_t bytes_of(std::span<const PackPart> parts);

}  // namespace sardonyx::ops
