// Convolutions with channels last, as rewrites after convert_to_nhwc see them.
#pragma once

#include <optional>

#include "kernels/conv/conv.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {

// Conv's fused form with channels last and constant weights.
struct NhwcConv {
  kernels::ConvParams shape;  // of its weights, strides and dilation; pads where they are given
  bool padded = false;        // there may be pads

  bool depthwise() const;
  bool keeps_pixels() const;  // one tap, and images keep their size
  bool pointwise() const;     // all that, and in one group
};
std::optional<NhwcConv> nhwc_conv(const GraphIndex& index, size_t node);

}  // namespace sardonyx::passes
