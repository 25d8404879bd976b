#ifdef SARDONYX_WITH_WEBP
#include <webp/decode.h>

#include "base/fail.h"
#include "image/codecs.h"

namespace sardonyx::image {

Tensor decode_webp(const Bytes& bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  int width = 0, height = 0;
  if (!WebPGetInfo(data, bytes.size(), &width, &height))
    fail(ErrorCode::unreadable, "not a sound WebP image: its header is damaged");
  require_sound_size(height, width);
  Tensor out(ElementType::uint8, {height, width, 3});
  uint8_t* pixels = out.mutable_elements<uint8_t>().data();
  if (WebPDecodeRGBInto(data, bytes.size(), pixels, out.byte_size(), 3 * width) == nullptr)
    fail(ErrorCode::unreadable,
         "not a sound WebP image: the file is cut off, damaged, or an animation");
  return out;
}

}  // namespace sardonyx::image
#endif
