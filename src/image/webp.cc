#ifdef SARDONYX_WITH_WEBP
#include <webp/decode.h>

#include "base/fail.h"
#include "image/codecs.h"
#include "image/loaded_library.h"

namespace sardonyx::image {
namespace {

struct Webp : LoadedLibrary {
  Webp() : LoadedLibrary(SARDONYX_WEBP_FILE, "WebP") {}
  LoadedFunction<decltype(WebPGetInfo)> get_info{*this, "WebPGetInfo"};
  LoadedFunction<decltype(WebPDecodeRGBInto)> decode_into{*this, "WebPDecodeRGBInto"};
};

}  // namespace

Tensor decode_webp(const Bytes& bytes) {
  static const Webp webp;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  int width = 0, height = 0;
  if (!webp.get_info(data, bytes.size(), &width, &height))
    fail(ErrorCode::unreadable, "not a sound WebP image: its header is damaged");
  require_sound_size(height, width);
  Tensor out(ElementType::uint8, {height, width, 3});
  uint8_t* pixels = out.mutable_elements<uint8_t>().data();
  if (webp.decode_into(data, bytes.size(), pixels, out.byte_size(), 3 * width) == nullptr)
    fail(ErrorCode::unreadable,
         "not a sound WebP image: the file is cut off, damaged, or an animation");
  return out;
}

}  // namespace sardonyx::image
#endif
