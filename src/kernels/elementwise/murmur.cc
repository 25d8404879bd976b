#include "kernels/elementwise/murmur.h"

#include <bit>
#include <cstddef>

namespace sardonyx::kernels {
namespace {

uint32_t mixed(uint32_t part) { return std::rotl(part * 0xcc9e2d51u, 15) * 0x1b873593u; }

// Up to four bytes, the first in the low bits.
uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return value;
}

}  // namespace

uint32_t murmur_hash(std::string_view bytes, uint32_t seed) {
  uint32_t hash = seed;
  const auto size = static_cast<uint32_t>(bytes.size());
  for (; bytes.size() >= 4; bytes.remove_prefix(4))
    hash = std::rotl(hash ^ mixed(little_endian(bytes.substr(0, 4))), 13) * 5 + 0xe6546b64u;
  if (!bytes.empty()) hash ^= mixed(little_endian(bytes));
  hash ^= size;
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

}  // namespace sardonyx::kernels
