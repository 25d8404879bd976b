// Bilinear samples of planes, many points at a time; internal to kernels.
#pragma once

#include <cstdint>

#include "kernels/sample/grid_sample.h"

namespace sardonyx::kernels {

// What up to `most` points of a plane read: four elements each, and their weights.
struct PlanePoints {
  static constexpr int64_t most = 128;
  static constexpr uint8_t all = 15;
  int64_t count = 0;
  int32_t offset[4][most];
  float weight[4][most];
  uint8_t inside[most];  // a bit for each of the four; others are not read, whatever their weight
};

// Whether the points of such a shape can be placed here: linear in two dimensions, without
// reflection, planes of no more than 2^31 elements.
bool places_points(const GridShape& shape);

// Places points [0, count) of `grid`, whose coordinates follow each other.
void place_points(const GridShape& shape, const float* grid, int64_t count, PlanePoints& points);

// Places points at positions in elements, `down` and `across` a plane of height x width; at least
// one, at most 2^23 each, and no more than 2^31 in all. Both hold PlanePoints::most values, of
// which those beyond `count` may be anything.
void place_points_at(int64_t height, int64_t width, const float* down, const float* across,
                     int64_t count, PlanePoints& points);

// y[c * y_plane + i] = the sample of plane c of x at point i.
void sample_points(const PlanePoints& points, const float* x, int64_t x_plane, float* y,
                   int64_t y_plane, int64_t channels);

}  // namespace sardonyx::kernels
