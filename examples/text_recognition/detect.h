// Where the lines of text are in an image: the detector's map of probabilities, and boxes around
// what stands out in it (as in "Real-time Scene Text Detection with Differentiable Binarization").
#pragma once

#include <sardonyx/session.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "../common/image.h"

namespace example {

struct Box {
  int64_t top = 0, left = 0, height = 0, width = 0;
  float score = 0;  // mean probability of text
};

constexpr int64_t longest_side = 960;  // of the image that the detector sees
constexpr int64_t multiple = 32;       // its sides are multiples of this
constexpr float is_text = 0.3f;        // probability of a pixel
constexpr float is_line = 0.5f;        // mean probability of a box
constexpr double grown_by = 1.6;       // the network marks the middle of lines: boxes grow by this

inline int64_t detector_side(int64_t side, double scale) {
  const double wanted = static_cast<double>(side) * scale / static_cast<double>(multiple);
  return std::max<int64_t>(1, std::llround(wanted)) * multiple;
}

// The smallest box around the pixels of text that hang together with `start`; it erases them.
inline Box box_from(std::vector<float>& map, int64_t height, int64_t width, int64_t start) {
  int64_t top = height, left = width, bottom = 0, right = 0, pixels = 0;
  double sum = 0;
  std::vector<int64_t> open{start};  // a list, since recursion would depend on the image
  const auto visit = [&](int64_t place) {
    float& probability = map[static_cast<size_t>(place)];
    if (probability <= is_text) return;
    const int64_t y = place / width, x = place % width;
    top = std::min(top, y), bottom = std::max(bottom, y);
    left = std::min(left, x), right = std::max(right, x);
    sum += static_cast<double>(probability), ++pixels;
    probability = 0;
    open.push_back(place);
  };
  visit(start);
  while (!open.empty()) {
    const int64_t place = open.back(), x = place % width;
    open.pop_back();
    if (x > 0) visit(place - 1);
    if (x + 1 < width) visit(place + 1);
    if (place >= width) visit(place - width);
    if (place + width < height * width) visit(place + width);
  }
  return {top, left, bottom - top + 1, right - left + 1,
          static_cast<float>(sum / static_cast<double>(pixels))};
}

// The box larger by what the network left out, in the image's own pixels.
inline Box grown(const Box& box, const Image& image, double y_scale, double x_scale) {
  const auto h = static_cast<double>(box.height), w = static_cast<double>(box.width);
  const double more = h * w * grown_by / (2 * (h + w));
  const auto place = [](double at, double scale, int64_t size) {
    return std::clamp<int64_t>(std::llround(at * scale), 0, size);
  };
  const auto y = static_cast<double>(box.top), x = static_cast<double>(box.left);
  const int64_t top = place(y - more, y_scale, image.height);
  const int64_t left = place(x - more, x_scale, image.width);
  return {top, left, place(y + h + more, y_scale, image.height) - top,
          place(x + w + more, x_scale, image.width) - left, box.score};
}

// Boxes from top to bottom.
inline std::vector<Box> detect_lines(const sardonyx::Session& detector, const Image& image) {
  using namespace sardonyx;
  const auto longest = static_cast<double>(std::max(image.height, image.width));
  const double scale = std::min(1.0, static_cast<double>(longest_side) / longest);
  const int64_t height = detector_side(image.height, scale);
  const int64_t width = detector_side(image.width, scale);

  Tensor pixels(ElementType::float32, {1, 3, height, width});
  write_chw(resized(image, height, width), {{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}, true}, 3,
            pixels.mutable_elements<float>());
  const std::vector<Value> outputs = detector.run({{detector.inputs().at(0).name, pixels}});
  const Tensor& found = outputs.at(0).tensor();
  if (found.shape() != Shape{1, 1, height, width})
    throw Error(ErrorCode::unsupported,
                "the detector must give a probability for each pixel; it gives " +
                    to_string(found.shape()));

  std::vector<float> map(found.elements<float>().begin(), found.elements<float>().end());
  std::vector<Box> boxes;
  for (int64_t place = 0; place < height * width; ++place) {
    if (map[static_cast<size_t>(place)] <= is_text) continue;
    const Box box = box_from(map, height, width, place);
    if (box.score < is_line || std::min(box.height, box.width) < 3) continue;
    const Box line =
        grown(box, image, static_cast<double>(image.height) / static_cast<double>(height),
              static_cast<double>(image.width) / static_cast<double>(width));
    if (line.height > 0 && line.width > 0) boxes.push_back(line);
  }
  std::stable_sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
    return std::pair(a.top, a.left) < std::pair(b.top, b.left);
  });
  return boxes;
}

}  // namespace example
