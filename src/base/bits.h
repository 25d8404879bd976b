// Elements of less than a byte, one at a time: element i of a packed buffer takes the bits from
// i * width on, lowest bit of each byte first, and may go on in the next byte.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sardonyx {

// `width` is 1 to 8.
inline unsigned element_bits(const uint8_t* bytes, size_t i, int width) {
  const size_t bit = i * static_cast<size_t>(width), at = bit / 8;
  const int shift = static_cast<int>(bit % 8);
  unsigned bits = static_cast<unsigned>(bytes[at]) >> shift;
  if (shift + width > 8) bits |= static_cast<unsigned>(bytes[at + 1]) << (8 - shift);
  return bits & ((1u << width) - 1);
}

// Takes the lowest `width` bits of `bits` and leaves the elements beside them as they are.
inline void put_element_bits(uint8_t* bytes, size_t i, int width, unsigned bits) {
  const size_t bit = i * static_cast<size_t>(width), at = bit / 8;
  const int shift = static_cast<int>(bit % 8);
  const unsigned mask = (1u << width) - 1;
  const unsigned placed = (bits & mask) << shift, cleared = mask << shift;
  bytes[at] = static_cast<uint8_t>((bytes[at] & ~cleared) | placed);
  if (shift + width > 8)
    bytes[at + 1] = static_cast<uint8_t>((bytes[at + 1] & ~(cleared >> 8)) | placed >> 8);
}

}  // namespace sardonyx
