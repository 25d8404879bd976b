// Copying the input windows of output pixels, channels last. Internal to kernels/conv.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/conv/geometry.h"

namespace sardonyx::kernels {

// Short lines are copied in one piece of so many bytes: what follows a line is overwritten, up to
// that far from its begin.
constexpr int64_t short_line_bytes = 64;

// Images of T (float, uint8_t), of which positions outside are `fill`.
template <class T>
struct Windows {
  const ConvGeometry& g;
  const T* end;  // of all images
  T fill;

  // The window of one output pixel: its taps one after the other, of each the group's channels.
  // `image` is the group's first channel in the image's first pixel.
  void copy(const T* image, const OutputPixel& pixel, T* to) const {
    const int64_t line_terms = g.kernel[2] * g.group_in;
    for (int64_t d = 0; d < g.kernel[0]; ++d) {
      const int64_t depth = pixel.front() + d * g.dilation[0];
      for (int64_t h = 0; h < g.kernel[1]; ++h, to += line_terms) {
        const int64_t row = pixel.top() + h * g.dilation[1];
        if (depth < 0 || depth >= g.in[0] || row < 0 || row >= g.in[1]) {
          std::fill_n(to, line_terms, fill);
        } else {
          copy_line(image + (depth * g.in[1] + row) * g.in[2] * g.group * g.group_in, pixel.left(),
                    to);
        }
      }
    }
  }

 private:
  // kernel[2] pixels from column `left` of an input line on.
  void copy_line(const T* line, int64_t left, T* to) const {
    constexpr int64_t short_values = short_line_bytes / static_cast<int64_t>(sizeof(T));
    const int64_t channels = g.group * g.group_in, size = g.kernel[2];
    if (g.dilation[2] != 1 || g.group != 1) return copy_pixels(line, left, to);
    if (size * channels <= short_values && left >= 0 && left + size <= g.in[2] &&
        end - (line + left * channels) >= short_values) {
      std::memcpy(to, line + left * channels, short_line_bytes);
      return;
    }
    const int64_t first = std::clamp<int64_t>(-left, 0, size);
    const int64_t last = std::clamp<int64_t>(g.in[2] - left, first, size);
    std::fill_n(to, first * channels, fill);
    copy_values(line + (left + first) * channels, (last - first) * channels, to + first * channels);
    std::fill_n(to + last * channels, (size - last) * channels, fill);
  }

  void copy_pixels(const T* line, int64_t left, T* to) const {
    for (int64_t w = 0; w < g.kernel[2]; ++w, to += g.group_in) {
      const int64_t column = left + w * g.dilation[2];
      if (column < 0 || column >= g.in[2]) {
        std::fill_n(to, g.group_in, fill);
      } else {
        copy_values(line + column * g.group * g.group_in, g.group_in, to);
      }
    }
  }

  static void copy_values(const T* from, int64_t count, T* to) {
    if (count > 0) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  }
};

}  // namespace sardonyx::kernels
