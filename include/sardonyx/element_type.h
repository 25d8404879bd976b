// The element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// Numbered as TensorProto.DataType in the standard (IR.md, "Tensor element types").
enum class ElementType : int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
  float6e2m3 = 27,
  float6e3m2 = 28,
};

inline constexpr int32_t element_type_count = 29;  // one more than the largest number

// True for the numbers of the enumeration but `undefined`.
constexpr bool is_known(ElementType type) {
  const auto number = static_cast<int32_t>(type);
  return number > 0 && number < element_type_count;
}

// Bits one element takes in memory and in TensorProto.raw_data; 0 for string and undefined.
// The types below 8 bits are packed, first element in the lowest bits; those of 6 bits go on
// over the end of a byte, four elements in three.
int bit_width(ElementType type);

// Bytes of `count` elements; packed types round up to whole bytes. 0 for string. Throws Error
// (bad_input) where the product does not fit in 63 bits or `count` is negative.
int64_t byte_size(ElementType type, int64_t count);

// The name as the standard's textual syntax and type constraints write it: "float", "int64",
// "bfloat16", "float8e4m3fn" …; "undefined" for unknown numbers.
std::string_view name_of(ElementType type);

// Inverse of name_of; also takes the enumeration's names ("FLOAT") in any letter case.
std::optional<ElementType> element_type_named(std::string_view name);

bool is_floating(ElementType type);  // every float type, from float64 down to float4
bool is_integer(ElementType type);   // signed and unsigned, 64 down to 2 bits; not boolean
bool is_signed_integer(ElementType type);

}  // namespace sardonyx

#pragma GCC visibility pop
