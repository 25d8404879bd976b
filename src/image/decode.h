// Encoded images to pixels: the formats the standard's ImageDecoder names.
#pragma once

#include <string_view>

#include "base/bytes.h"
#include "sardonyx/value.h"

namespace sardonyx::image {

enum class Format { unknown, png, jpeg, bmp, pnm, webp, tiff, jpeg2000 };

std::string_view name_of(Format format);  // "PNG"
Format format_of(const Bytes& bytes);     // by what the bytes begin with
// Whether this build reads the format: all but BMP and PNM need a library.
bool supports(Format format);
bool supports_any_library();  // PNG and JPEG at least

// The pixels as uint8 of shape [height, width, channels]; `channels` is 1 (grey: the luma of ITU-R
// 601) or 3 (RGB). Transparency is dropped, wider samples become 8 bits, as Pillow's convert does.
// Throws Error: (unreadable) for what is no sound image, (unsupported) for other formats, for those
// this build does not read and for images of more than 100 million pixels.
Tensor decode(const Bytes& bytes, int channels);

}  // namespace sardonyx::image
