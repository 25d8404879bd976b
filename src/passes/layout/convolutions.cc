// Convolutions and pools.
#include <algorithm>
#include <numeric>

#include "ir/origin.h"
#include "kernels/conv/conv_int8_nhwc.h"
#include "ops/families/conv_transpose.h"
#include "ops/node_view.h"
#include "ops/upgrade_context.h"
#include "passes/attributes.h"
#include "passes/layout/layout_walk.h"

namespace sardonyx::passes {
namespace {

// What weights are packed from.
bool is_narrow_or_float(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float16 ||
         type == ElementType::bfloat16;
}

}  // namespace

bool LayoutWalk::conv(ir::Node& node) {
  const std::string x = node.inputs[0];
  const Tensor* w = node.inputs.size() > 1 ? constant(node.inputs[1]) : nullptr;
  if (!is_float_image(x) || w == nullptr || !is_narrow_or_float(w->element_type()) ||
      w->rank() != rank_of(x) || w->size() == 0 || node.find("nhwc") != nullptr ||
      !(pays(x, w->shape()[0]) || dots(node, *w)) || (!is_nhwc(x) && stays_alone(node, *w)))
    return false;
  const bool residual = node.inputs.size() > 3 && !node.inputs[3].empty();
  if (residual && !is_float_image(node.inputs[3])) return false;
  if (goes_before_resize(node, *w)) return true;
  node.inputs[0] = as_nhwc(x);
  if (residual) node.inputs[3] = as_nhwc(node.inputs[3]);
  return internal_form(node);
}

const Tensor* LayoutWalk::transposed_weights(const ir::Node& node) const {
  const Tensor* w = node.inputs.size() > 1 ? constant(node.inputs[1]) : nullptr;
  const ops::NodeView view(node, nullptr);
  const bool any = ops::refuses_phases(view, w).empty() || ops::refuses_depthwise(view, w).empty();
  return any ? w : nullptr;
}

bool LayoutWalk::conv_transpose(ir::Node& node) {
  const std::string& x = node.inputs[0];
  const Tensor* w = transposed_weights(node);
  if (!is_float_image(x) || w == nullptr || !is_narrow_or_float(w->element_type()) ||
      w->rank() != rank_of(x) || !pays(x, w->shape()[1] * attr_int(node, "group", 1)))
    return false;
  return internal(node);
}

bool LayoutWalk::pays(const std::string& x, int64_t channels) const {
  constexpr int64_t least = 8;
  return is_nhwc(x) || channels >= least;
}

bool LayoutWalk::dots(const ir::Node& node, const Tensor& weights) const {
  kernels::ConvParams shape = shape_of_weights(node, weights);
  shape.nhwc = true;
  return kernels::choose_conv(shape).path == kernels::ConvPath::dots_nhwc;
}

kernels::ConvParams LayoutWalk::shape_of_weights(const ir::Node& node, const Tensor& weights) {
  kernels::ConvParams shape;
  shape.rank = static_cast<int>(weights.rank()) - 2;
  shape.group = attr_int(node, "group", 1);
  shape.in_channels = weights.shape()[1] * shape.group;
  shape.out_channels = weights.shape()[0];
  std::copy(weights.shape().begin() + 2, weights.shape().end(), shape.kernel.begin());
  const auto take = [&](std::string_view name, kernels::ConvParams::Dims& to) {
    const ir::Attribute* a = node.find(name);
    if (a != nullptr && a->ints.size() == static_cast<size_t>(shape.rank))
      std::ranges::copy(a->ints, to.begin());
  };
  take("strides", shape.stride);
  take("dilations", shape.dilation);
  return shape;
}

bool LayoutWalk::stays_alone(const ir::Node& node, const Tensor& weights) const {
  const ir::Dims* out = shape_of(node.outputs[0]);
  if (wanted_nhwc_.contains(node.outputs[0]) || weights.rank() != 4 || out == nullptr) return false;
  constexpr int64_t wide = 32;  // rows that fill vectors
  const auto width = out->back().value();
  if (!width || *width < wide) return false;
  return kernels::choose_conv(shape_of_weights(node, weights)).path ==
         kernels::ConvPath::depthwise_rows;
}

bool LayoutWalk::conv_int8(ir::Node& node) {
  if (node.inputs.size() < 8) return false;
  const std::string x = node.inputs[0];
  const Tensor *w = constant(node.inputs[3]), *zero = constant(node.inputs[5]);
  if (!is_image(x) || w == nullptr || zero == nullptr || w->rank() != rank_of(x) ||
      w->size() == 0 || (zero->size() != 1 && zero->size() != w->shape()[0]) ||
      !pays(x, w->shape()[0]))
    return false;
  kernels::ConvParams shape;
  shape.rank = static_cast<int>(w->rank()) - 2;
  shape.group = attr_int(node, "group", 1);
  shape.out_channels = w->shape()[0];
  shape.in_channels = w->shape()[1] * shape.group;
  std::copy(w->shape().begin() + 2, w->shape().end(), shape.kernel.begin());
  if (!kernels::conv_int8_nhwc_applies(shape)) return false;
  return internal(node);
}

bool LayoutWalk::internal_form(ir::Node& node) {
  node.domain = "sardonyx";
  node.attributes.push_back(ops::int_attribute("nhwc", 1));
  emit(std::move(node));
  return true;
}

bool LayoutWalk::internal(ir::Node& node) {
  node.inputs[0] = as_nhwc(node.inputs[0]);
  return internal_form(node);
}

bool LayoutWalk::pool(ir::Node& node) {
  if (node.outputs.size() > 1 && !node.outputs[1].empty()) return false;
  node.outputs.resize(1);
  return internal(node);
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
