// The decoders behind image.h. Internal to wire.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "sardonyx/value.h"

namespace sardonyx::wire {

// Refuses sizes beyond the limit, and those that a file of `bytes` bytes cannot really hold.
void require_sound_image(int64_t height, int64_t width, size_t bytes);

Tensor decode_png(const Bytes& bytes, int channels);
Tensor decode_jpeg(const Bytes& bytes, int channels);

}  // namespace sardonyx::wire
