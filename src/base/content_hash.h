// A hash of many bytes at about the speed of memory. Tells contents apart that differ by chance;
// whoever wants two contents of one hash can make them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sardonyx {

using ContentHash = std::array<uint64_t, 2>;

// The same on every machine.
ContentHash content_hash(std::span<const std::byte> bytes);
inline ContentHash content_hash(std::string_view text) {
  return content_hash(std::as_bytes(std::span(text)));
}

}  // namespace sardonyx
