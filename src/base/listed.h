// Lists as text.
#pragma once

#include <span>
#include <string>

namespace sardonyx {

// "a, b, c"; where there are more than `most`, the first of them and how many are left: "a, b and 7
// more".
std::string listed(std::span<const std::string> items, size_t most);

}  // namespace sardonyx
