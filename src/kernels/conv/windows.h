// Copying the input windows of output pixels, channels last. Internal to kernels/conv.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/conv/geometry.h"
#include "kernels/gemm/blocking.h"

namespace sardonyx::kernels {

// Short lines are copied in pieces of so many bytes at most, those of bytes in smaller ones: what
// follows a line is overwritten, by less than one piece.
constexpr int64_t line_piece_bytes = 64;
constexpr int64_t short_line_bytes = 4 * line_piece_bytes;

// Images of T (float, uint8_t), of which positions outside are `fill`.
template <class T>
class Windows {
 public:
  // `end` is that of all images.
  Windows(const ConvGeometry& g, const T* end, T fill)
      : g_(g),
        end_(end),
        fill_(fill),
        line_terms_(g.kernel[2] * g.group_in),
        pieces_(divide_up(line_terms_, piece)),
        short_lines_(g.group == 1 && line_terms_ > 0 && g.dilation[2] == 1 &&
                     pieces_ * piece <= short_values) {}

  // The windows of `count` output pixels from `pixel` on, `stride` values apart: of each its taps
  // one after the other, of those the group's channels. `image(n)` is the group's first channel in
  // the first pixel of image n. What is between windows may be overwritten.
  template <class Image>
  void copy(Image image, OutputPixel pixel, int64_t count, T* to, int64_t stride) const {
    while (count > 0) {
      const T* const from = image(pixel.image());
      int64_t copied = std::min(count, inside(from, pixel));
      if (copied > 0) {
        copy_inside(from, pixel, copied, to, stride);
      } else {
        copy_one(from, pixel, to);
        copied = 1;
      }
      pixel.skip(copied);
      to += copied * stride;
      count -= copied;
    }
  }

 private:
  static constexpr int64_t piece_bytes = sizeof(T) == 1 ? 32 : line_piece_bytes;
  static constexpr int64_t piece = piece_bytes / static_cast<int64_t>(sizeof(T));
  static constexpr int64_t short_values = short_line_bytes / static_cast<int64_t>(sizeof(T));

  int64_t offset(int64_t depth, int64_t row, int64_t column) const {
    return ((depth * g_.in[1] + row) * g_.in[2] + column) * g_.group * g_.group_in;
  }

  // How many pixels of a row, from this one on, have short lines that lie inside, with all that is
  // copied of them.
  int64_t inside(const T* image, const OutputPixel& pixel) const {
    const int64_t back = pixel.front() + (g_.kernel[0] - 1) * g_.dilation[0];
    const int64_t bottom = pixel.top() + (g_.kernel[1] - 1) * g_.dilation[1];
    const int64_t room = g_.in[2] - g_.kernel[2] - pixel.left();
    if (!short_lines_ || pixel.front() < 0 || back >= g_.in[0] || pixel.top() < 0 ||
        bottom >= g_.in[1] || pixel.left() < 0 || room < 0) {
      return 0;
    }
    const int64_t step = g_.stride[2] * g_.group_in;
    const int64_t readable = end_ - (image + offset(back, bottom, pixel.left())) - pieces_ * piece;
    if (readable < 0) return 0;
    return std::min({pixel.left_in_row(), room / g_.stride[2] + 1, readable / step + 1});
  }

  void copy_inside(const T* image, const OutputPixel& pixel, int64_t count, T* to,
                   int64_t stride) const {
    const T* window = image + offset(pixel.front(), pixel.top(), pixel.left());
    const int64_t next_depth = offset(g_.dilation[0], 0, 0),
                  next_row = offset(0, g_.dilation[1], 0);
    for (; count > 0; --count, to += stride, window += g_.stride[2] * g_.group_in) {
      T* line_to = to;
      for (int64_t d = 0; d < g_.kernel[0]; ++d) {
        const T* line = window + d * next_depth;
        for (int64_t h = 0; h < g_.kernel[1]; ++h, line += next_row, line_to += line_terms_) {
          for (int64_t p = 0; p < pieces_; ++p) {
            std::memcpy(line_to + p * piece, line + p * piece, piece_bytes);
          }
        }
      }
    }
  }

  void copy_one(const T* image, const OutputPixel& pixel, T* to) const {
    for (int64_t d = 0; d < g_.kernel[0]; ++d) {
      const int64_t depth = pixel.front() + d * g_.dilation[0];
      for (int64_t h = 0; h < g_.kernel[1]; ++h, to += line_terms_) {
        const int64_t row = pixel.top() + h * g_.dilation[1];
        if (depth < 0 || depth >= g_.in[0] || row < 0 || row >= g_.in[1]) {
          std::fill_n(to, line_terms_, fill_);
        } else {
          copy_line(image + offset(depth, row, 0), pixel.left(), to);
        }
      }
    }
  }

  // kernel[2] pixels from column `left` of an input line on.
  void copy_line(const T* line, int64_t left, T* to) const {
    const int64_t channels = g_.group * g_.group_in, size = g_.kernel[2];
    if (g_.dilation[2] != 1 || g_.group != 1) return copy_pixels(line, left, to);
    const int64_t first = std::clamp<int64_t>(-left, 0, size);
    const int64_t last = std::clamp<int64_t>(g_.in[2] - left, first, size);
    std::fill_n(to, first * channels, fill_);
    copy_values(line + (left + first) * channels, (last - first) * channels, to + first * channels);
    std::fill_n(to + last * channels, (size - last) * channels, fill_);
  }

  void copy_pixels(const T* line, int64_t left, T* to) const {
    for (int64_t w = 0; w < g_.kernel[2]; ++w, to += g_.group_in) {
      const int64_t column = left + w * g_.dilation[2];
      if (column < 0 || column >= g_.in[2]) {
        std::fill_n(to, g_.group_in, fill_);
      } else {
        copy_values(line + column * g_.group * g_.group_in, g_.group_in, to);
      }
    }
  }

  static void copy_values(const T* from, int64_t count, T* to) {
    if (count > 0) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  }

  const ConvGeometry& g_;
  const T* end_;
  T fill_;
  int64_t line_terms_;
  int64_t pieces_;  // of a line
  bool short_lines_;
};

}  // namespace sardonyx::kernels
