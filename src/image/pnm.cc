// The portable formats: PBM, PGM and PPM, as text and as bytes, and PAM.
#include <algorithm>
#include <string_view>

#include "base/fail.h"
#include "image/codecs.h"

namespace sardonyx::image {
namespace {

constexpr std::string_view spaces = " \t\n\v\f\r";

[[noreturn]] void unsound(std::string_view what) {
  fail(ErrorCode::unreadable, "not a sound PNM image: {}", what);
}

// Words of the header and of the text forms: parted by blanks, '#' begins a comment.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::string_view next() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && spaces.find(text_[at_]) == spaces.npos && text_[at_] != '#') ++at_;
    if (at_ == begin) unsound("it is cut off");
    return text_.substr(begin, at_ - begin);
  }
  int64_t number() {
    int64_t value = 0;
    for (const char c : next()) {
      if (c < '0' || c > '9' || value > 1'000'000'000) unsound("a number is expected");
      value = value * 10 + (c - '0');
    }
    return value;
  }
  // One digit of a bitmap, which need not be parted from the next.
  int bit() {
    skip();
    if (at_ == text_.size()) unsound("it is cut off");
    const char c = text_[at_++];
    if (c != '0' && c != '1') unsound("a bit is expected");
    return c - '0';
  }
  // What lies behind the one blank after the header.
  std::string_view rest() const { return text_.substr(std::min(at_ + 1, text_.size())); }

 private:
  void skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#')
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      else if (spaces.find(text_[at_]) != spaces.npos)
        ++at_;
      else
        return;
    }
  }
  std::string_view text_;
  size_t at_ = 0;
};

struct Header {
  char kind = '1';
  int64_t width = 0, height = 0, depth = 1, most = 1;
};

Header read_header(std::string_view text, Words& words) {
  Header h;
  h.kind = text[1];
  if (h.kind == '7') {
    for (;;) {
      const std::string_view word = words.next();
      if (word == "ENDHDR") break;
      if (word == "WIDTH")
        h.width = words.number();
      else if (word == "HEIGHT")
        h.height = words.number();
      else if (word == "DEPTH")
        h.depth = words.number();
      else if (word == "MAXVAL")
        h.most = words.number();
      else if (word == "TUPLTYPE")
        words.next();
      else
        unsound("its header has an unknown line");
    }
  } else {
    h.width = words.number(), h.height = words.number();
    h.depth = h.kind == '3' || h.kind == '6' ? 3 : 1;
    if (h.kind != '1' && h.kind != '4') h.most = words.number();
  }
  require_sound_image(h.height, h.width, text.size());
  if (h.most < 1 || h.most > 65535) unsound("its largest value must be in [1, 65535]");
  if (h.depth < 1 || h.depth > 4) unsound("its depth must be in [1, 4]");
  return h;
}

uint8_t scaled(int64_t value, int64_t most) {
  return static_cast<uint8_t>((std::min(value, most) * 255 + most / 2) / most);
}

// Bytes of the binary forms; colours first, what follows them is transparency.
void read_samples(const Header& h, std::string_view data, int64_t channels, uint8_t* to) {
  const int64_t width = h.most > 255 ? 2 : 1, pixels = h.width * h.height;
  if (static_cast<int64_t>(data.size()) / (width * h.depth) < pixels) unsound("it is cut off");
  const auto* from = reinterpret_cast<const uint8_t*>(data.data());
  for (int64_t i = 0; i < pixels; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      const uint8_t* sample = from + (i * h.depth + c) * width;
      *to++ = scaled(width == 2 ? sample[0] * 256 + sample[1] : sample[0], h.most);
    }
  }
}

void read_bits(const Header& h, std::string_view data, uint8_t* to) {
  const int64_t row = (h.width + 7) / 8;
  if (static_cast<int64_t>(data.size()) / row < h.height) unsound("it is cut off");
  const auto* from = reinterpret_cast<const uint8_t*>(data.data());
  for (int64_t y = 0; y < h.height; ++y) {
    for (int64_t x = 0; x < h.width; ++x)
      *to++ = from[y * row + x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
  }
}

}  // namespace

Tensor decode_pnm(const Bytes& bytes) {
  const std::string_view text = bytes.text();
  Words words(text.substr(2));
  const Header h = read_header(text, words);
  const int64_t channels = h.depth >= 3 ? 3 : 1;
  Tensor out(ElementType::uint8, {h.height, h.width, channels});
  uint8_t* to = out.mutable_elements<uint8_t>().data();
  switch (h.kind) {
    case '1':
      for (int64_t i = 0; i < out.size(); ++i) to[i] = words.bit() ? 0 : 255;
      break;
    case '2':
    case '3':
      for (int64_t i = 0; i < out.size(); ++i) to[i] = scaled(words.number(), h.most);
      break;
    case '4': read_bits(h, words.rest(), to); break;
    default: read_samples(h, words.rest(), channels, to);
  }
  return out;
}

}  // namespace sardonyx::image
