// SHA-1, which the standard names for checksums of external data files. Not for security.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sardonyx::wire {

// The digest of what `add` was given, in pieces of any size.
class Sha1 {
 public:
  void add(std::span<const std::byte> bytes);
  // 40 hexadecimal digits in lower case; nothing may be added afterwards.
  std::string hex();

 private:
  std::array<uint32_t, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::array<std::byte, 64> rest_{};
  uint64_t size_ = 0;
};

// 40 hexadecimal digits in lower case.
std::string sha1_hex(std::span<const std::byte> bytes);

}  // namespace sardonyx::wire
