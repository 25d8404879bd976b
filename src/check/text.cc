// Properties of names.
#include <algorithm>
#include <numeric>

#include "check/context.h"

namespace sardonyx::check {
namespace {

constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Edit distance without regard to letter case.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (lower(a[i]) != lower(b[j]));
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// The length of the character that `text` begins with; 0 where it is not well-formed: shortest
// forms, no surrogates, nothing above U+10FFFF.
size_t utf8_length(std::string_view text) {
  const auto at = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  const size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((at(k) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = at(1);
  const bool odd = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                   (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return odd ? 0 : length;
}

}  // namespace

void check_utf8(Context& context, const Where& where, std::string_view what,
                std::string_view name) {
  if (is_utf8(name) || !context.first_time("N-11" + std::string(name))) return;
  context.report("N-11", where, "rename it", "names are UTF-8; the name of the {} is not", what);
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string as_utf8(std::string text) {
  if (is_utf8(text)) return text;
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(std::string_view(text).substr(i));
    if (length == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i++]));
    } else {
      shown.append(text, i, length);
      i += length;
    }
  }
  return shown;
}

bool is_c_identifier(std::string_view text) {
  if (text.empty() || !is_letter(text.front())) return false;
  return std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

bool is_reversed_dns(std::string_view text) {
  return text.find('.') != text.npos && text.front() != '.' && text.back() != '.';
}

std::string_view closest(std::string_view text, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  size_t least = std::max<size_t>(1, (text.size() + 1) / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const size_t difference =
        std::max(candidate.size(), text.size()) - std::min(candidate.size(), text.size());
    if (difference >= least || candidate.size() > 200) continue;
    const size_t edits = distance(text, candidate);
    if (edits < least) {
      least = edits;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view candidate, std::string_view otherwise) {
  return candidate.empty() ? std::string(otherwise) : fmt::format("did you mean '{}'?", candidate);
}

}  // namespace sardonyx::check
