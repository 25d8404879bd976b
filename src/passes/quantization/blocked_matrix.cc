#include "passes/quantization/blocked_matrix.h"

#include <algorithm>
#include <cstring>

namespace sardonyx::passes {
namespace {

int bits_of(const BlockedMatrix& b) { return bit_width(b.values->element_type()); }

// The bit that makes an element, where it is exchanged, the unsigned one half a range higher; 0 in
// those that are unsigned.
uint8_t sign_bit_of(const BlockedMatrix& b) {
  return is_signed_integer(b.values->element_type()) ? static_cast<uint8_t>(1 << (bits_of(b) - 1))
                                                     : uint8_t{0};
}

// Element `at` of a tensor of few bits, its bits alone.
uint8_t bits_at(const uint8_t* data, int bits, int64_t at) {
  const int64_t places = 8 / bits;
  return static_cast<uint8_t>(data[at / places] >> (at % places * bits) & ((1 << bits) - 1));
}

// Two rows of 4-bit elements: each byte of them has an element of two columns.
void columns_of_pair(const uint8_t* upper, const uint8_t* lower, int64_t bytes, uint8_t signs,
                     int64_t column_bytes, uint8_t* out) {
  for (int64_t j = 0; j < bytes; ++j, out += 2 * column_bytes) {
    const int a = upper[j], b = lower[j];
    out[0] = static_cast<uint8_t>((a & 15) | (b & 15) << 4) ^ signs;
    out[column_bytes] = static_cast<uint8_t>((a >> 4) | (b & 240)) ^ signs;
  }
}

// Of words `distance` apart: the bytes that `mask` leaves, of the lower one those above them.
template <int distance>
void exchange_bytes(uint64_t (&words)[8], uint64_t mask) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    if ((i & distance) != 0) continue;
    const uint64_t both = ((words[i] >> 8 * distance) ^ words[i + distance]) & mask;
    words[i + distance] ^= both;
    words[i] ^= both << 8 * distance;
  }
}

// Byte j of word i becomes byte i of word j.
void transpose_bytes(uint64_t (&words)[8]) {
  exchange_bytes<4>(words, 0x00000000ffffffff);
  exchange_bytes<2>(words, 0x0000ffff0000ffff);
  exchange_bytes<1>(words, 0x00ff00ff00ff00ff);
}

// The same for eight pairs of rows, `row_bytes` apart, and eight bytes of each.
void columns_of_pairs(const uint8_t* rows, int64_t row_bytes, uint64_t signs, int64_t column_bytes,
                      uint8_t* out) {
  constexpr uint64_t low = 0x0f0f0f0f0f0f0f0f;
  uint64_t even[8], odd[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i, rows += 2 * row_bytes) {
    uint64_t a, b;
    std::memcpy(&a, rows, 8);
    std::memcpy(&b, rows + row_bytes, 8);
    even[i] = ((a & low) | (b & low) << 4) ^ signs;
    odd[i] = ((a >> 4 & low) | (b & ~low)) ^ signs;
  }
  transpose_bytes(even);
  transpose_bytes(odd);
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j, out += 2 * column_bytes) {
    std::memcpy(out, &even[j], 8);
    std::memcpy(out + column_bytes, &odd[j], 8);
  }
}

// A matrix of 4-bit elements with an even number of columns, but for the last of an odd number of
// rows. A few hundred columns at a time, whose lines then stay in the first-level cache.
void columns_of_nibbles(const uint8_t* from, int64_t rows, int64_t row_bytes, uint8_t sign_bit,
                        int64_t column_bytes, uint8_t* out) {
  constexpr int64_t together = 128;
  const auto signs = static_cast<uint8_t>(sign_bit | sign_bit << 4);
  const uint64_t all_signs = signs * uint64_t{0x0101010101010101};
  for (int64_t begin = 0; begin < row_bytes; begin += together) {
    const int64_t end = std::min(begin + together, row_bytes);
    const int64_t whole = begin + (end - begin) / 8 * 8;
    int64_t i = 0;
    for (; i + 16 <= rows; i += 16) {
      for (int64_t j = begin; j < whole; j += 8)
        columns_of_pairs(from + i * row_bytes + j, row_bytes, all_signs, column_bytes,
                         out + 2 * j * column_bytes + i / 2);
      for (int64_t pair = i; whole < end && pair < i + 16; pair += 2)
        columns_of_pair(from + pair * row_bytes + whole, from + (pair + 1) * row_bytes + whole,
                        end - whole, signs, column_bytes,
                        out + 2 * whole * column_bytes + pair / 2);
    }
    for (; i + 2 <= rows; i += 2)
      columns_of_pair(from + i * row_bytes + begin, from + (i + 1) * row_bytes + begin, end - begin,
                      signs, column_bytes, out + 2 * begin * column_bytes + i / 2);
  }
}

// The columns of a matrix, one after the other, each in bytes of its own; `out` is zeros
// beforehand.
void write_columns(const Tensor& x, uint8_t sign_bit, int64_t column_bytes, uint8_t* out) {
  const int bits = bit_width(x.element_type());
  const int64_t rows = x.shape()[0], columns = x.shape()[1], places = 8 / bits;
  const auto* from = static_cast<const uint8_t*>(x.data());
  int64_t i = 0;
  if (bits == 4 && columns % 2 == 0) {
    columns_of_nibbles(from, rows, columns / 2, sign_bit, column_bytes, out);
    i = rows / 2 * 2;
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int value = bits_at(from, bits, i * columns + j) ^ sign_bit;
      out[j * column_bytes + i / places] |= static_cast<uint8_t>(value << (i % places * bits));
    }
  }
}

template <class T>
void transpose(const Tensor& x, int64_t rows, int64_t columns, Tensor& y) {
  constexpr int64_t together = 16;
  const auto* from = static_cast<const T*>(x.data());
  auto* to = static_cast<T*>(y.mutable_data());
  for (int64_t begin = 0; begin < columns; begin += together) {
    const int64_t end = std::min(begin + together, columns);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = begin; j < end; ++j) to[j * rows + i] = from[i * columns + j];
    }
  }
}

}  // namespace

bool fits_blocks(const BlockedMatrix& b) {
  const ElementType type = b.values->element_type();
  const bool integer = type == ElementType::int8 || type == ElementType::uint8 ||
                       type == ElementType::int4 || type == ElementType::uint4 ||
                       type == ElementType::int2 || type == ElementType::uint2;
  constexpr int64_t least = 16, most = 1 << 20;
  // Columns are filled up to whole blocks: a block longer than they are would let a small file take
  // any amount of memory.
  if (!integer || b.block < least || b.block > most || (b.block & (b.block - 1)) != 0 ||
      b.values->size() == 0 || b.rows() < b.block)
    return false;
  const Shape shape{b.blocks(), b.columns()};
  return b.scales->shape() == shape &&
         (b.zeros == nullptr || (b.zeros->shape() == shape && b.zeros->element_type() == type));
}

Tensor columns_of_bits(const BlockedMatrix& b) {
  const int64_t block_bytes = b.block * bits_of(b) / 8;
  Tensor made(ElementType::uint8, {b.columns(), b.blocks(), block_bytes});
  auto* out = static_cast<uint8_t*>(made.mutable_data());
  std::memset(out, 0, made.byte_size());
  write_columns(*b.values, sign_bit_of(b), b.blocks() * block_bytes, out);
  return made;
}

Tensor columns_of_scales(const BlockedMatrix& b) {
  const int64_t blocks = b.blocks(), n = b.columns();
  Tensor made(b.scales->element_type(), {n, blocks});
  switch (bit_width(made.element_type())) {
    case 16: transpose<uint16_t>(*b.scales, blocks, n, made); break;
    case 32: transpose<uint32_t>(*b.scales, blocks, n, made); break;
    default: transpose<uint64_t>(*b.scales, blocks, n, made); break;
  }
  return made;
}

Tensor columns_of_zeros(const BlockedMatrix& b) {
  const int64_t column_bytes = (b.blocks() * bits_of(b) + 7) / 8;
  Tensor made(ElementType::uint8, {b.columns(), column_bytes});
  auto* out = static_cast<uint8_t*>(made.mutable_data());
  std::memset(out, 0, made.byte_size());
  if (b.zeros != nullptr) write_columns(*b.zeros, sign_bit_of(b), column_bytes, out);
  return made;
}

}  // namespace sardonyx::passes
