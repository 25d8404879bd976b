// Depthwise convolution with channels last. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/conv/geometry.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {

// Lines of output pixels one below the other, some channels of them: out[column * channels + c] =
// min(max(alpha * sum + bias[c], low), high).
struct DepthwiseNhwcJob {
  const ConvGeometry* geometry = nullptr;
  const float* image = nullptr;    // all of one input image, or
  int64_t held = 0;                // a ring of so many of its lines: line i at i % held
  const float* weights = nullptr;  // taps x channels
  int64_t depth = 0, row = 0;      // of the output's first line
  int64_t lines = 1;
  int64_t first_channel = 0, end_channel = 0;  // the first is a multiple of 16
  float* out = nullptr;                        // the first line's first pixel
  const float* bias = nullptr;                 // channels values, or null
  float alpha = 1, beta = 1;                   // beta scales the bias
  float low = 0, high = 0;
  // Where the epilogue does more than clip: the sums of a piece go to `space` (64-byte aligned, of
  // depthwise_piece_floats) and from there out as `store` says, which stands at the first line's
  // first pixel and channel.
  const TileStore* store = nullptr;
  float* space = nullptr;
  // To which the outputs of each channel are added, in a fixed order; may be null.
  float* sums = nullptr;
};

// Neighbouring pixels that are computed together; the widths of images are often multiples of it.
constexpr int64_t depthwise_step = 7;

// What is computed of one line before those below it have their turn, so that the first-level cache
// holds their windows: so many channels, so many pixels, and the most floats of such a piece.
int64_t depthwise_channels_at_once(const ConvGeometry& g);
int64_t depthwise_columns_at_once(const ConvGeometry& g, int64_t channels);
int64_t depthwise_piece_floats(const ConvGeometry& g);

void depthwise_nhwc_lines(const DepthwiseNhwcJob& job);

}  // namespace sardonyx::kernels
