#ifdef SARDONYX_WITH_TIFF
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "image/codecs.h"
#include "image/loaded_library.h"

namespace sardonyx::image {
namespace {

constexpr tmsize_t max_at_once = tmsize_t{1} << 29;  // of one allocation inside libtiff

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

struct Library : LoadedLibrary {
  Library() : LoadedLibrary(SARDONYX_TIFF_FILE, "TIFF") {}
  template <class Declared>
  using Function = LoadedFunction<Declared>;
  Function<decltype(TIFFOpenOptionsAlloc)> alloc_options{*this, "TIFFOpenOptionsAlloc"};
  Function<decltype(TIFFOpenOptionsFree)> free_options{*this, "TIFFOpenOptionsFree"};
  Function<decltype(TIFFOpenOptionsSetMaxSingleMemAlloc)> set_most{
      *this, "TIFFOpenOptionsSetMaxSingleMemAlloc"};
  Function<decltype(TIFFOpenOptionsSetErrorHandlerExtR)> set_on_error{
      *this, "TIFFOpenOptionsSetErrorHandlerExtR"};
  Function<decltype(TIFFOpenOptionsSetWarningHandlerExtR)> set_on_warning{
      *this, "TIFFOpenOptionsSetWarningHandlerExtR"};
  Function<decltype(TIFFClientOpenExt)> open{*this, "TIFFClientOpenExt"};
  Function<decltype(TIFFClose)> close{*this, "TIFFClose"};
  Function<decltype(TIFFGetField)> get_field{*this, "TIFFGetField"};
  Function<decltype(TIFFSetField)> set_field{*this, "TIFFSetField"};
  Function<decltype(TIFFRGBAImageOK)> is_rgba{*this, "TIFFRGBAImageOK"};
  Function<decltype(TIFFReadRGBAImageOriented)> read_rgba{*this, "TIFFReadRGBAImageOriented"};
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

struct Closer {
  void operator()(TIFF* tiff) const { library().close(tiff); }
  void operator()(TIFFOpenOptions* options) const { library().free_options(options); }
};

// libtiff multiplies colors by a transparency that they are not multiplied by yet. Called one that
// they are multiplied by, it leaves them as they are.
void drop_transparency(TIFF* tiff) {
  uint16_t count = 0;
  const uint16_t* extra = nullptr;
  if (!library().get_field(tiff, TIFFTAG_EXTRASAMPLES, &count, &extra) || count == 0) return;
  std::vector<uint16_t> samples(extra, extra + count);
  if (samples[0] != EXTRASAMPLE_UNASSALPHA) return;
  samples[0] = EXTRASAMPLE_ASSOCALPHA;
  library().set_field(tiff, TIFFTAG_EXTRASAMPLES, count, samples.data());
}

// Where the rows of the file are columns of the image: its first row is the left or right column,
// seen from the top or the bottom. libtiff takes them for rows.
bool holds_columns(uint16_t orientation) {
  return orientation >= ORIENTATION_LEFTTOP && orientation <= ORIENTATION_LEFTBOT;
}

std::vector<uint32_t> rows_of_columns(const std::vector<uint32_t>& columns, size_t width,
                                      size_t height, uint16_t orientation) {
  const bool from_right =
      orientation == ORIENTATION_RIGHTTOP || orientation == ORIENTATION_RIGHTBOT;
  const bool from_bottom =
      orientation == ORIENTATION_RIGHTBOT || orientation == ORIENTATION_LEFTBOT;
  std::vector<uint32_t> rows;
  rows.reserve(columns.size());
  for (size_t y = 0; y < width; ++y) {
    for (size_t x = 0; x < height; ++x) {
      const size_t column = from_right ? height - 1 - x : x;
      rows.push_back(columns[column * width + (from_bottom ? width - 1 - y : y)]);
    }
  }
  return rows;
}

}  // namespace

Tensor decode_tiff(const Bytes& bytes) {
  Source source{bytes};
  const std::unique_ptr<TIFFOpenOptions, Closer> options(library().alloc_options());
  library().set_most(options.get(), max_at_once);
  library().set_on_error(options.get(), on_message, nullptr);
  library().set_on_warning(options.get(), on_message, nullptr);
  const std::unique_ptr<TIFF, Closer> tiff(library().open("image", "rm", &source, on_read, on_write,
                                                          on_seek, on_close, on_size, nullptr,
                                                          nullptr, options.get()));
  if (!tiff) fail(ErrorCode::unreadable, "not a sound TIFF image: its header is damaged");
  uint32_t width = 0, height = 0;
  library().get_field(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  library().get_field(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  require_sound_image(height, width, bytes.size());
  char reason[1024] = {};
  if (!library().is_rgba(tiff.get(), reason))
    fail(ErrorCode::unsupported, "this TIFF image is not read: {}", reason);
  drop_transparency(tiff.get());
  uint16_t orientation = ORIENTATION_TOPLEFT;
  library().get_field(tiff.get(), TIFFTAG_ORIENTATION, &orientation);
  const bool has_columns = holds_columns(orientation);
  std::vector<uint32_t> raster(size_t{width} * height);
  if (!library().read_rgba(tiff.get(), width, height, raster.data(),
                           has_columns ? orientation : ORIENTATION_TOPLEFT, 1))
    fail(ErrorCode::unreadable, "not a sound TIFF image: the file is cut off or damaged");
  if (has_columns) {
    raster = rows_of_columns(raster, width, height, orientation);
    std::swap(width, height);
  }
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
