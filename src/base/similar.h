// Which of several names somebody may have meant.
#pragma once

#include <span>
#include <string_view>

namespace sardonyx {

// The candidate closest to `text`, or "" where none is close: a third of the letters may be wrong,
// four at most and never all of them. Case does not count, and a swap of neighbours counts once.
std::string_view closest(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace sardonyx
