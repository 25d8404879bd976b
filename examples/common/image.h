// Images between a file and a model's input: what the examples of image classification and text
// recognition share. Sardonyx decodes; resizing, cropping and normalising are written out here,
// since each network wants its own. (`sardonyx run`, and read_value_file() of sardonyx/inputs.h, do
// the usual ones.)
#pragma once

#include <sardonyx/files.h>
#include <sardonyx/value.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace example {

// RGB, row by row, the three channels of a pixel side by side; from 0 to 255.
struct Image {
  int64_t height = 0, width = 0;
  std::vector<float> pixels;

  Image() = default;
  Image(int64_t h, int64_t w) : height(h), width(w), pixels(static_cast<size_t>(h * w * 3)) {}
  float& at(int64_t y, int64_t x, int64_t channel) {
    return pixels[static_cast<size_t>((y * width + x) * 3 + channel)];
  }
  float at(int64_t y, int64_t x, int64_t channel) const {
    return pixels[static_cast<size_t>((y * width + x) * 3 + channel)];
  }
};

// PNG, JPEG and the other formats that Sardonyx reads. Throws sardonyx::Error where the file is
// none.
inline Image load_image(const std::string& path) {
  const sardonyx::Tensor decoded = sardonyx::read_value(path).tensor();  // uint8 [height, width, 3]
  const auto bytes = decoded.elements<uint8_t>();
  if (decoded.rank() != 3 || decoded.shape()[2] != 3)
    throw sardonyx::Error(sardonyx::ErrorCode::bad_input, "this is no image", path);
  Image image(decoded.shape()[0], decoded.shape()[1]);
  std::copy(bytes.begin(), bytes.end(), image.pixels.begin());
  return image;
}

// The part that begins at (top, left); the caller sees to it that it lies inside.
inline Image cropped(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  Image part(height, width);
  for (int64_t y = 0; y < height; ++y) {
    const auto row = image.pixels.begin() + ((top + y) * image.width + left) * 3;
    std::copy(row, row + width * 3, part.pixels.begin() + y * width * 3);
  }
  return part;
}

// Which pixels of a line of `from` make up pixel `index` of `to`, and by how much each counts:
// linear interpolation, and where the line gets shorter an average over all that falls into the new
// pixel.
struct Weights {
  int64_t first = 0;
  std::vector<float> shares;
};

inline Weights weights_of(int64_t index, int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(scale, 1.0);  // of the triangle, to each side
  const double center = (static_cast<double>(index) + 0.5) * scale;
  Weights weights;
  weights.first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(center - reach + 0.5)));
  const int64_t end = std::min(from, static_cast<int64_t>(std::floor(center + reach + 0.5)));
  float sum = 0;
  for (int64_t i = weights.first; i < end; ++i) {
    const double distance = std::abs(static_cast<double>(i) + 0.5 - center) / reach;
    weights.shares.push_back(static_cast<float>(std::max(0.0, 1 - distance)));
    sum += weights.shares.back();
  }
  for (float& share : weights.shares) share /= sum;
  return weights;
}

// The image with another number of rows, or of columns.
inline Image resized_along(bool rows, const Image& image, int64_t size) {
  Image result(rows ? size : image.height, rows ? image.width : size);
  const int64_t from = rows ? image.height : image.width;
  const int64_t lines = rows ? 1 : image.height;   // that are resized alike
  const int64_t run = rows ? image.width * 3 : 3;  // of numbers that stay side by side
  for (int64_t index = 0; index < size; ++index) {
    const Weights weights = weights_of(index, from, size);
    for (int64_t line = 0; line < lines; ++line) {
      float* const out = result.pixels.data() + (line * size + index) * run;
      const float* in = image.pixels.data() + (line * from + weights.first) * run;
      for (const float share : weights.shares) {
        for (int64_t i = 0; i < run; ++i) out[i] += share * in[i];
        in += run;
      }
    }
  }
  return result;
}

// The whole image in another size. What is smaller in between comes first, so that images of a
// strange form cost no more memory than they have.
inline Image resized(const Image& image, int64_t height, int64_t width) {
  if (image.height * width < height * image.width)
    return resized_along(true, resized_along(false, image, width), height);
  return resized_along(false, resized_along(true, image, height), width);
}

// How the pixels of a network's training data were brought near 0: (pixel / 255 - mean) /
// deviation.
struct Normalization {
  std::array<float, 3> mean{0, 0, 0}, deviation{1, 1, 1};
  bool bgr = false;  // blue first, as in networks that were trained on what OpenCV reads
};
inline constexpr Normalization imagenet{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

// Writes [channels, height, width] with one channel (grey) or three.
inline void write_chw(const Image& image, const Normalization& normalization, int64_t channels,
                      std::span<float> to) {
  size_t next = 0;
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    for (size_t i = 0; i < image.pixels.size(); i += 3) {
      const float* const pixel = &image.pixels[i];
      const float value = channels == 1 ? 0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2]
                                        : pixel[normalization.bgr ? 2 - c : c];
      to[next++] = (value / 255 - normalization.mean[c]) / normalization.deviation[c];
    }
  }
}

}  // namespace example
