#include "base/content_hash.h"

#include <bit>
#include <cstring>

namespace sardonyx {
namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr std::array<uint64_t, 8> keys{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb,
                                       0xd6e8feb86659fd93, 0xa0761d6478bd642f, 0xe7037ed1a0b428db,
                                       0x8ebc6af09c88c6e3, 0x589965cc75374cc3};
constexpr size_t stripe = 64;

uint64_t mixed(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t word(const std::byte* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

// Four sums that do not wait for each other.
void take(std::array<uint64_t, 4>& sums, const std::byte* at) {
  for (size_t i = 0; i < 4; ++i) {
    const uint64_t a = word(at + 16 * i) ^ keys[2 * i], b = word(at + 16 * i + 8) ^ keys[2 * i + 1];
    // The words themselves too: a product forgets one factor where the other is 0.
    sums[i] = std::rotl(sums[i], 23) * keys[4] + mixed(a, b) + std::rotl(a, 32) + b;
  }
}

}  // namespace

ContentHash content_hash(std::span<const std::byte> bytes) {
  std::array<uint64_t, 4> sums{keys[7], keys[6], keys[5], keys[4]};
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= stripe; left -= stripe, at += stripe) take(sums, at);
  std::array<std::byte, stripe> rest{};
  if (left > 0) std::memcpy(rest.data(), at, left);
  take(sums, rest.data());
  const uint64_t size = bytes.size();
  const uint64_t low = mixed(sums[0] ^ keys[0], sums[1] ^ size ^ keys[1]),
                 high = mixed(sums[2] ^ keys[2], sums[3] ^ size ^ keys[3]);
  return {mixed(low ^ keys[4], sums[2] + sums[3] + high) ^ low,
          mixed(high ^ keys[5], sums[0] + sums[1] + low) ^ high};
}

}  // namespace sardonyx
