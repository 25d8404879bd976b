// Letters of UTF-8 text in the other case.
#pragma once

#include <string>
#include <string_view>

namespace sardonyx::ops {

// Latin, Greek, Cyrillic and Armenian letters whose other case is one letter; everything else, and
// bytes that are no UTF-8, stay as they are. Independent of the locale.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

}  // namespace sardonyx::ops
