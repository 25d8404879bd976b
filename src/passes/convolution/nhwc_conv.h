// Convolutions with channels last, as rewrites after convert_to_nhwc see them.
#pragma once

#include <optional>

#include "kernels/conv/conv.h"
#include "ops/internal/products.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {

// Conv's fused form with channels last and constant weights.
struct NhwcConv {
  ops::internal::Conv op;
  kernels::ConvParams shape;  // of its weights, strides and dilation; pads where they are given
  bool padded = false;        // there may be pads

  bool depthwise() const;
  bool keeps_pixels() const;  // one tap, and images keep their size
  bool pointwise() const;     // all that, and in one group
};
std::optional<NhwcConv> nhwc_conv(const GraphIndex& index, size_t node);

// Whether the node is an internal Conv with channels last, and whether one in several groups.
bool is_nhwc_conv(const ir::Node& node);
bool is_grouped_nhwc_conv(const ir::Node& node);

}  // namespace sardonyx::passes
