// Pictures as inputs of models: decoded (image/decode.h), resized, scaled.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "sardonyx/value.h"

namespace sardonyx::formats {

bool has_image_support();  // PNG and JPEG at least (SARDONYX_IMAGES)

// image::decode: [height, width, channels] of uint8; `channels` is 1 (grey) or 3 (RGB).
Tensor decode_image(const Bytes& bytes, int channels);

// The pixels at another size: linear between the neighbours, averaged over all covered pixels
// where the image shrinks. Any number of channels.
Tensor resize_image(const Tensor& pixels, int64_t height, int64_t width);

enum class ImageLayout { nchw, nhwc };

// How a model wants its images: (pixel * scale - mean) / deviation, for each channel.
struct ImageInput {
  ElementType type = ElementType::float32;  // float32, or uint8, which takes the pixels as they are
  int channels = 3;
  int64_t height = 0;  // 0: as the image is
  int64_t width = 0;
  ImageLayout layout = ImageLayout::nchw;
  float scale = 1.0f / 255;
  std::vector<float> mean;       // empty: 0; one value: the same for all channels
  std::vector<float> deviation;  // empty: 1
};

// One image as a tensor of shape [1, channels, height, width] or [1, height, width, channels].
Tensor image_to_tensor(const Bytes& bytes, const ImageInput& input);
Tensor image_to_tensor(const std::string& path, const ImageInput& input);

}  // namespace sardonyx::formats
