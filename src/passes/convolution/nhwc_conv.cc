#include "passes/convolution/nhwc_conv.h"

#include <algorithm>

#include "ops/families/conv_params.h"
#include "ops/families/window.h"
#include "ops/node_view.h"

namespace sardonyx::passes {

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
  if (node.domain != "sardonyx" || node.op_type != "Conv" || node.find("nhwc") == nullptr)
    return std::nullopt;
  const Tensor* w = index.constant(node.inputs[1]);
  if (w == nullptr || w->rank() < 3 || w->rank() > kernels::ConvParams::max_rank + 2)
    return std::nullopt;
  const ops::NodeView view(node, nullptr);
  const ops::Window window = ops::read_window(view, ops::WindowKind::convolution);
  NhwcConv conv;
  const int64_t group = ops::read_group(view);
  if (w->shape()[0] % group != 0) return std::nullopt;
  ops::set_weights(conv.shape, w->shape(), group);
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

}  // namespace sardonyx::passes
