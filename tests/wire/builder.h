// Protobuf bytes written by hand, for tests of what no proper writer writes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "sardonyx/error.h"
#include "scratch_folder.h"

namespace sardonyx::wire_test {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string tag(uint32_t number, uint32_t wire_type) {
  return varint(uint64_t{number} << 3 | wire_type);
}
inline std::string number(uint32_t field, uint64_t value) { return tag(field, 0) + varint(value); }
inline std::string text(uint32_t field, std::string_view value) {
  return tag(field, 2) + varint(value.size()) + std::string(value);
}
template <class T>
std::string plain(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline Bytes bytes_of(std::string_view text) {
  return Bytes::copy_of(std::as_bytes(std::span(text.data(), text.size())));
}

// The Error that `body` throws; a message that says so where it throws none.
template <class Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "no error was thrown");
}

inline std::string fixture(std::string_view name) {
  return std::string(SARDONYX_SOURCE_DIR "/tests/wire/data/") + std::string(name);
}

}  // namespace sardonyx::wire_test
