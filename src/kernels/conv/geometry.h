// A convolution's sizes, brought to three dimensions. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/conv/conv.h"

namespace sardonyx::kernels {

// Depth, height, width; dimensions that are not there have size 1. Dimensions that the kernel does
// not look across are joined, so that a pointwise convolution has one long row, unless the caller
// counts lines of its own (`joins_plain` false).
struct ConvGeometry {
  explicit ConvGeometry(const ConvParams& shape, bool joins_plain = true);

  int64_t batch, group;
  int64_t group_in, group_out;  // channels in one group
  ConvParams::Dims in, kernel, stride, dilation, pad, out;
  int64_t in_pixels, out_pixels;  // of one channel
  int64_t taps;
  int64_t terms;  // of each sum: group_in * taps
  // Terms that lie side by side with channels last, whatever the sizes of images: those of the
  // kernel's last axis.
  int64_t near_terms;
  bool nhwc;
  bool coarse;  // as in ConvParams, as those below
  int64_t winograd;
  int64_t shuffle;
  bool nchw_input;
  bool shuffles_output;

  // Floats from the input pixel of kernel position 0 to that of `tap` (in d, h, w).
  int64_t tap_offset(int64_t d, int64_t h, int64_t w) const {
    return (d * dilation[0] * in[1] + h * dilation[1]) * in[2] + w * dilation[2];
  }
};

// Output pixels one after the other, through the whole batch.
class OutputPixel {
 public:
  OutputPixel(const ConvGeometry& g, int64_t index)
      : g_(g),
        column_(index % g.out[2]),
        row_(index / g.out[2] % g.out[1]),
        depth_(index / g.out[2] / g.out[1] % g.out[0]),
        image_(index / g.out_pixels) {}

  void next() { skip(1); }
  // At most to the next row.
  void skip(int64_t pixels) {
    column_ += pixels;
    if (column_ < g_.out[2]) return;
    column_ = 0;
    if (++row_ < g_.out[1]) return;
    row_ = 0;
    if (++depth_ < g_.out[0]) return;
    depth_ = 0;
    ++image_;
  }
  int64_t image() const { return image_; }
  int64_t left_in_row() const { return g_.out[2] - column_; }
  // The input position of the window's first element along an axis; it may lie outside.
  int64_t front() const { return depth_ * g_.stride[0] - g_.pad[0]; }
  int64_t top() const { return row_ * g_.stride[1] - g_.pad[1]; }
  int64_t left() const { return column_ * g_.stride[2] - g_.pad[2]; }

 private:
  const ConvGeometry& g_;
  int64_t column_, row_, depth_, image_;
};

}  // namespace sardonyx::kernels
