// Lists of names as text, and what somebody may have meant by a name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sardonyx::cli {

// The one candidate that begins with `text`, else the closest, or "" where none is close: a third
// of the letters may be wrong, four at most and never all of them. Case does not count, and a swap
// of neighbours counts once.
std::string_view closest(std::string_view text, std::span<const std::string_view> candidates);

// "a, b, c"; where there are more than `most`, the first of them and how many are left: "a, b and 7
// more".
std::string listed(std::span<const std::string> items, size_t most);

}  // namespace sardonyx::cli
