// Pictures as the inputs of a model.
#pragma once

#include "base/bytes.h"
#include "sardonyx/inputs.h"

namespace sardonyx {

// Whether the bytes are of an image file of a format that image/decode.h names. Texts that begin
// with the letters of one are none.
bool is_image(const Bytes& bytes);

// The image with the size and channels that the input asks for; the file itself where the input
// is a list of bytes (ImageDecoder takes them so). Throws Error (bad_input) where the input does
// not look like one for images, and what decoding throws.
Tensor image_tensor(const Bytes& bytes, const ValueDescription& wanted,
                    const ImageOptions& options);

// A value from the bytes of a file whose name ends like `path`.
Value value_of_file(const Bytes& bytes, const std::string& path, const Model& model,
                    const ValueDescription& wanted);

}  // namespace sardonyx
