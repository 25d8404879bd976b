#ifdef SARDONYX_WITH_TIFF
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/fail.h"
#include "image/codecs.h"

namespace sardonyx::image {
namespace {

constexpr tmsize_t most_at_once = tmsize_t{1} << 29;  // of one allocation inside libtiff

struct Source {
  const Bytes& bytes;
  uint64_t at = 0;
};

tmsize_t on_read(thandle_t handle, void* to, tmsize_t size) {
  auto& source = *static_cast<Source*>(handle);
  if (source.at >= source.bytes.size() || size <= 0) return 0;
  const uint64_t some =
      std::min<uint64_t>(static_cast<uint64_t>(size), source.bytes.size() - source.at);
  std::memcpy(to, source.bytes.data() + source.at, some);
  source.at += some;
  return static_cast<tmsize_t>(some);
}
tmsize_t on_write(thandle_t, void*, tmsize_t) { return 0; }
toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  auto& source = *static_cast<Source*>(handle);
  if (whence == SEEK_CUR) offset += source.at;
  if (whence == SEEK_END) offset += source.bytes.size();
  return source.at = offset;
}
int on_close(thandle_t) { return 0; }
toff_t on_size(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }
int on_message(TIFF*, void*, const char*, const char*, va_list) { return 1; }  // nothing is printed

struct Closer {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};

}  // namespace

Tensor decode_tiff(const Bytes& bytes) {
  Source source{bytes};
  const std::unique_ptr<TIFFOpenOptions, Closer> options(TIFFOpenOptionsAlloc());
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), most_at_once);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_message, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_message, nullptr);
  const std::unique_ptr<TIFF, Closer> tiff(TIFFClientOpenExt("image", "rm", &source, on_read,
                                                             on_write, on_seek, on_close, on_size,
                                                             nullptr, nullptr, options.get()));
  if (!tiff) fail(ErrorCode::unreadable, "not a sound TIFF image: its header is damaged");
  uint32_t width = 0, height = 0;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  require_sound_image(height, width, bytes.size());
  char reason[1024] = {};
  if (!TIFFRGBAImageOK(tiff.get(), reason))
    fail(ErrorCode::unsupported, "this TIFF image is not read: {}", reason);
  std::vector<uint32_t> raster(size_t{width} * height);
  if (!TIFFReadRGBAImageOriented(tiff.get(), width, height, raster.data(), ORIENTATION_TOPLEFT, 1))
    fail(ErrorCode::unreadable, "not a sound TIFF image: the file is cut off or damaged");
  Tensor out(ElementType::uint8, {height, width, 3});
  uint8_t* to = out.mutable_elements<uint8_t>().data();
  for (const uint32_t pixel : raster) {
    *to++ = static_cast<uint8_t>(TIFFGetR(pixel));
    *to++ = static_cast<uint8_t>(TIFFGetG(pixel));
    *to++ = static_cast<uint8_t>(TIFFGetB(pixel));
  }
  return out;
}

}  // namespace sardonyx::image
#endif
