// Convolutions with channels last, as rewrites after lay_out see them.
#pragma once

#include <optional>

#include "kernels/conv/conv.h"
#include "rewrite/graph_index.h"

namespace sardonyx::rewrite {

// Conv's fused form with channels last and constant weights.
struct LastConv {
  kernels::ConvShape shape;  // of its weights, strides and dilation; pads where they are given
  bool padded = false;       // there may be pads

  bool depthwise() const;
  bool keeps_pixels() const;  // one tap, and images keep their size
  bool pointwise() const;     // all that, and in one group
};
std::optional<LastConv> last_conv(const GraphIndex& index, size_t node);

}  // namespace sardonyx::rewrite
