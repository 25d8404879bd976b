// Convolutions and pools.
#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/node_values.h"
#include "ir/origin.h"
#include "kernels/conv/conv_int8_nhwc.h"
#include "ops/internal/images.h"
#include "ops/internal/node.h"
#include "ops/internal/quantized.h"
#include "ops/node_view.h"
#include "ops/shared/conv_params.h"
#include "ops/shared/conv_transpose.h"
#include "ops/upgrade_context.h"
#include "passes/layout/layout_walk.h"

namespace sardonyx::passes {
namespace {

using ops::internal::Conv;
using ops::internal::ConvTranspose;
using ops::internal::QLinearConv;
using ops::internal::QuantizedConv;

// What weights are packed from.
bool is_narrow_or_float(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float16 ||
         type == ElementType::bfloat16;
}

// Whether sums are so short that transposing both images takes more time than the kernels with
// channels last save, as measured.
bool has_short_sums(const kernels::ConvParams& shape) {
  if (shape.group != 1) return false;
  const int64_t taps = std::accumulate(shape.kernel.begin(), shape.kernel.begin() + shape.rank,
                                       int64_t{1}, std::multiplies<int64_t>());
  const int64_t most = taps == 1 ? 128 : shape.rank == 1 ? 64 : 32;
  return shape.in_channels * taps <= most;
}

}  // namespace

bool LayoutWalk::conv(ir::Node& node) {
  const std::string x = node.inputs[Conv::x];
  const Tensor* w = constant(ir::input(node, Conv::w));
  Conv conv = ops::internal::conv_of(ops::NodeView(node, nullptr));
  if (!is_float_image(x) || w == nullptr || !is_narrow_or_float(w->element_type()) ||
      w->rank() != rank_of(x) || w->size() == 0 || conv.nhwc ||
      !(pays(x, w->shape()[0]) || dots(conv, *w)) || (!is_nhwc(x) && stays_alone(node, conv, *w)))
    return false;
  const bool residual = ir::has_input(node, Conv::residual);
  if (residual && !is_float_image(node.inputs[Conv::residual])) return false;
  conv.nhwc = true;
  if (goes_before_resize(node, conv, *w)) return true;
  ops::internal::write(conv, node);
  node.inputs[Conv::x] = as_nhwc(x);
  if (residual) node.inputs[Conv::residual] = as_nhwc(node.inputs[Conv::residual]);
  emit(std::move(node));
  return true;
}

const Tensor* LayoutWalk::transposed_weights(const ir::Node& node,
                                             const ConvTranspose& conv) const {
  const Tensor* w = constant(ir::input(node, ConvTranspose::w));
  const bool any = ops::refuses_phases(conv, w).empty() || ops::refuses_depthwise(conv, w).empty();
  return any ? w : nullptr;
}

bool LayoutWalk::conv_transpose(ir::Node& node) {
  const std::string& x = node.inputs[ConvTranspose::x];
  ConvTranspose conv = ops::internal::conv_transpose_of(ops::NodeView(node, nullptr));
  const Tensor* w = transposed_weights(node, conv);
  if (!is_float_image(x) || w == nullptr || !is_narrow_or_float(w->element_type()) ||
      w->rank() != rank_of(x) || !pays(x, w->shape()[1] * conv.group))
    return false;
  conv.nhwc = true;
  ops::internal::write(conv, node);
  node.inputs[ConvTranspose::x] = as_nhwc(x);
  emit(std::move(node));
  return true;
}

bool LayoutWalk::pays(const std::string& x, int64_t channels) const {
  constexpr int64_t least = 8;
  return is_nhwc(x) || channels >= least;
}

bool LayoutWalk::dots(const Conv& conv, const Tensor& weights) {
  kernels::ConvParams shape = shape_of_weights(conv, weights);
  shape.nhwc = true;
  return kernels::choose_conv(shape).path == kernels::ConvPath::dots_nhwc;
}

kernels::ConvParams LayoutWalk::shape_of_weights(const Conv& conv, const Tensor& weights) {
  kernels::ConvParams shape;
  shape.rank = static_cast<int>(weights.rank()) - 2;
  shape.group = conv.group;
  shape.in_channels = weights.shape()[1] * shape.group;
  shape.out_channels = weights.shape()[0];
  std::copy(weights.shape().begin() + 2, weights.shape().end(), shape.kernel.begin());
  const auto take = [&](const std::vector<int64_t>& list, kernels::ConvParams::Dims& to) {
    if (list.size() == static_cast<size_t>(shape.rank)) std::ranges::copy(list, to.begin());
  };
  take(conv.window.strides, shape.stride);
  take(conv.window.dilations, shape.dilation);
  return shape;
}

bool LayoutWalk::stays_alone(const ir::Node& node, const Conv& conv, const Tensor& weights) const {
  if (wanted_nhwc_.contains(node.outputs[0])) return false;
  const kernels::ConvParams shape = shape_of_weights(conv, weights);
  if (has_short_sums(shape)) return true;
  const ir::Dims* out = shape_of(node.outputs[0]);
  if (weights.rank() != 4 || out == nullptr) return false;
  constexpr int64_t wide = 32;  // rows that fill vectors
  const auto width = out->back().value();
  if (!width || *width < wide) return false;
  return kernels::choose_conv(shape).path == kernels::ConvPath::depthwise_rows;
}

bool LayoutWalk::conv_int8(ir::Node& node) {
  if (!ir::has_input(node, QLinearConv::y_zero)) return false;
  const std::string x = node.inputs[QLinearConv::x];
  const Tensor* zero = constant(node.inputs[QLinearConv::w_zero]);
  const ops::NodeView view(node, nullptr);
  QLinearConv conv;
  conv.window = ops::read_window(view, ops::WindowKind::convolution);
  conv.group = ops::read_group(view);
  const std::string& w = node.inputs[QLinearConv::w];
  if (zero == nullptr || !takes_bytes_last(x, w, conv.group) ||
      (zero->size() != 1 && zero->size() != constant(w)->shape()[0]))
    return false;
  ops::internal::write(conv, node);
  take_bytes_last(node);
  return true;
}

bool LayoutWalk::quantized_conv(ir::Node& node) {
  auto conv = ops::internal::from_node<QuantizedConv>(node);
  const std::string x = node.inputs[QuantizedConv::x];
  if (conv.nhwc || !takes_bytes_last(x, node.inputs[QuantizedConv::w], conv.group)) return false;
  conv.nhwc = true;
  ops::internal::write(conv, node);
  take_bytes_last(node);
  return true;
}

void LayoutWalk::take_bytes_last(ir::Node& node) {
  std::string& x = node.inputs[QuantizedConv::x];
  static_assert(static_cast<int>(QuantizedConv::x) == static_cast<int>(QLinearConv::x));
  for (const std::string& input : node.inputs) {
    if (&input != &x) need_first(input);  // a scale may have been computed as an image is
  }
  x = as_nhwc(std::string(x));
  emit(std::move(node));
}

bool LayoutWalk::takes_bytes_last(const std::string& x, const std::string& w, int64_t group) const {
  const Tensor* weights = constant(w);
  if (!is_image(x) || weights == nullptr || weights->rank() != rank_of(x) || weights->size() == 0 ||
      !pays(x, weights->shape()[0]))
    return false;
  const Shape& of_weights = weights->shape();
  kernels::ConvParams shape;
  shape.rank = static_cast<int>(weights->rank()) - 2;
  shape.group = group;
  shape.out_channels = of_weights[0];
  shape.in_channels = of_weights[1] * group;
  std::copy(of_weights.begin() + 2, of_weights.end(), shape.kernel.begin());
  return kernels::conv_int8_nhwc_applies(shape);
}

bool LayoutWalk::nhwc_form(ir::Node& node) {
  if (!ops::internal::make_nhwc_form(node)) return false;
  node.inputs[0] = as_nhwc(node.inputs[0]);
  emit(std::move(node));
  return true;
}

bool LayoutWalk::pool(ir::Node& node) {
  if (node.outputs.size() > 1 && !node.outputs[1].empty()) return false;
  node.outputs.resize(1);
  return nhwc_form(node);
}

bool LayoutWalk::global_pool(ir::Node& node, std::string_view reduce) {
  const int64_t rank = rank_of(node.inputs[0]);
  std::vector<int64_t> axes(static_cast<size_t>(rank - 2));
  std::iota(axes.begin(), axes.end(), int64_t{1});
  ir::keep_source(node);
  node.op_type = reduce;
  node.inputs = {as_nhwc(node.inputs[0]), add_integers(axes, "axes")};
  node.attributes = {ops::int_attribute("keepdims", 1)};
  emit(std::move(node));
  return true;
}

}  // namespace sardonyx::passes
