#ifdef SARDONYX_WITH_JPEG
#include <cstdio>  // jpeglib.h needs it first

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstring>

#include "base/fail.h"
#include "image/codecs.h"
#include "image/loaded_library.h"

namespace sardonyx::image {
namespace {

// A progressive image of many scans over a large size takes very long to decode.
constexpr int max_scans = 200;

struct Library : LoadedLibrary {
  Library() : LoadedLibrary(SARDONYX_JPEG_FILE, "JPEG") {}
  LoadedFunction<decltype(::jpeg_destroy_decompress)> destroy{
      *this, "jpeg_destroy_decompress", SARDONYX_LINKED(::jpeg_destroy_decompress)};
  LoadedFunction<decltype(::jpeg_std_error)> std_error{*this, "jpeg_std_error",
                                                       SARDONYX_LINKED(::jpeg_std_error)};
  LoadedFunction<decltype(::jpeg_CreateDecompress)> create{
      *this, "jpeg_CreateDecompress", SARDONYX_LINKED(::jpeg_CreateDecompress)};
  LoadedFunction<decltype(::jpeg_mem_src)> mem_src{*this, "jpeg_mem_src",
                                                   SARDONYX_LINKED(::jpeg_mem_src)};
  LoadedFunction<decltype(::jpeg_read_header)> read_header{*this, "jpeg_read_header",
                                                           SARDONYX_LINKED(::jpeg_read_header)};
  LoadedFunction<decltype(::jpeg_start_decompress)> start{*this, "jpeg_start_decompress",
                                                          SARDONYX_LINKED(::jpeg_start_decompress)};
  LoadedFunction<decltype(::jpeg_read_scanlines)> read_scanlines{
      *this, "jpeg_read_scanlines", SARDONYX_LINKED(::jpeg_read_scanlines)};
  LoadedFunction<decltype(::jpeg_finish_decompress)> finish{
      *this, "jpeg_finish_decompress", SARDONYX_LINKED(::jpeg_finish_decompress)};
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

// libjpeg reports errors by calling error_exit, which must not return: it jumps. No object with a
// destructor is made between the jump and its target.
struct Decoder {
  const Library& lib = library();  // first: where it can't be loaded nothing is to be destroyed
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf target;
  char error[JMSG_LENGTH_MAX] = {};
  bool cut_off = false;

  ~Decoder() { lib.destroy(&jpeg); }
};

Decoder& decoder_of(j_common_ptr jpeg) { return *static_cast<Decoder*>(jpeg->client_data); }

[[noreturn]] void on_error(j_common_ptr jpeg) {
  Decoder& decoder = decoder_of(jpeg);
  jpeg->err->format_message(jpeg, decoder.error);
  std::longjmp(decoder.target, 1);
}

void on_message(j_common_ptr jpeg, int) {
  if (jpeg->err->msg_code == JWRN_JPEG_EOF || jpeg->err->msg_code == JWRN_HIT_MARKER)
    decoder_of(jpeg).cut_off = true;
}

void on_output(j_common_ptr) {}

void on_progress(j_common_ptr jpeg) {
  if (decoder_of(jpeg).jpeg.input_scan_number <= max_scans) return;
  std::strcpy(decoder_of(jpeg).error, "it has too many scans");
  std::longjmp(decoder_of(jpeg).target, 1);
}

bool read_header(Decoder& d, const Bytes& bytes) {
  const Library& lib = d.lib;
  d.jpeg.err = lib.std_error(&d.errors);
  d.errors.error_exit = on_error;
  d.errors.emit_message = on_message;
  d.errors.output_message = on_output;
  d.jpeg.client_data = &d;
  if (setjmp(d.target)) return false;
  lib.create(&d.jpeg, JPEG_LIB_VERSION, sizeof d.jpeg);
  d.progress.progress_monitor = on_progress;
  d.jpeg.progress = &d.progress;
  lib.mem_src(&d.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
              static_cast<unsigned long>(bytes.size()));
  lib.read_header(&d.jpeg, TRUE);
  const J_COLOR_SPACE own = d.jpeg.jpeg_color_space;
  d.jpeg.out_color_space = own == JCS_GRAYSCALE                 ? JCS_GRAYSCALE
                           : own == JCS_CMYK || own == JCS_YCCK ? JCS_CMYK
                                                                : JCS_RGB;
  return true;
}

bool read_rows(Decoder& d, uint8_t* pixels, int channels) {
  const Library& lib = d.lib;
  if (setjmp(d.target)) return false;
  lib.start(&d.jpeg);
  while (d.jpeg.output_scanline < d.jpeg.output_height) {
    JSAMPROW row = pixels + size_t{d.jpeg.output_scanline} * d.jpeg.output_width *
                                static_cast<size_t>(channels);
    lib.read_scanlines(&d.jpeg, &row, 1);
  }
  lib.finish(&d.jpeg);
  return true;
}

// Adobe's files hold the complement of each ink.
Tensor rgb_of_inks(const Tensor& inks, bool complement) {
  Tensor out(ElementType::uint8, {inks.shape()[0], inks.shape()[1], 3});
  const uint8_t* from = inks.elements<uint8_t>().data();
  uint8_t* to = out.mutable_elements<uint8_t>().data();
  const int flip = complement ? 0 : 255;
  for (int64_t i = 0; i < inks.size() / 4; ++i) {
    for (int c = 0; c < 3; ++c) {
      const int light = (from[4 * i + c] ^ flip) * (from[4 * i + 3] ^ flip);
      to[3 * i + c] = static_cast<uint8_t>((light + 127) / 255);
    }
  }
  return out;
}

}  // namespace

Tensor decode_jpeg(const Bytes& bytes) {
  Decoder decoder;
  if (!read_header(decoder, bytes))
    fail(ErrorCode::unreadable, "not a sound JPEG image: {}", decoder.error);
  const int64_t height = decoder.jpeg.image_height, width = decoder.jpeg.image_width;
  require_sound_image(height, width, bytes.size());
  const J_COLOR_SPACE colors = decoder.jpeg.out_color_space;
  const int channels = colors == JCS_GRAYSCALE ? 1 : colors == JCS_CMYK ? 4 : 3;
  Tensor out(ElementType::uint8, {height, width, channels});
  if (!read_rows(decoder, out.mutable_elements<uint8_t>().data(), channels)) {
    fail(ErrorCode::unreadable, "not a sound JPEG image: {}", decoder.error);
  }
  if (decoder.cut_off)
    fail(ErrorCode::unreadable, "not a sound JPEG image: the file is cut off or damaged");
  return channels == 4 ? rgb_of_inks(out, decoder.jpeg.saw_Adobe_marker != 0) : out;
}

}  // namespace sardonyx::image
#endif
