#include "image/decode.h"

#include <algorithm>

#include "base/fail.h"
#include "image/codecs.h"

namespace sardonyx::image {
namespace {

using Decode = Tensor (*)(const Bytes&);

// Null where the build has no library for it.
Decode decoder_of(Format format) {
  switch (format) {
    case Format::bmp: return decode_bmp;
    case Format::pnm: return decode_pnm;
#ifdef SARDONYX_WITH_PNG
    case Format::png: return decode_png;
#endif
#ifdef SARDONYX_WITH_JPEG
    case Format::jpeg: return decode_jpeg;
#endif
#ifdef SARDONYX_WITH_WEBP
    case Format::webp: return decode_webp;
#endif
#ifdef SARDONYX_WITH_TIFF
    case Format::tiff: return decode_tiff;
#endif
#ifdef SARDONYX_WITH_OPENJP2
    case Format::jpeg2000: return decode_jpeg2000;
#endif
    default: return nullptr;
  }
}

Tensor with_channels(const Tensor& own, int64_t channels) {
  if (own.shape()[2] == channels) return own;
  const int64_t pixels = own.shape()[0] * own.shape()[1];
  Tensor out(ElementType::uint8, {own.shape()[0], own.shape()[1], channels});
  const uint8_t* from = own.elements<uint8_t>().data();
  uint8_t* to = out.mutable_elements<uint8_t>().data();
  for (int64_t i = 0; i < pixels; ++i) {
    if (channels == 3) {
      std::fill_n(to + 3 * i, 3, from[i]);
    } else {
      const uint8_t* rgb = from + 3 * i;
      to[i] =
          static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
    }
  }
  return out;
}

}  // namespace

void require_sound_size(int64_t height, int64_t width) {
  if (height <= 0 || width <= 0 || height > max_pixels / width) {
    fail(ErrorCode::unsupported, "an image of {} x {} pixels is not read; the limit is {} in all",
         width, height, max_pixels);
  }
}

void require_sound_image(int64_t height, int64_t width, size_t bytes) {
  require_sound_size(height, width);
  if (height * width / 10000 > static_cast<int64_t>(bytes) + 100) {
    fail(ErrorCode::unreadable, "the image claims {} x {} pixels, more than its {} bytes can hold",
         width, height, bytes);
  }
}

std::string_view name_of(Format format) {
  constexpr std::string_view names[] = {"unknown", "PNG",  "JPEG", "BMP",
                                        "PNM",     "WebP", "TIFF", "JPEG 2000"};
  return names[static_cast<size_t>(format)];
}

Format format_of(const Bytes& bytes) {
  using namespace std::string_view_literals;
  const std::string_view text = bytes.text();
  if (text.starts_with("\x89PNG\r\n\x1a\n"sv)) return Format::png;
  if (text.starts_with("\xff\xd8\xff"sv)) return Format::jpeg;
  if (text.starts_with("BM"sv)) return Format::bmp;
  if (text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7') return Format::pnm;
  if (text.starts_with("RIFF"sv) && text.size() > 12 && text.substr(8, 4) == "WEBP"sv)
    return Format::webp;
  if (text.starts_with("II*\0"sv) || text.starts_with("MM\0*"sv) || text.starts_with("II+\0"sv) ||
      text.starts_with("MM\0+"sv))
    return Format::tiff;
  if (text.starts_with("\0\0\0\x0cjP  \r\n\x87\n"sv) || text.starts_with("\xff\x4f\xff\x51"sv))
    return Format::jpeg2000;
  return Format::unknown;
}

bool supports(Format format) { return decoder_of(format) != nullptr; }
bool supports_any_library() { return supports(Format::png) && supports(Format::jpeg); }

Tensor decode(const Bytes& bytes, int channels) {
  if (channels != 1 && channels != 3)
    fail(ErrorCode::unsupported, "images are read with 1 or 3 channels, not {}", channels);
  const Format format = format_of(bytes);
  if (format == Format::unknown) {
    fail(ErrorCode::unsupported,
         "the bytes are no image that is read: PNG, JPEG, JPEG 2000, WebP, TIFF, BMP or PNM");
  }
  const Decode decode_own = decoder_of(format);
  if (decode_own == nullptr) {
    fail(ErrorCode::unsupported,
         "this build of Sardonyx reads no {} images; build it with the library for them",
         name_of(format));
  }
  return with_channels(decode_own(bytes), channels);
}

}  // namespace sardonyx::image
