#include "words.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace sardonyx::cli {
namespace {

constexpr size_t longest_name = 200;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_above(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    two_above.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// The one candidate that begins with the text, of which two letters at least are there; "" where
// none or several do.
std::string_view begun(std::string_view text, std::span<const std::string_view> candidates) {
  const size_t dashes = std::min(text.find_first_not_of('-'), text.size());
  if (text.size() < dashes + 2) return {};
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    if (!std::ranges::equal(text, candidate.substr(0, text.size()), {}, lower, lower)) continue;
    if (!found.empty()) return {};
    found = candidate;
  }
  return found;
}

}  // namespace

std::string_view closest(std::string_view text, std::span<const std::string_view> candidates) {
  if (text.empty() || text.size() > longest_name) return {};
  if (const std::string_view whole = begun(text, candidates); !whole.empty()) return whole;
  std::string_view best;
  size_t limit = std::min<size_t>((text.size() + 1) / 3, 4);
  for (const std::string_view candidate : candidates) {
    const auto [shorter, longer] = std::minmax({text.size(), candidate.size()});
    if (longer > longest_name || longer - shorter > limit) continue;
    const size_t distance = edit_distance(text, candidate);
    if (distance < limit || (distance == limit && best.empty())) {
      best = candidate;
      limit = distance;
    }
  }
  return best;
}

std::string listed(std::span<const std::string> items, size_t most) {
  const size_t shown = items.size() > most ? most : items.size();
  std::string text = fmt::format("{}", fmt::join(items.first(shown), ", "));
  if (shown < items.size()) text += fmt::format(" and {} more", items.size() - shown);
  return text;
}

}  // namespace sardonyx::cli
