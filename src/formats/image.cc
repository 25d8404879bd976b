#include "formats/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/fail.h"
#include "image/decode.h"

namespace sardonyx::formats {
namespace {

constexpr int64_t max_pixels = 100'000'000;

// Which source pixels make up one target pixel along one axis, and how much each counts.
struct Taps {
  int64_t first;
  std::vector<float> weights;
};

// A triangle as wide as one source pixel each side, or as one target pixel where that is wider.
std::vector<Taps> taps_of(int64_t from, int64_t to) {
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(ratio, 1.0);
  std::vector<Taps> all;
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * ratio;
    const auto first = std::max<int64_t>(static_cast<int64_t>(std::floor(centre - reach + 0.5)), 0);
    const auto end =
        std::min<int64_t>(static_cast<int64_t>(std::floor(centre + reach + 0.5)), from);
    Taps taps{first, {}};
    double sum = 0;
    for (int64_t k = first; k < end; ++k) {
      const double weight =
          std::max(0.0, 1 - std::abs((static_cast<double>(k) + 0.5 - centre) / reach));
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
    all.push_back(std::move(taps));
  }
  return all;
}

template <class Out>
Out stored(float sum) {
  if constexpr (std::is_same_v<Out, float>) {
    return sum;
  } else {
    return static_cast<Out>(std::clamp(std::lround(sum), 0l, 255l));
  }
}

// `height` rows of `width` * channels numbers to rows of `taps.size()` * channels.
template <class In, class Out>
void resize_rows(const In* in, int64_t height, int64_t width, int64_t channels,
                 const std::vector<Taps>& taps, Out* to) {
  for (int64_t y = 0; y < height; ++y) {
    const In* row = in + y * width * channels;
    for (const Taps& t : taps) {
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (size_t k = 0; k < t.weights.size(); ++k)
          sum += t.weights[k] * row[(t.first + static_cast<int64_t>(k)) * channels + c];
        *to++ = stored<Out>(sum);
      }
    }
  }
}

// Rows of `row` numbers to `taps.size()` of them.
template <class In, class Out>
void resize_columns(const In* in, int64_t row, const std::vector<Taps>& taps, Out* to) {
  std::vector<float> sums(static_cast<size_t>(row));
  for (const Taps& t : taps) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (size_t k = 0; k < t.weights.size(); ++k) {
      const In* from = in + (t.first + static_cast<int64_t>(k)) * row;
      for (int64_t i = 0; i < row; ++i) sums[static_cast<size_t>(i)] += t.weights[k] * from[i];
    }
    for (const float sum : sums) *to++ = stored<Out>(sum);
  }
}

void require_sound_size(int64_t height, int64_t width) {
  if (height <= 0 || width <= 0 || height > max_pixels / width) {
    fail(ErrorCode::unsupported, "an image of {} x {} pixels is not read; the limit is {} in all",
         width, height, max_pixels);
  }
}

float of_channel(const std::vector<float>& values, int channel, float otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[static_cast<size_t>(channel)];
}

void require_per_channel(const std::vector<float>& values, int channels, std::string_view what) {
  if (values.size() > 1 && values.size() != static_cast<size_t>(channels)) {
    fail(ErrorCode::bad_input, "{} values of {} are given for {} channels", values.size(), what,
         channels);
  }
}

}  // namespace

bool has_image_support() { return image::supports_any_library(); }

Tensor decode_image(const Bytes& bytes, int channels) { return image::decode(bytes, channels); }

Tensor resize_image(const Tensor& pixels, int64_t height, int64_t width) {
  if (pixels.element_type() != ElementType::uint8 || pixels.rank() != 3) {
    fail(ErrorCode::bad_input, "pixels are uint8 of shape [height,width,channels], not {} of {}",
         name_of(pixels.element_type()), to_string(pixels.shape()));
  }
  const int64_t h = pixels.shape()[0], w = pixels.shape()[1], channels = pixels.shape()[2];
  require_sound_size(h, w);
  require_sound_size(height, width);
  if (h == height && w == width) return pixels;
  const uint8_t* in = pixels.elements<uint8_t>().data();
  Tensor out(ElementType::uint8, {height, width, channels});
  uint8_t* to = out.mutable_elements<uint8_t>().data();
  const std::vector<Taps> across = taps_of(w, width), down = taps_of(h, height);
  // So that between the two there are no more pixels than before or after both.
  const bool down_first = width > w && height < h;
  std::vector<float> between(static_cast<size_t>((down_first ? height * w : h * width) * channels));
  if (down_first) {
    resize_columns(in, w * channels, down, between.data());
    resize_rows(between.data(), height, w, channels, across, to);
  } else {
    resize_rows(in, h, w, channels, across, between.data());
    resize_columns(between.data(), width * channels, down, to);
  }
  return out;
}

Tensor image_to_tensor(const Bytes& bytes, const ImageInput& input) {
  require_per_channel(input.mean, input.channels, "the mean");
  require_per_channel(input.deviation, input.channels, "the deviation");
  if (input.type != ElementType::float32 && input.type != ElementType::uint8) {
    fail(ErrorCode::unsupported, "images are given to a model as float or uint8, not as {}",
         name_of(input.type));
  }
  Tensor pixels = decode_image(bytes, input.channels);
  pixels = resize_image(pixels, input.height > 0 ? input.height : pixels.shape()[0],
                        input.width > 0 ? input.width : pixels.shape()[1]);
  const int64_t height = pixels.shape()[0], width = pixels.shape()[1], area = height * width;
  const bool planes = input.layout == ImageLayout::nchw;
  Tensor out(input.type, planes ? Shape{1, input.channels, height, width}
                                : Shape{1, height, width, input.channels});
  const uint8_t* from = pixels.elements<uint8_t>().data();
  for (int c = 0; c < input.channels; ++c) {
    const float scale = input.scale, mean = of_channel(input.mean, c, 0),
                deviation = of_channel(input.deviation, c, 1);
    const int64_t start = planes ? c * area : c, step = planes ? 1 : input.channels;
    for (int64_t i = 0; i < area; ++i) {
      const uint8_t pixel = from[i * input.channels + c];
      const auto at = static_cast<size_t>(start + i * step);
      if (input.type == ElementType::uint8) {
        out.mutable_elements<uint8_t>()[at] = pixel;
      } else {
        out.mutable_elements<float>()[at] = (static_cast<float>(pixel) * scale - mean) / deviation;
      }
    }
  }
  return out;
}

Tensor image_to_tensor(const std::string& path, const ImageInput& input) {
  try {
    return image_to_tensor(map_file(path), input);
  } catch (const Error& error) {
    throw error.location() == path ? error : error.within(path);
  }
}

}  // namespace sardonyx::formats
