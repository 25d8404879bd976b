// Pictures as the inputs of a model.
#pragma once

#include "base/bytes.h"
#include "session/input.h"

namespace sardonyx {

// Whether the bytes are of a PNG or JPEG file.
bool is_picture(const Bytes& bytes);

// The picture with the size and channels that the input asks for; the file itself where the input
// is a list of bytes (ImageDecoder takes them so). Throws Error (bad_input) where the input does
// not look like one for pictures, and what decoding throws.
Tensor picture_tensor(const Bytes& bytes, const ValueDescription& wanted,
                      const PictureOptions& options);

}  // namespace sardonyx
