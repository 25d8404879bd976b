#include "wire/sha1.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace sardonyx::wire {
namespace {

using State = std::array<uint32_t, 5>;

void digest_block(const std::byte* block, State& state) {
  uint32_t w[80];
  for (int i = 0; i < 16; ++i) {
    w[i] = 0;
    for (int b = 0; b < 4; ++b) w[i] = w[i] << 8 | static_cast<uint32_t>(block[4 * i + b]);
  }
  for (int i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = state;
  for (int i = 0; i < 80; ++i) {
    uint32_t mixed, constant;
    if (i < 20) {
      mixed = (b & c) | (~b & d), constant = 0x5a827999;
    } else if (i < 40) {
      mixed = b ^ c ^ d, constant = 0x6ed9eba1;
    } else if (i < 60) {
      mixed = (b & c) | (b & d) | (c & d), constant = 0x8f1bbcdc;
    } else {
      mixed = b ^ c ^ d, constant = 0xca62c1d6;
    }
    const uint32_t next = std::rotl(a, 5) + mixed + e + constant + w[i];
    e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d, state[4] + e};
}

}  // namespace

void Sha1::add(std::span<const std::byte> bytes) {
  const size_t waiting = size_ % 64;
  size_ += bytes.size();
  if (waiting != 0) {
    const size_t taken = std::min(64 - waiting, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(waiting));
    bytes = bytes.subspan(taken);
    if (waiting + taken < 64) return;
    digest_block(rest_.data(), state_);
  }
  for (; bytes.size() >= 64; bytes = bytes.subspan(64)) digest_block(bytes.data(), state_);
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

// A 1 bit, zeros and the length in bits fill one or two last blocks.
std::string Sha1::hex() {
  const size_t rest = size_ % 64;
  const uint64_t bits = size_ * 8;
  std::array<std::byte, 72> tail{std::byte{0x80}};
  const size_t padding = (rest < 56 ? 56 : 120) - rest;
  for (size_t i = 0; i < 8; ++i) tail[padding + i] = static_cast<std::byte>(bits >> (8 * (7 - i)));
  add(std::span(tail).first(padding + 8));
  return fmt::format("{:08x}{:08x}{:08x}{:08x}{:08x}", state_[0], state_[1], state_[2], state_[3],
                     state_[4]);
}

std::string sha1_hex(std::span<const std::byte> bytes) {
  Sha1 digest;
  digest.add(bytes);
  return digest.hex();
}

}  // namespace sardonyx::wire
