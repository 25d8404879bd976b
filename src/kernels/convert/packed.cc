#include "kernels/convert/packed.h"

#include <algorithm>

#include "base/bits.h"
#include "base/fail.h"

namespace sardonyx::kernels {
namespace {

template <int bits>
void unpack_bits(const uint8_t* x, int64_t first, uint8_t* y, int64_t n, bool is_signed) {
  constexpr int per_byte = 8 / bits;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = first + i;
    const int shift = static_cast<int>(at % per_byte) * bits;
    const auto high = static_cast<uint8_t>(x[at / per_byte] << (8 - bits - shift));
    y[i] = is_signed ? static_cast<uint8_t>(static_cast<int8_t>(high) >> (8 - bits))
                     : static_cast<uint8_t>(high >> (8 - bits));
  }
}

template <int bits>
void pack_bits(const uint8_t* x, uint8_t* y, int64_t first, int64_t n) {
  constexpr int per_byte = 8 / bits;
  constexpr unsigned mask = (1u << bits) - 1;
  uint8_t* out = y + first / per_byte;
  int64_t i = 0;
  for (; i + per_byte <= n; i += per_byte) {
    unsigned byte = 0;
    for (int j = 0; j < per_byte; ++j) byte |= (x[i + j] & mask) << (j * bits);
    *out++ = static_cast<uint8_t>(byte);
  }
  if (i == n) return;
  unsigned byte = 0;
  for (int j = 0; i < n; ++i, ++j) byte |= (x[i] & mask) << (j * bits);
  *out = static_cast<uint8_t>(byte);
}

void unpack_six(const uint8_t* x, int64_t first, uint8_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<uint8_t>(element_bits(x, static_cast<size_t>(first + i), 6));
}

void pack_six(const uint8_t* x, uint8_t* y, int64_t first, int64_t n) {
  uint8_t* out = y + first / 4 * 3;
  for (; n >= 4; n -= 4, x += 4, out += 3) {
    const unsigned word =
        (x[0] & 0x3fu) | (x[1] & 0x3fu) << 6 | (x[2] & 0x3fu) << 12 | (x[3] & 0x3fu) << 18;
    out[0] = static_cast<uint8_t>(word);
    out[1] = static_cast<uint8_t>(word >> 8);
    out[2] = static_cast<uint8_t>(word >> 16);
  }
  if (n > 0) std::fill_n(out, n, uint8_t{0});  // n elements, 1 to 3, end in as many bytes
  for (int64_t i = 0; i < n; ++i) put_element_bits(out, static_cast<size_t>(i), 6, x[i]);
}

}  // namespace

bool is_packed(ElementType type) {
  const int bits = bit_width(type);
  return bits == 6 || bits == 4 || bits == 2;
}

void unpack(ElementType type, const void* x, int64_t first, uint8_t* y, int64_t n) {
  const auto* bytes = static_cast<const uint8_t*>(x);
  const bool is_signed = is_signed_integer(type);
  switch (bit_width(type)) {
    case 6: return unpack_six(bytes, first, y, n);
    case 4: return unpack_bits<4>(bytes, first, y, n, is_signed);
    case 2: return unpack_bits<2>(bytes, first, y, n, is_signed);
    default: fail(ErrorCode::unsupported, "{} is not a packed element type", name_of(type));
  }
}

void pack(ElementType type, const uint8_t* x, void* y, int64_t first, int64_t n) {
  auto* bytes = static_cast<uint8_t*>(y);
  switch (bit_width(type)) {
    case 6: return pack_six(x, bytes, first, n);
    case 4: return pack_bits<4>(x, bytes, first, n);
    case 2: return pack_bits<2>(x, bytes, first, n);
    default: fail(ErrorCode::unsupported, "{} is not a packed element type", name_of(type));
  }
}

}  // namespace sardonyx::kernels
