#include "packed.h"

namespace sardonyx::python {

void pack(ElementType type, const uint8_t* elements, int64_t count, uint8_t* packed) {
  const int bits = bit_width(type);
  const auto mask = static_cast<uint32_t>((1 << bits) - 1);
  uint32_t waiting = 0;
  int held = 0;
  for (int64_t i = 0; i < count; ++i) {
    waiting |= (elements[i] & mask) << held;
    held += bits;
    while (held >= 8) {
      *packed++ = static_cast<uint8_t>(waiting);
      waiting >>= 8;
      held -= 8;
    }
  }
  if (held > 0) *packed = static_cast<uint8_t>(waiting);
}

void unpack(ElementType type, const uint8_t* packed, int64_t count, uint8_t* elements) {
  const int bits = bit_width(type);
  const auto mask = static_cast<uint32_t>((1 << bits) - 1);
  const uint32_t sign = is_signed_integer(type) ? 1U << (bits - 1) : 0;
  uint32_t waiting = 0;
  int held = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (held < bits) {
      waiting |= static_cast<uint32_t>(*packed++) << held;
      held += 8;
    }
    const uint32_t element = waiting & mask;
    elements[i] = static_cast<uint8_t>((element ^ sign) - sign);
    waiting >>= bits;
    held -= bits;
  }
}

}  // namespace sardonyx::python
