#ifdef SARDONYX_WITH_PNG
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "image/codecs.h"
#include "image/loaded_library.h"

namespace sardonyx::image {
namespace {

struct Library : LoadedLibrary {
  Library() : LoadedLibrary(SARDONYX_PNG_FILE, "PNG") {}
  LoadedFunction<decltype(::png_destroy_read_struct)> destroy_read_struct{
      *this, "png_destroy_read_struct", SARDONYX_LINKED(::png_destroy_read_struct)};
  LoadedFunction<decltype(::png_get_error_ptr)> get_error_ptr{*this, "png_get_error_ptr",
                                                              SARDONYX_LINKED(::png_get_error_ptr)};
  LoadedFunction<decltype(::png_longjmp)> jump{*this, "png_longjmp",
                                               SARDONYX_LINKED(::png_longjmp)};
  LoadedFunction<decltype(::png_get_io_ptr)> get_io_ptr{*this, "png_get_io_ptr",
                                                        SARDONYX_LINKED(::png_get_io_ptr)};
  LoadedFunction<decltype(::png_error)> raise{*this, "png_error", SARDONYX_LINKED(::png_error)};
  LoadedFunction<decltype(::png_create_read_struct)> create_read_struct{
      *this, "png_create_read_struct", SARDONYX_LINKED(::png_create_read_struct)};
  LoadedFunction<decltype(::png_set_longjmp_fn)> set_longjmp_fn{
      *this, "png_set_longjmp_fn", SARDONYX_LINKED(::png_set_longjmp_fn)};
  LoadedFunction<decltype(::png_create_info_struct)> create_info_struct{
      *this, "png_create_info_struct", SARDONYX_LINKED(::png_create_info_struct)};
  LoadedFunction<decltype(::png_set_read_fn)> set_read_fn{*this, "png_set_read_fn",
                                                          SARDONYX_LINKED(::png_set_read_fn)};
  LoadedFunction<decltype(::png_set_chunk_malloc_max)> set_chunk_malloc_max{
      *this, "png_set_chunk_malloc_max", SARDONYX_LINKED(::png_set_chunk_malloc_max)};
  LoadedFunction<decltype(::png_set_chunk_cache_max)> set_chunk_cache_max{
      *this, "png_set_chunk_cache_max", SARDONYX_LINKED(::png_set_chunk_cache_max)};
  LoadedFunction<decltype(::png_read_info)> read_info{*this, "png_read_info",
                                                      SARDONYX_LINKED(::png_read_info)};
  LoadedFunction<decltype(::png_get_image_width)> get_image_width{
      *this, "png_get_image_width", SARDONYX_LINKED(::png_get_image_width)};
  LoadedFunction<decltype(::png_get_image_height)> get_image_height{
      *this, "png_get_image_height", SARDONYX_LINKED(::png_get_image_height)};
  LoadedFunction<decltype(::png_set_scale_16)> set_scale_16{*this, "png_set_scale_16",
                                                            SARDONYX_LINKED(::png_set_scale_16)};
  LoadedFunction<decltype(::png_set_packing)> set_packing{*this, "png_set_packing",
                                                          SARDONYX_LINKED(::png_set_packing)};
  LoadedFunction<decltype(::png_set_palette_to_rgb)> set_palette_to_rgb{
      *this, "png_set_palette_to_rgb", SARDONYX_LINKED(::png_set_palette_to_rgb)};
  LoadedFunction<decltype(::png_set_expand_gray_1_2_4_to_8)> set_expand_gray_1_2_4_to_8{
      *this, "png_set_expand_gray_1_2_4_to_8", SARDONYX_LINKED(::png_set_expand_gray_1_2_4_to_8)};
  LoadedFunction<decltype(::png_set_strip_alpha)> set_strip_alpha{
      *this, "png_set_strip_alpha", SARDONYX_LINKED(::png_set_strip_alpha)};
  LoadedFunction<decltype(::png_set_interlace_handling)> set_interlace_handling{
      *this, "png_set_interlace_handling", SARDONYX_LINKED(::png_set_interlace_handling)};
  LoadedFunction<decltype(::png_read_update_info)> read_update_info{
      *this, "png_read_update_info", SARDONYX_LINKED(::png_read_update_info)};
  LoadedFunction<decltype(::png_get_channels)> get_channels{*this, "png_get_channels",
                                                            SARDONYX_LINKED(::png_get_channels)};
  LoadedFunction<decltype(::png_read_image)> read_image{*this, "png_read_image",
                                                        SARDONYX_LINKED(::png_read_image)};
  LoadedFunction<decltype(::png_read_end)> read_end{*this, "png_read_end",
                                                    SARDONYX_LINKED(::png_read_end)};
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

// libpng reports errors by a jump, over which no destructor runs. So everything that has one is
// made outside, and only the two functions that set the jump's target call libpng.
struct Decoder {
  const Library& lib = library();  // first: where it can't be loaded nothing is to be destroyed
  const Bytes& bytes;
  size_t read = 0;
  char error[128] = {};
  png_structp png = nullptr;
  png_infop info = nullptr;
  png_uint_32 width = 0, height = 0;
  int channels = 0;

  explicit Decoder(const Bytes& file) : bytes(file) {}
  ~Decoder() { lib.destroy_read_struct(&png, &info, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

void on_error(png_structp png, png_const_charp message) {
  auto* decoder = static_cast<Decoder*>(library().get_error_ptr(png));
  std::strncpy(decoder->error, message, sizeof decoder->error - 1);
  library().jump(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, size_t size) {
  auto* decoder = static_cast<Decoder*>(library().get_io_ptr(png));
  if (size > decoder->bytes.size() - decoder->read) library().raise(png, "the file is cut off");
  std::memcpy(to, decoder->bytes.data() + decoder->read, size);
  decoder->read += size;
}

bool read_header(Decoder& d) {
  const Library& lib = d.lib;
  d.png = lib.create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
  if (d.png == nullptr) return false;
  if (setjmp(*lib.set_longjmp_fn(d.png, longjmp, sizeof(jmp_buf)))) return false;
  d.info = lib.create_info_struct(d.png);
  if (d.info == nullptr) return false;
  lib.set_read_fn(d.png, &d, on_read);
  lib.set_chunk_malloc_max(d.png, 8 << 20);
  lib.set_chunk_cache_max(d.png, 128);
  lib.read_info(d.png, d.info);
  d.width = lib.get_image_width(d.png, d.info);
  d.height = lib.get_image_height(d.png, d.info);
  // 8-bit grey or RGB, whatever the file has.
  lib.set_scale_16(d.png);
  lib.set_packing(d.png);
  lib.set_palette_to_rgb(d.png);
  lib.set_expand_gray_1_2_4_to_8(d.png);
  lib.set_strip_alpha(d.png);
  lib.set_interlace_handling(d.png);
  lib.read_update_info(d.png, d.info);
  d.channels = lib.get_channels(d.png, d.info);
  return true;
}

bool read_rows(Decoder& d, png_bytepp rows) {
  const Library& lib = d.lib;
  if (setjmp(*lib.set_longjmp_fn(d.png, longjmp, sizeof(jmp_buf)))) return false;
  lib.read_image(d.png, rows);
  lib.read_end(d.png, nullptr);
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
