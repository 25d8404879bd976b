#include "passes/quantization/blocked_matrix.h"

#include <algorithm>
#include <cstring>

namespace sardonyx::passes {
namespace {

int bits_of(const BlockedMatrix& b) { return bit_width(b.values->element_type()); }

// What turns an element into the unsigned one that stands half a range higher.
uint8_t turn_of(const BlockedMatrix& b) {
  return is_signed_integer(b.values->element_type()) ? static_cast<uint8_t>(1 << (bits_of(b) - 1))
                                                     : uint8_t{0};
}

// Element `at` of a tensor of few bits, its bits alone.
uint8_t bits_at(const uint8_t* data, int bits, int64_t at) {
  const int64_t places = 8 / bits;
  return static_cast<uint8_t>(data[at / places] >> (at % places * bits) & ((1 << bits) - 1));
}

// Two rows of 4-bit elements: each byte of them has an element of two columns.
void turn_pair(const uint8_t* upper, const uint8_t* lower, int64_t bytes, uint8_t turn,
               int64_t column_bytes, uint8_t* out) {
  const auto mask = static_cast<uint8_t>(turn | turn << 4);
  for (int64_t j = 0; j < bytes; ++j, out += 2 * column_bytes) {
    const int a = upper[j], b = lower[j];
    out[0] = static_cast<uint8_t>((a & 15) | (b & 15) << 4) ^ mask;
    out[column_bytes] = static_cast<uint8_t>((a >> 4) | (b & 240)) ^ mask;
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
  const int bits = bits_of(b);
  const int64_t k = b.rows(), n = b.columns(), block_bytes = b.block * bits / 8,
                column_bytes = b.blocks() * block_bytes, places = 8 / bits;
  Tensor made(ElementType::uint8, {n, b.blocks(), block_bytes});
  auto* out = static_cast<uint8_t*>(made.mutable_data());
  std::memset(out, 0, made.byte_size());
  const auto* from = static_cast<const uint8_t*>(b.values->data());
  const uint8_t turn = turn_of(b);
  int64_t first = 0;  // row
  if (bits == 4 && n % 2 == 0) {
    constexpr int64_t together = 128;  // bytes of a row, so that the columns' lines stay near
    for (int64_t j = 0; j < n / 2; j += together) {
      for (int64_t i = 0; i + 2 <= k; i += 2)
        turn_pair(from + i * n / 2 + j, from + (i + 1) * n / 2 + j, std::min(together, n / 2 - j),
                  turn, column_bytes, out + 2 * j * column_bytes + i / 2);
    }
    first = k / 2 * 2;
  }
  for (int64_t i = first; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int value = bits_at(from, bits, i * n + j) ^ turn;
      out[j * column_bytes + i / places] |= static_cast<uint8_t>(value << (i % places * bits));
    }
  }
  return made;
}

Tensor columns_of_scales(const BlockedMatrix& b) {
  const int64_t blocks = b.blocks(), n = b.columns();
  Tensor made(b.scales->element_type(), {n, blocks});
  const auto size = static_cast<size_t>(bit_width(made.element_type()) / 8);
  const auto* from = static_cast<const std::byte*>(b.scales->data());
  auto* to = static_cast<std::byte*>(made.mutable_data());
  for (int64_t i = 0; i < blocks * n; ++i)
    std::memcpy(to + static_cast<size_t>(i) * size,
                from + static_cast<size_t>(i % blocks * n + i / blocks) * size, size);
  return made;
}

Tensor columns_of_zeros(const BlockedMatrix& b) {
  const int bits = bits_of(b);
  const int64_t blocks = b.blocks(), n = b.columns(), places = 8 / bits,
                row = (blocks + places - 1) / places;
  Tensor made(ElementType::uint8, {n, row});
  auto* out = static_cast<uint8_t*>(made.mutable_data());
  std::memset(out, 0, made.byte_size());
  const auto* from = b.zeros ? static_cast<const uint8_t*>(b.zeros->data()) : nullptr;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < blocks; ++i) {
      const int value = (from ? bits_at(from, bits, i * n + j) : 0) ^ turn_of(b);
      out[j * row + i / places] |= static_cast<uint8_t>(value << (i % places * bits));
    }
  }
  return made;
}

}  // namespace sardonyx::passes
