#ifdef SARDONYX_WITH_OPENJP2
#include <openjpeg.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/fail.h"
#include "image/codecs.h"
#include "image/loaded_library.h"

namespace sardonyx::image {
namespace {

struct Source {
  const Bytes& bytes;
  size_t at = 0;
};

constexpr auto at_end = static_cast<OPJ_SIZE_T>(-1);

OPJ_SIZE_T on_read(void* to, OPJ_SIZE_T size, void* data) {
  auto& source = *static_cast<Source*>(data);
  if (source.at >= source.bytes.size()) return at_end;
  const size_t some = std::min<size_t>(size, source.bytes.size() - source.at);
  std::memcpy(to, source.bytes.data() + source.at, some);
  source.at += some;
  return some;
}
OPJ_OFF_T on_skip(OPJ_OFF_T count, void* data) {
  auto& source = *static_cast<Source*>(data);
  if (count < 0) return -1;
  const size_t some = std::min(static_cast<size_t>(count), source.bytes.size() - source.at);
  source.at += some;
  return static_cast<OPJ_OFF_T>(some);
}
OPJ_BOOL on_seek(OPJ_OFF_T to, void* data) {
  auto& source = *static_cast<Source*>(data);
  if (to < 0 || static_cast<size_t>(to) > source.bytes.size()) return OPJ_FALSE;
  source.at = static_cast<size_t>(to);
  return OPJ_TRUE;
}

struct Library : LoadedLibrary {
  Library() : LoadedLibrary(SARDONYX_OPENJP2_FILE, "JPEG 2000") {}
  template <class Declared>
  using Function = LoadedFunction<Declared>;
  Function<decltype(opj_destroy_codec)> destroy_codec{*this, "opj_destroy_codec"};
  Function<decltype(opj_stream_destroy)> destroy_stream{*this, "opj_stream_destroy"};
  Function<decltype(opj_image_destroy)> destroy_image{*this, "opj_image_destroy"};
  Function<decltype(opj_stream_create)> create_stream{*this, "opj_stream_create"};
  Function<decltype(opj_stream_set_user_data_length)> set_user_data_length{
      *this, "opj_stream_set_user_data_length"};
  Function<decltype(opj_stream_set_user_data)> set_user_data{*this, "opj_stream_set_user_data"};
  Function<decltype(opj_stream_set_read_function)> set_read_function{
      *this, "opj_stream_set_read_function"};
  Function<decltype(opj_stream_set_skip_function)> set_skip_function{
      *this, "opj_stream_set_skip_function"};
  Function<decltype(opj_stream_set_seek_function)> set_seek_function{
      *this, "opj_stream_set_seek_function"};
  Function<decltype(opj_create_decompress)> create_decompress{*this, "opj_create_decompress"};
  Function<decltype(opj_set_default_decoder_parameters)> set_default_parameters{
      *this, "opj_set_default_decoder_parameters"};
  Function<decltype(opj_setup_decoder)> setup_decoder{*this, "opj_setup_decoder"};
  Function<decltype(opj_read_header)> read_header{*this, "opj_read_header"};
  Function<decltype(opj_decode)> decode{*this, "opj_decode"};
  Function<decltype(opj_end_decompress)> end_decompress{*this, "opj_end_decompress"};
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

// The library names codecs and streams void alike.
struct CloseCodec {
  void operator()(opj_codec_t* codec) const { library().destroy_codec(codec); }
};
struct CloseStream {
  void operator()(opj_stream_t* stream) const { library().destroy_stream(stream); }
};
struct CloseImage {
  void operator()(opj_image_t* image) const { library().destroy_image(image); }
};
using Image = std::unique_ptr<opj_image_t, CloseImage>;

[[noreturn]] void unsound() {
  fail(ErrorCode::unreadable, "not a sound JPEG 2000 image: the file is cut off or damaged");
}

Image read_image(const Bytes& bytes) {
  Source source{bytes};
  const std::unique_ptr<opj_stream_t, CloseStream> stream(
      library().create_stream(1 << 16, OPJ_TRUE));
  library().set_user_data(stream.get(), &source, nullptr);
  library().set_user_data_length(stream.get(), bytes.size());
  library().set_read_function(stream.get(), on_read);
  library().set_skip_function(stream.get(), on_skip);
  library().set_seek_function(stream.get(), on_seek);
  const bool bare = bytes.text().starts_with("\xff\x4f");
  const std::unique_ptr<opj_codec_t, CloseCodec> codec(
      library().create_decompress(bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2));
  opj_dparameters_t parameters;
  library().set_default_parameters(&parameters);
  opj_image_t* made = nullptr;
  const bool opened = codec && library().setup_decoder(codec.get(), &parameters) &&
                      library().read_header(stream.get(), codec.get(), &made);
  Image image(made);
  if (!opened || !image || image->x1 <= image->x0 || image->y1 <= image->y0) unsound();
  require_sound_size(image->y1 - image->y0, image->x1 - image->x0);
  if (image->numcomps < 1 || image->numcomps > 8)
    fail(ErrorCode::unsupported, "a JPEG 2000 image of {} components is not read", image->numcomps);
  if (!library().decode(codec.get(), stream.get(), image.get()) ||
      !library().end_decompress(codec.get(), stream.get()))
    unsound();
  return image;
}

// The sample of a component that covers a point of the image, as eight bits.
int sample(const opj_image_comp_t& c, int64_t x, int64_t y) {
  const int64_t column = std::min<int64_t>(x / c.dx, c.w - 1);
  const int64_t row = std::min<int64_t>(y / c.dy, c.h - 1);
  int64_t value = c.data[row * c.w + column];
  if (c.sgnd) value += int64_t{1} << (c.prec - 1);
  const int64_t most = (int64_t{1} << c.prec) - 1;
  value = std::clamp<int64_t>(value, 0, most);
  return static_cast<int>(c.prec >= 8 ? value >> (c.prec - 8) : value * 255 / most);
}

uint8_t rounded(double value) {
  return static_cast<uint8_t>(std::clamp(std::lround(value), 0l, 255l));
}

}  // namespace

Tensor decode_jpeg2000(const Bytes& bytes) {
  const Image image = read_image(bytes);
  const int64_t width = image->x1 - image->x0, height = image->y1 - image->y0;
  const int channels = image->numcomps >= 3 ? 3 : 1;
  for (int c = 0; c < channels; ++c) {
    const opj_image_comp_t& comp = image->comps[c];
    if (comp.data == nullptr || comp.w == 0 || comp.h == 0 || comp.dx == 0 || comp.dy == 0 ||
        comp.prec < 1 || comp.prec > 31)
      unsound();
  }
  const bool luma_chroma = channels == 3 && image->color_space == OPJ_CLRSPC_SYCC;
  Tensor out(ElementType::uint8, {height, width, channels});
  uint8_t* to = out.mutable_elements<uint8_t>().data();
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, to += channels) {
      int v[3] = {};
      for (int c = 0; c < channels; ++c) v[c] = sample(image->comps[c], x, y);
      if (!luma_chroma) {
        for (int c = 0; c < channels; ++c) to[c] = static_cast<uint8_t>(v[c]);
        continue;
      }
      to[0] = rounded(v[0] + 1.402 * (v[2] - 128));
      to[1] = rounded(v[0] - 0.344136 * (v[1] - 128) - 0.714136 * (v[2] - 128));
      to[2] = rounded(v[0] + 1.772 * (v[1] - 128));
    }
  }
  return out;
}

}  // namespace sardonyx::image
#endif
