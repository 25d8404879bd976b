// Properties of names.
#include <algorithm>

#include "check/context.h"

namespace sardonyx::check {
namespace {

constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
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
    if (static_cast<unsigned char>(text[i]) < 0x80) {  // as nearly all characters of names are
      ++i;
      continue;
    }
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

std::string did_you_mean(std::string_view candidate, std::string_view otherwise) {
  return candidate.empty() ? std::string(otherwise) : fmt::format("did you mean '{}'?", candidate);
}

}  // namespace sardonyx::check
