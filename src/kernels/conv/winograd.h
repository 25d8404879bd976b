// Convolution with 3x3 kernels by fewer multiplications: tiles of 4x4 (2x2) output pixels are
// transformed to 36 (16) values per channel, in which convolution is a product for each value; that
// makes as many matrix multiplications of tiles x channels by channels x output channels. Internal
// to kernels/conv.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// `outputs`, everywhere: pixels along one side of a tile, 2 or 4.
constexpr int64_t winograd_inputs(int64_t outputs) { return outputs + 2; }
constexpr int64_t winograd_planes(int64_t outputs) {
  return winograd_inputs(outputs) * winograd_inputs(outputs);
}

// The input of `tiles` neighbouring tiles in one row of tiles, over all channels.
//
// A pixel becomes part of all values of its tiles, and so of outputs whose windows don't reach it.
// Where it is far above the others, sums lose the others' digits, and where it is infinite or no
// number, so are the outputs. The energies tell of such tiles.
struct WinogradInput {
  int64_t outputs = 4;
  const float* image = nullptr;  // channels x height x width
  int64_t channels = 0, height = 0, width = 0;
  // Not 0: channels are innermost, and pixels, and lines, that many floats apart.
  int64_t pixel_stride = 0, line_stride = 0;
  int64_t top = 0, left = 0;  // of the first tile's input; may be outside the image
  int64_t tiles = 0;
  float* lines = nullptr;  // scratch: winograd_line_floats(outputs, tiles)
  // out[plane * plane_stride + tile * tile_stride + channel]; channels are filled up to a vector.
  float* out = nullptr;
  int64_t plane_stride = 0, tile_stride = 0;
  // Of each tile: squares of sums of its pixels, each of a quarter of them, added up; and the same
  // for the smaller two of each channel.
  float *all_energy = nullptr, *quiet_energy = nullptr;
  float* energy_lanes = nullptr;  // scratch: winograd_energy_floats(tiles)
};
int64_t winograd_energy_floats(int64_t tiles);
int64_t winograd_line_floats(int64_t outputs, int64_t tiles);
void winograd_input(const WinogradInput& job);

// The output of `tiles` tiles for `channels` output channels (a multiple of the lanes).
struct WinogradOutput {
  int64_t outputs = 4;
  const float* sums = nullptr;  // sums[plane * plane_stride + tile * channels + channel]
  int64_t plane_stride = 0;
  int64_t tiles = 0, channels = 0;
  // out[(row * row_pixels + pixel) * channels + channel], for `outputs` rows of outputs * tiles
  // pixels
  float* out = nullptr;
  int64_t row_pixels = 0;
};
void winograd_output(const WinogradOutput& job);

// The output of one of the input's tiles as convolution is defined, by the terms of each pixel,
// from weights that were transformed (a panel of `width` output channels: winograd_weights), where
// winograd_output would have put it: `out` is the tile's first pixel, lines are row_floats apart.
// Weights come back with an error of 1e-6 of their kernel's largest; those that are smaller are 0.
void winograd_direct(const WinogradInput& job, int64_t tile, const float* weights, int64_t width,
                     float* out, int64_t row_floats);

// Transforms the kernels of `count` output channels: out[(plane * channels + c) * width + m] from
// weights[(m * channels + c) * 9 + tap]; columns from count to width are 0.
void winograd_weights(int64_t outputs, const float* weights, int64_t channels, int64_t count,
                      int64_t width, float* out);

}  // namespace sardonyx::kernels
