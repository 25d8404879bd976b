// Letters of UTF-8 text in the other case.
#pragma once

#include <string>
#include <string_view>

namespace sardonyx::ops {

// As Unicode's full mapping says, which is not always letter by letter: a capital sharp s is SS, a
// capital sigma at the end of a word has a small form of its own. Bytes that are no UTF-8 stay as
// they are. `dotted_i`: i and I each keep their dot or lack of it, as Turkish and Azeri write them.
std::string to_lower(std::string_view text, bool dotted_i = false);
std::string to_upper(std::string_view text, bool dotted_i = false);

}  // namespace sardonyx::ops
