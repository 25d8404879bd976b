#include "train/augment.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/fail.h"
#include "train/mixed.h"

namespace sardonyx {
namespace {

// What is done to an example: it is moved down and to the right, then mirrored.
struct Draw {
  int64_t down = 0, right = 0;
  bool mirrored = false;
};

Draw drawn(const Augmentation& how, uint64_t key) {
  Draw draw;
  if (how.crop > 0) {
    const auto count = static_cast<uint64_t>(2 * how.crop + 1);
    draw.down = static_cast<int64_t>(mixed(key ^ 1) % count) - how.crop;
    draw.right = static_cast<int64_t>(mixed(key ^ 2) % count) - how.crop;
  }
  draw.mirrored = how.flip && (mixed(key ^ 3) & 1) != 0;
  return draw;
}

// One plane, whose elements have `width` bytes; what comes from outside is 0.
void move_plane(const std::byte* from, std::byte* to, int64_t height, int64_t columns,
                int64_t width, const Draw& draw) {
  const int64_t line = columns * width;
  const int64_t first = std::clamp<int64_t>(draw.right, 0, columns),
                last = std::clamp<int64_t>(columns + draw.right, 0, columns);
  for (int64_t h = 0; h < height; ++h, to += line) {
    std::memset(to, 0, static_cast<size_t>(line));
    const int64_t source = h - draw.down;
    if (source < 0 || source >= height || first >= last) continue;
    const std::byte* row = from + source * line + (first - draw.right) * width;
    if (!draw.mirrored) {
      std::memcpy(to + first * width, row, static_cast<size_t>((last - first) * width));
      continue;
    }
    for (int64_t w = first; w < last; ++w, row += width)
      std::memcpy(to + (columns - 1 - w) * width, row, static_cast<size_t>(width));
  }
}

bool is_image(const Value& value) {
  return value.is_tensor() && value.tensor().rank() == 4 &&
         value.tensor().element_type() != ElementType::string &&
         bit_width(value.tensor().element_type()) % 8 == 0;
}

Tensor changed(const Tensor& images, std::span<const Draw> draws) {
  const Shape& shape = images.shape();
  Tensor made(images.element_type(), shape);
  const int64_t width = bit_width(images.element_type()) / 8, plane = shape[2] * shape[3] * width;
  const auto* from = static_cast<const std::byte*>(images.data());
  auto* to = static_cast<std::byte*>(made.mutable_data());
  for (const Draw& draw : draws) {
    for (int64_t c = 0; c < shape[1]; ++c, from += plane, to += plane)
      move_plane(from, to, shape[2], shape[3], width, draw);
  }
  return made;
}

}  // namespace

void train::augment(std::vector<NamedValue>& batch, std::span<const int64_t> places,
                    const Augmentation& how, uint64_t seed, int64_t epoch) {
  if (!how.flip && how.crop == 0) return;
  std::vector<Draw> draws;
  const uint64_t key = mixed(seed ^ mixed(static_cast<uint64_t>(epoch) ^ 0x6175676d656e7400));
  for (const int64_t place : places)
    draws.push_back(drawn(how, mixed(key ^ mixed(static_cast<uint64_t>(place)))));
  bool any = false;
  for (auto& [name, value] : batch) {
    if (!is_image(value)) continue;
    any = true;
    value = changed(value.tensor(), draws);
  }
  if (!any)
    fail(ErrorCode::bad_input,
         "there are no images to augment: no array has the axes [examples, channels, height, "
         "width]");
}

Augmentation augmentation_named(std::string_view text) {
  Augmentation made;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    constexpr std::string_view crop = "crop:";
    if (part == "flip") {
      made.flip = true;
      continue;
    }
    const char *from = part.data() + crop.size(), *to = part.data() + part.size();
    const bool is_crop = part.starts_with(crop) && from < to;
    const auto [stop, problem] =
        is_crop ? std::from_chars(from, to, made.crop) : std::from_chars_result{from, std::errc()};
    if (!is_crop || problem != std::errc() || stop != to || made.crop < 1 ||
        made.crop > max_augmentation_crop)
      fail(ErrorCode::bad_input,
           "an augmentation is flip, crop:PIXELS (1 to {}), or both with a comma between; got '{}'",
           max_augmentation_crop, text);
  }
  return made;
}

}  // namespace sardonyx
