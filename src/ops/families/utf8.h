// Letters of UTF-8 text in the other case.
#pragma once

#include <string>
#include <string_view>

namespace sardonyx::ops {

// Latin, Greek, Cyrillic and Armenian letters whose other case is one letter; everything else, and
// bytes that are no UTF-8, stay as they are. `dotted_i`: i and I each keep their dot or lack of it,
// as Turkish and Azeri write them.
std::string to_lower(std::string_view text, bool dotted_i = false);
std::string to_upper(std::string_view text, bool dotted_i = false);

}  // namespace sardonyx::ops
