#include "wire/utf.h"

namespace sardonyx::wire {

bool append_utf8(uint32_t code_point, std::string& text) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  const auto trail = [&](int shift) { put(0x80 | (code_point >> shift & 0x3f)); };
  if (code_point > 0x10ffff || (code_point >= 0xd800 && code_point < 0xe000)) return false;
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
    trail(0);
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    trail(6);
    trail(0);
  } else {
    put(0xf0 | code_point >> 18);
    trail(12);
    trail(6);
    trail(0);
  }
  return true;
}

std::optional<std::u32string> code_points(std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    const int more = lead < 0x80                   ? 0
                     : lead >= 0xc2 && lead < 0xe0 ? 1
                     : lead >= 0xe0 && lead < 0xf0 ? 2
                     : lead >= 0xf0 && lead < 0xf5 ? 3
                                                   : -1;
    if (more < 0 || text.size() - i < static_cast<size_t>(more)) return std::nullopt;
    uint32_t point = more == 0 ? lead : lead & (0x3fu >> more);
    for (int k = 0; k < more; ++k) {
      const auto byte = static_cast<unsigned char>(text[i++]);
      if ((byte & 0xc0) != 0x80) return std::nullopt;
      point = point << 6 | (byte & 0x3f);
    }
    constexpr uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (point < least[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
      return std::nullopt;
    points += static_cast<char32_t>(point);
  }
  return points;
}

}  // namespace sardonyx::wire
