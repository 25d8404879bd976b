#include "sardonyx/inputs.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "base/similar.h"

namespace sardonyx {

void refuse_unknown_sizes(const DimSizes& sizes, std::span<const std::string> names) {
  constexpr size_t max_shown = 20;
  for (const auto& [name, size] : sizes) {
    if (size < 0)
      fail_at(fmt::format("size '{}'", name), ErrorCode::bad_input,
              "{} is negative; a size is 0 or more", size);
    if (std::ranges::find(names, name) != names.end()) continue;
    std::vector<std::string_view> known;
    for (const std::string& one : names) {
      if (std::ranges::find(known, one) == known.end()) known.push_back(one);
    }
    const std::string_view meant = closest(name, known);
    std::string list;
    for (size_t i = 0; i < std::min(known.size(), max_shown); ++i)
      list += fmt::format("{}'{}'", i == 0 ? "" : ", ", known[i]);
    if (known.size() > max_shown) list += fmt::format(" and {} more", known.size() - max_shown);
    fail_at(fmt::format("size '{}'", name), ErrorCode::bad_input,
            "the model has no open size of this name; it has {}{}", known.empty() ? "none" : list,
            meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
  }
}

}  // namespace sardonyx
