#include "base/listed.h"

#include <fmt/format.h>

namespace sardonyx {

std::string listed(std::span<const std::string> items, size_t most) {
  const size_t shown = items.size() > most ? most : items.size();
  std::string text = fmt::format("{}", fmt::join(items.first(shown), ", "));
  if (shown < items.size()) text += fmt::format(" and {} more", items.size() - shown);
  return text;
}

}  // namespace sardonyx
