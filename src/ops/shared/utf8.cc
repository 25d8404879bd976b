#include "ops/shared/utf8.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "ops/shared/letter_cases.h"

namespace sardonyx::ops {
namespace {

// The run of a sorted table that a letter may stand in.
template <class T, size_t n>
const T* find(const T (&table)[n], char32_t c) {
  const T* after = std::upper_bound(std::begin(table), std::end(table), c,
                                    [](char32_t code, const T& run) { return code < run.first; });
  return after != std::begin(table) && c <= std::prev(after)->last ? std::prev(after) : nullptr;
}

template <size_t n>
char32_t mapped(const letters::Run (&table)[n], char32_t c) {
  const letters::Run* run = find(table, c);
  if (run == nullptr || (c - run->first) % static_cast<char32_t>(run->step) != 0) return c;
  return static_cast<char32_t>(static_cast<int32_t>(c) + run->offset);
}

// The code point at the beginning of `text` and its bytes; 1 byte as it is where it is no UTF-8.
struct Decoded {
  char32_t code;
  size_t bytes;
  bool valid;
};

Decoded decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto follows = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  if (first >= 0xC2 && first < 0xE0 && follows(1))
    return {(first & 0x1Fu) << 6 | (byte(1) & 0x3Fu), 2, true};
  if ((first & 0xF0) == 0xE0 && follows(1) && follows(2)) {
    return {(first & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu), 3, true};
  }
  if (first >= 0xF0 && first < 0xF5 && follows(1) && follows(2) && follows(3)) {
    return {(first & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 |
                (byte(3) & 0x3Fu),
            4, true};
  }
  return {first, 1, false};
}

void encode(char32_t c, std::string& text) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    if (c < 0x10000) {
      text += static_cast<char>(0xE0 | c >> 12);
    } else {
      text += static_cast<char>(0xF0 | c >> 18);
      text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    }
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  }
}

// Whether a letter with a case stands at an end of a text, beyond what does not count.
bool begins_cased(std::string_view text) {
  while (!text.empty()) {
    const Decoded found = decode(text);
    if (!found.valid) return false;
    if (find(letters::ignored, found.code) == nullptr)
      return find(letters::cased, found.code) != nullptr;
    text.remove_prefix(found.bytes);
  }
  return false;
}

bool ends_cased(std::string_view text) {
  while (!text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && text.size() - begin < 4 &&
           (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80)
      --begin;
    const Decoded found = decode(text.substr(begin));
    if (!found.valid || begin + found.bytes != text.size()) return false;
    if (find(letters::ignored, found.code) == nullptr)
      return find(letters::cased, found.code) != nullptr;
    text.remove_suffix(found.bytes);
  }
  return false;
}

// Each letter by `map`, which is given what stands before it, it and what follows, and appends to
// the result.
template <class Map>
std::string each_letter(std::string_view text, Map map) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Decoded found = decode(text.substr(at));
    if (found.valid) {
      map(text.substr(0, at), found.code, text.substr(at + found.bytes), result);
    } else {
      result += text[at];
    }
    at += found.bytes;
  }
  return result;
}

bool is_ascii(std::string_view text) {
  uint8_t all = 0;
  for (const char c : text) all |= static_cast<uint8_t>(c);
  return all < 0x80;
}

// The 26 letters from `first` on in the other case.
std::string with_ascii_case_flipped(std::string_view text, char first) {
  std::string result(text);
  for (char& c : result) {
    const bool is_letter = static_cast<uint8_t>(c - first) < 26;
    c = static_cast<char>(c ^ (is_letter ? 0x20 : 0));
  }
  return result;
}

constexpr char32_t dotted_capital_i = 0x130, dotless_i = 0x131, dot_above = 0x307;
constexpr std::string_view dot_above_text = "\xCC\x87";
constexpr char32_t capital_sigma = 0x3A3, small_sigma = 0x3C3, final_sigma = 0x3C2;

}  // namespace

std::string to_lower(std::string_view text, bool dotted_i) {
  if (!dotted_i && is_ascii(text)) return with_ascii_case_flipped(text, 'A');
  return each_letter(text, [dotted_i](std::string_view before, char32_t c, std::string_view after,
                                      std::string& result) {
    if (c == dotted_capital_i || (dotted_i && c == 'I' && after.starts_with(dot_above_text))) {
      result += 'i';
      if (!dotted_i) encode(dot_above, result);
    } else if (dotted_i && c == dot_above && before.ends_with('I')) {
      // It is a part of the i before it.
    } else if (c == capital_sigma) {
      const bool is_last = ends_cased(before) && !begins_cased(after);
      encode(is_last ? final_sigma : small_sigma, result);
    } else {
      encode(dotted_i && c == 'I' ? dotless_i : mapped(letters::to_lower, c), result);
    }
  });
}

std::string to_upper(std::string_view text, bool dotted_i) {
  if (!dotted_i && is_ascii(text)) return with_ascii_case_flipped(text, 'a');
  return each_letter(
      text, [dotted_i](std::string_view, char32_t c, std::string_view, std::string& result) {
        const auto* longer = std::lower_bound(
            std::begin(letters::to_upper_longer), std::end(letters::to_upper_longer), c,
            [](const letters::Expansion& one, char32_t code) { return one.code < code; });
        if (longer != std::end(letters::to_upper_longer) && longer->code == c) {
          for (const char32_t letter : longer->to)
            if (letter != 0) encode(letter, result);
        } else {
          encode(dotted_i && c == 'i' ? dotted_capital_i : mapped(letters::to_upper, c), result);
        }
      });
}

}  // namespace sardonyx::ops
