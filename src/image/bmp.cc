// Windows bitmaps of all header versions: 1 to 32 bits a pixel, bit fields, both run-length codes.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <vector>

#include "base/fail.h"
#include "image/codecs.h"

namespace sardonyx::image {
namespace {

enum Compression : uint32_t { plain = 0, rle8 = 1, rle4 = 2, fields = 3, alpha_fields = 6 };

class Reader {
 public:
  explicit Reader(const Bytes& bytes)
      : data_(reinterpret_cast<const uint8_t*>(bytes.data())), size_(bytes.size()) {}

  uint32_t number(size_t at, int bytes) const {
    require(at, static_cast<size_t>(bytes));
    uint32_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8 | data_[at + static_cast<size_t>(i)];
    return value;
  }
  const uint8_t* part(size_t at, size_t bytes) const {
    require(at, bytes);
    return data_ + at;
  }
  size_t size() const { return size_; }

 private:
  void require(size_t at, size_t bytes) const {
    if (at > size_ || bytes > size_ - at)
      fail(ErrorCode::unreadable, "not a sound BMP image: the file is cut off at byte {}", size_);
  }
  const uint8_t* data_;
  size_t size_;
};

struct Header {
  size_t pixels = 0;  // where they begin
  size_t header = 0;  // its size
  int64_t width = 0, height = 0;
  bool top_down = false;
  int bits = 0;
  uint32_t compression = plain;
  uint32_t masks[3] = {};
  std::vector<uint8_t> palette;  // RGB
};

void read_masks(const Reader& in, Header& h) {
  const uint32_t usual16[] = {0x7c00, 0x03e0, 0x001f};
  const uint32_t usual32[] = {0xff0000, 0x00ff00, 0x0000ff};
  const bool given = h.compression == fields || h.compression == alpha_fields;
  for (size_t c = 0; c < 3; ++c)
    h.masks[c] = given ? in.number(14 + 40 + 4 * c, 4) : h.bits == 16 ? usual16[c] : usual32[c];
}

void read_palette(const Reader& in, Header& h, size_t used) {
  const size_t entry = h.header == 12 ? 3 : 4, most = size_t{1} << h.bits;
  const size_t count = used == 0 ? most : std::min(used, most);
  const size_t masks = h.header == 40 && h.compression == fields ? 12 : 0;
  h.palette.assign(3 * most, 0);
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* bgr = in.part(14 + h.header + masks + i * entry, 3);
    for (size_t c = 0; c < 3; ++c) h.palette[3 * i + c] = bgr[2 - c];
  }
}

Header read_header(const Reader& in) {
  Header h;
  h.pixels = in.number(10, 4);
  h.header = in.number(14, 4);
  size_t used = 0;
  if (h.header == 12) {
    h.width = in.number(18, 2), h.height = in.number(20, 2),
    h.bits = static_cast<int>(in.number(24, 2));
  } else if (h.header >= 40) {
    h.width = static_cast<int32_t>(in.number(18, 4));
    h.height = static_cast<int32_t>(in.number(22, 4));
    h.bits = static_cast<int>(in.number(28, 2));
    h.compression = in.number(30, 4);
    used = in.number(46, 4);
  } else {
    fail(ErrorCode::unsupported, "a BMP image with a header of {} bytes is not read", h.header);
  }
  h.top_down = h.height < 0;
  h.height = std::abs(h.height);
  require_sound_image(h.height, h.width, in.size());
  const bool coded = h.compression == rle8 || h.compression == rle4;
  const bool direct = h.bits == 16 || h.bits == 24 || h.bits == 32;
  const bool indexed = h.bits == 1 || h.bits == 4 || h.bits == 8;
  const bool masked = h.compression == fields || h.compression == alpha_fields;
  if ((!direct && !indexed) || (!coded && !masked && h.compression != plain) ||
      (coded && h.bits != (h.compression == rle8 ? 8 : 4)) || (masked && (indexed || h.bits == 24)))
    fail(ErrorCode::unsupported, "a BMP image of {} bits a pixel with compression {} is not read",
         h.bits, h.compression);
  if (indexed)
    read_palette(in, h, used);
  else
    read_masks(in, h);
  return h;
}

// One channel of a pixel, from as many bits as its mask has to eight.
uint8_t channel(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const uint64_t low = pixel & mask;
  const int shift = std::countr_zero(mask);
  return static_cast<uint8_t>((low >> shift) * 255 / (mask >> shift));
}

void direct_row(const Header& h, const uint8_t* from, uint8_t* to) {
  for (int64_t x = 0; x < h.width; ++x, to += 3) {
    if (h.bits == 24) {
      for (int c = 0; c < 3; ++c) to[c] = from[3 * x + 2 - c];
      continue;
    }
    uint32_t pixel = 0;
    const int bytes = h.bits / 8;
    for (int i = bytes; i-- > 0;) pixel = pixel << 8 | from[x * bytes + i];
    for (int c = 0; c < 3; ++c) to[c] = channel(pixel, h.masks[c]);
  }
}

void indexed_row(const Header& h, const uint8_t* from, uint8_t* to) {
  const int per_byte = 8 / h.bits, mask = (1 << h.bits) - 1;
  for (int64_t x = 0; x < h.width; ++x, to += 3) {
    const int shift = 8 - h.bits * (static_cast<int>(x % per_byte) + 1);
    const auto index = static_cast<size_t>(from[x / per_byte] >> shift & mask);
    std::copy_n(h.palette.data() + 3 * index, 3, to);
  }
}

// The indices of a run-length coded image; what the code leaves out is 0.
std::vector<uint8_t> decode_runs(const Reader& in, const Header& h) {
  std::vector<uint8_t> indices(static_cast<size_t>(h.width * h.height), 0);
  const bool nibbles = h.compression == rle4;
  int64_t x = 0, y = 0;
  const auto put = [&](int index) {
    if (x < h.width && y < h.height)
      indices[static_cast<size_t>(y * h.width + x)] = static_cast<uint8_t>(index);
    ++x;
  };
  const auto half = [&](int byte, int i) { return i % 2 == 0 ? byte >> 4 : byte & 15; };
  size_t at = h.pixels;
  while (y < h.height) {
    const int count = *in.part(at, 2), value = *in.part(at + 1, 1);
    at += 2;
    if (count > 0) {
      for (int i = 0; i < count; ++i) put(nibbles ? half(value, i) : value);
    } else if (value == 0) {
      x = 0, ++y;
    } else if (value == 1) {
      break;
    } else if (value == 2) {
      x += *in.part(at, 2), y += *in.part(at + 1, 1);
      at += 2;
    } else {
      const size_t bytes = static_cast<size_t>(nibbles ? (value + 1) / 2 : value);
      const uint8_t* run = in.part(at, bytes);
      for (int i = 0; i < value; ++i) put(nibbles ? half(run[i / 2], i) : run[i]);
      at += (bytes + 1) / 2 * 2;
    }
  }
  return indices;
}

}  // namespace

Tensor decode_bmp(const Bytes& bytes) {
  const Reader in(bytes);
  const Header h = read_header(in);
  Tensor out(ElementType::uint8, {h.height, h.width, 3});
  uint8_t* pixels = out.mutable_elements<uint8_t>().data();
  const bool coded = h.compression == rle8 || h.compression == rle4;
  const std::vector<uint8_t> indices = coded ? decode_runs(in, h) : std::vector<uint8_t>();
  Header bytewise = h;
  bytewise.bits = 8;
  const int64_t stride = (h.width * h.bits + 31) / 32 * 4, used = (h.width * h.bits + 7) / 8;
  for (int64_t y = 0; y < h.height; ++y) {
    uint8_t* to = pixels + (h.top_down ? y : h.height - 1 - y) * h.width * 3;
    if (coded) {
      indexed_row(bytewise, indices.data() + y * h.width, to);
      continue;
    }
    const uint8_t* row =
        in.part(h.pixels + static_cast<size_t>(y * stride), static_cast<size_t>(used));
    if (h.palette.empty())
      direct_row(h, row, to);
    else
      indexed_row(h, row, to);
  }
  return out;
}

}  // namespace sardonyx::image
