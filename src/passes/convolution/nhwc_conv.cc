#include "passes/convolution/nhwc_conv.h"

#include <algorithm>

#include "ops/internal/node.h"
#include "ops/shared/conv_params.h"
#include "ops/shared/window.h"

namespace sardonyx::passes {

using ops::internal::Conv;

bool NhwcConv::depthwise() const {
  return shape.group == shape.in_channels && shape.group == shape.out_channels;
}

bool NhwcConv::pointwise() const { return shape.group == 1 && keeps_pixels(); }

bool NhwcConv::keeps_pixels() const {
  const auto all_one = [&](const kernels::ConvParams::Dims& dims) {
    return std::all_of(dims.begin(), dims.begin() + shape.rank, [](int64_t n) { return n == 1; });
  };
  return all_one(shape.kernel) && all_one(shape.stride) && !padded;
}

std::optional<NhwcConv> nhwc_conv(const GraphIndex& index, size_t i) {
  const ir::Node& node = index.node(i);
  if (!ops::internal::is<Conv>(node)) return std::nullopt;
  NhwcConv conv{.op = ops::internal::from_node<Conv>(node), .shape = {}};
  if (!conv.op.nhwc) return std::nullopt;
  const Tensor* w = index.constant(node.inputs[Conv::w]);
  if (w == nullptr || w->rank() < 3 || w->rank() > kernels::ConvParams::max_rank + 2)
    return std::nullopt;
  const ops::Window& window = conv.op.window;
  if (w->shape()[0] % conv.op.group != 0) return std::nullopt;
  ops::set_weights(conv.shape, w->shape(), conv.op.group);
  conv.shape.nhwc = true;
  for (size_t k = 0; k < static_cast<size_t>(conv.shape.rank); ++k) {
    conv.shape.stride[k] = window.stride(k);
    conv.shape.dilation[k] = window.dilation(k);
  }
  using AutoPad = ops::Window::AutoPad;
  conv.padded = (window.auto_pad != AutoPad::none && window.auto_pad != AutoPad::valid) ||
                std::ranges::any_of(window.pads, [](int64_t n) { return n != 0; });
  return conv;
}

bool is_nhwc_conv(const ir::Node& node) {
  return ops::internal::is<Conv>(node) && ops::internal::from_node<Conv>(node).nhwc;
}

bool is_grouped_nhwc_conv(const ir::Node& node) {
  if (!ops::internal::is<Conv>(node)) return false;
  const Conv conv = ops::internal::from_node<Conv>(node);
  return conv.nhwc && conv.group > 1;
}

}  // namespace sardonyx::passes
