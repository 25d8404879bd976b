#include "ops/families/utf8.h"

#include <cstdint>

namespace sardonyx::ops {
namespace {

bool between(char32_t c, char32_t low, char32_t high) { return c >= low && c <= high; }

char32_t lower_of(char32_t c) {
  if (between(c, 'A', 'Z')) return c + 32;
  if (between(c, 0xC0, 0xDE) && c != 0xD7) return c + 32;
  // Pairs of an even capital and the odd letter after it, and the other way round.
  if (between(c, 0x100, 0x137) && c != 0x130) return c | 1;
  if (between(c, 0x139, 0x148)) return c % 2 == 1 ? c + 1 : c;
  if (between(c, 0x14A, 0x177)) return c | 1;
  if (c == 0x178) return 0xFF;
  if (between(c, 0x179, 0x17E)) return c % 2 == 1 ? c + 1 : c;
  if (c == 0x386) return 0x3AC;
  if (between(c, 0x388, 0x38A)) return c + 37;
  if (c == 0x38C) return 0x3CC;
  if (between(c, 0x38E, 0x38F)) return c + 63;
  if (between(c, 0x391, 0x3AB) && c != 0x3A2) return c + 32;
  if (between(c, 0x400, 0x40F)) return c + 80;
  if (between(c, 0x410, 0x42F)) return c + 32;
  if (between(c, 0x460, 0x481) || between(c, 0x48A, 0x4BF) || between(c, 0x4D0, 0x52F))
    return c | 1;
  if (between(c, 0x531, 0x556)) return c + 48;
  if (between(c, 0x1E00, 0x1E95) || between(c, 0x1EA0, 0x1EFF)) return c | 1;
  return c;
}

char32_t upper_of(char32_t c) {
  if (between(c, 'a', 'z')) return c - 32;
  if (between(c, 0xE0, 0xFE) && c != 0xF7) return c - 32;
  if (c == 0xFF) return 0x178;
  if (c == 0x3AC) return 0x386;
  if (c == 0x3C2) return 0x3A3;  // the final sigma
  if (c == 0x131 || c == 0x17F) return c == 0x131 ? 'I' : 'S';
  for (const int distance : {1, 32, 37, 48, 63, 64, 80}) {
    if (c < static_cast<char32_t>(distance)) continue;
    const char32_t candidate = c - static_cast<char32_t>(distance);
    if (candidate != c && c >= 0x100 && lower_of(candidate) == c && lower_of(c) == c)
      return candidate;
  }
  return c;
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
  return {first, 1, false};
}

void encode(char32_t c, std::string& text) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    text += static_cast<char>(0xE0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  }
}

template <class Map>
std::string mapped(std::string_view text, Map map) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Decoded found = decode(text);
    const char32_t other = found.valid ? map(found.code) : found.code;
    if (!found.valid || other == found.code) {
      result += text.substr(0, found.bytes);
    } else {
      encode(other, result);
    }
    text.remove_prefix(found.bytes);
  }
  return result;
}

}  // namespace

std::string to_lower(std::string_view text, bool dotted_i) {
  if (!dotted_i) return mapped(text, lower_of);
  return mapped(text, [](char32_t c) {
    return c == 'I' ? char32_t{0x131} : c == 0x130 ? char32_t{'i'} : lower_of(c);
  });
}
std::string to_upper(std::string_view text, bool dotted_i) {
  if (!dotted_i) return mapped(text, upper_of);
  return mapped(text, [](char32_t c) { return c == 'i' ? char32_t{0x130} : upper_of(c); });
}

}  // namespace sardonyx::ops
