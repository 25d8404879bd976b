// What the attributes of Resize and Upsample say, and the arithmetic of their sizes and scales.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/move/resize.h"
#include "ops/operator.h"

namespace sardonyx::ops {

// keep_aspect_ratio_policy.
enum class AspectRatio { stretch, not_larger, not_smaller };

// What the attributes say, for both operators.
struct ResizeSettings {
  kernels::ResizeOptions options;
  AspectRatio policy = AspectRatio::stretch;
  std::optional<std::vector<int64_t>> axes;
  int scales_input = 2, sizes_input = 3, roi_input = 1;  // -1: there is no such input
};

ResizeSettings resize_settings(const NodeView& node);

// The axes that scales and sizes speak of.
std::vector<int64_t> resized_axes(const NodeView& node, const ResizeSettings& settings,
                                  int64_t rank);

// floor(size * extent * scale) as the standard's own inference rounds it: the product of two
// float32. Of sizes that float32 does not hold, the exact one. Throws where it is no size.
int64_t scaled_size(int64_t size, double extent, float scale);
// The same for a size that is not known yet, extent 1; nullopt where no expression is exact.
std::optional<Dim> scaled_size(const Dim& size, float scale);
// No less than that, where it is no expression; nullopt where that would say nothing.
std::optional<Dim> largest_scaled(const Dim& size, float scale);

// Output size and scale of one axis where sizes were given.
struct ResizeTarget {
  int64_t size;
  double scale;
};

std::vector<ResizeTarget> resize_targets(AspectRatio policy, const std::vector<int64_t>& in,
                                         const std::vector<int64_t>& sizes);

}  // namespace sardonyx::ops
