// UTF-8 <-> code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sardonyx::wire {

// Appends a code point; false where it is none (a surrogate, or beyond 10ffff).
bool append_utf8(uint32_t code_point, std::string& text);

// The code points of UTF-8 text; nothing where it is not sound UTF-8.
std::optional<std::u32string> code_points(std::string_view text);

// The text behind the byte order mark that some editors and spreadsheets put before it.
constexpr std::string_view without_mark(std::string_view text) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

}  // namespace sardonyx::wire
