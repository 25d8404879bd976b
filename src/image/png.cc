#ifdef SARDONYX_WITH_PNG
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "image/codecs.h"

namespace sardonyx::image {
namespace {

// libpng reports errors by a jump, over which no destructor runs. So everything that has one is
// made outside, and only the two functions that set the jump's target call libpng.
struct Decoder {
  const Bytes& bytes;
  size_t read = 0;
  char error[128] = {};
  png_structp png = nullptr;
  png_infop info = nullptr;
  png_uint_32 width = 0, height = 0;
  int channels = 0;

  explicit Decoder(const Bytes& file) : bytes(file) {}
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

void on_error(png_structp png, png_const_charp message) {
  auto* decoder = static_cast<Decoder*>(png_get_error_ptr(png));
  std::strncpy(decoder->error, message, sizeof decoder->error - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, size_t size) {
  auto* decoder = static_cast<Decoder*>(png_get_io_ptr(png));
  if (size > decoder->bytes.size() - decoder->read) png_error(png, "the file is cut off");
  std::memcpy(to, decoder->bytes.data() + decoder->read, size);
  decoder->read += size;
}

bool read_header(Decoder& d) {
  d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
  if (d.png == nullptr) return false;
  if (setjmp(png_jmpbuf(d.png))) return false;
  d.info = png_create_info_struct(d.png);
  if (d.info == nullptr) return false;
  png_set_read_fn(d.png, &d, on_read);
  png_set_chunk_malloc_max(d.png, 8 << 20);
  png_set_chunk_cache_max(d.png, 128);
  png_read_info(d.png, d.info);
  d.width = png_get_image_width(d.png, d.info);
  d.height = png_get_image_height(d.png, d.info);
  // 8-bit grey or RGB, whatever the file has.
  png_set_scale_16(d.png);
  png_set_packing(d.png);
  png_set_palette_to_rgb(d.png);
  png_set_expand_gray_1_2_4_to_8(d.png);
  png_set_strip_alpha(d.png);
  png_set_interlace_handling(d.png);
  png_read_update_info(d.png, d.info);
  d.channels = png_get_channels(d.png, d.info);
  return true;
}

bool read_rows(Decoder& d, png_bytepp rows) {
  if (setjmp(png_jmpbuf(d.png))) return false;
  png_read_image(d.png, rows);
  png_read_end(d.png, nullptr);
  return true;
}

}  // namespace

Tensor decode_png(const Bytes& bytes) {
  Decoder decoder(bytes);
  if (!read_header(decoder))
    fail(ErrorCode::unreadable, "not a sound PNG image: {}", decoder.error);
  require_sound_image(decoder.height, decoder.width, bytes.size());
  if (decoder.channels != 1 && decoder.channels != 3) {
    fail(ErrorCode::unsupported, "a PNG image with {} channels is not read", decoder.channels);
  }
  const int64_t height = decoder.height, width = decoder.width;
  Tensor own(ElementType::uint8, {height, width, decoder.channels});
  uint8_t* pixels = own.mutable_elements<uint8_t>().data();
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < height; ++y) rows.push_back(pixels + y * width * decoder.channels);
  if (!read_rows(decoder, rows.data()))
    fail(ErrorCode::unreadable, "not a sound PNG image: {}", decoder.error);
  return own;
}

}  // namespace sardonyx::image
#endif
