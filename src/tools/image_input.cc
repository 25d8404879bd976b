#include "tools/image_input.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "formats/image.h"
#include "image/decode.h"
#include "tools/numbers.h"

namespace sardonyx {
namespace {

// What the dimensions of an input mean: -1 where it has none.
struct Axes {
  int height = -1;
  int width = -1;
  int channels = -1;
  int batch = -1;
};

Axes axes_of(const ValueDescription& wanted, const ImageOptions& options) {
  const auto& dims = *wanted.shape;
  const int rank = static_cast<int>(dims.size());
  if (rank == 2) return {0, 1, -1, -1};
  const int first = rank - 3;  // of height, width and channels
  const auto could_be_channels = [&](int axis) {
    const auto size = dims[static_cast<size_t>(axis)].size;
    return size == 1 || size == 3;
  };
  const bool last = options.nhwc.value_or(!could_be_channels(first) && could_be_channels(rank - 1));
  const int batch = rank == 4 ? 0 : -1;
  return last ? Axes{first, first + 1, first + 2, batch} : Axes{first + 1, first + 2, first, batch};
}

void require_sound(const ImageOptions& options) {
  const auto finite = [](float number) { return std::isfinite(number); };
  if (!finite(options.scale) || !std::ranges::all_of(options.mean, finite) ||
      !std::ranges::all_of(options.deviation, finite) ||
      std::ranges::find(options.deviation, 0.0f) != options.deviation.end())
    fail(ErrorCode::bad_input,
         "scale, mean and std of an image are finite numbers, and std, which divides, is not 0");
}

}  // namespace

bool is_image(const Bytes& bytes) {
  const std::string_view text = bytes.text();
  switch (image::format_of(bytes)) {
    case image::Format::unknown: return false;
    case image::Format::bmp: return text.substr(2).find("\0\0\0\0", 4, 4) == 4;
    case image::Format::pnm: return std::string_view(" \t\r\n#").find(text[2]) != text.npos;
    default: return true;
  }
}

Tensor image_tensor(const Bytes& bytes, const ValueDescription& wanted,
                    const ImageOptions& options) {
  const size_t rank = wanted.shape ? wanted.shape->size() : 0;
  if (rank == 1 && wanted.element_type == ElementType::uint8) {
    return Tensor::view(ElementType::uint8, {static_cast<int64_t>(bytes.size())}, bytes.data(),
                        bytes.size(), bytes.owner());
  }
  if (wanted.kind != Value::Kind::tensor || rank < 2 || rank > 4) {
    fail(ErrorCode::bad_input, "an image becomes a tensor of rank 2 to 4; the model takes {}",
         wanted.type);
  }
  require_sound(options);
  const Axes axes = axes_of(wanted, options);
  const auto size = [&](int axis, int64_t otherwise) {
    return axis < 0 ? otherwise
                    : (*wanted.shape)[static_cast<size_t>(axis)].size.value_or(otherwise);
  };
  if (size(axes.batch, 1) != 1) {
    fail(ErrorCode::bad_input, "one image is a batch of 1; the model takes {}", wanted.type);
  }
  const bool grey = axes.channels < 0;
  const int64_t channels = grey ? 1 : size(axes.channels, 3);
  if (channels != 1 && channels != 3) {
    fail(ErrorCode::bad_input, "an image has 1 or 3 channels; the model takes {}{}", wanted.type,
         options.nhwc ? "" : " (is --image-layout needed?)");
  }
  formats::ImageInput input;
  input.type =
      wanted.element_type == ElementType::uint8 ? ElementType::uint8 : ElementType::float32;
  input.channels = static_cast<int>(channels);
  input.height = size(axes.height, 0);
  input.width = size(axes.width, 0);
  input.layout =
      axes.channels > axes.width ? formats::ImageLayout::nhwc : formats::ImageLayout::nchw;
  input.scale = options.scale;
  input.mean = options.mean;
  input.deviation = options.deviation;
  Tensor tensor = formats::image_to_tensor(bytes, input);
  Shape shape = tensor.shape();
  if (rank < 4) shape.erase(shape.begin());
  if (grey) shape.erase(shape.begin());  // the lone channel comes first
  return converted(tensor, wanted.element_type).reshaped(std::move(shape));
}

}  // namespace sardonyx
