// The decoders behind decode.h: each gives [height, width, 1 or 3], as its file has it. Internal.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "sardonyx/value.h"

namespace sardonyx::image {

inline constexpr int64_t max_pixels = 100'000'000;

// Refuses sizes beyond the limit.
void require_sound_size(int64_t height, int64_t width);
// Also those that a file of `bytes` bytes cannot hold: for formats that pack at most some thousand
// pixels into a byte.
void require_sound_image(int64_t height, int64_t width, size_t bytes);

Tensor decode_png(const Bytes& bytes);
Tensor decode_jpeg(const Bytes& bytes);
Tensor decode_bmp(const Bytes& bytes);
Tensor decode_pnm(const Bytes& bytes);
Tensor decode_webp(const Bytes& bytes);
Tensor decode_tiff(const Bytes& bytes);
Tensor decode_jpeg2000(const Bytes& bytes);

}  // namespace sardonyx::image
