// SHA-1, which the standard names for checksums of external data files. Not for security.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sardonyx::wire {

// 40 hexadecimal digits in lower case.
std::string sha1_hex(std::span<const std::byte> bytes);

}  // namespace sardonyx::wire
