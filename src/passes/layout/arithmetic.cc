// Arithmetic, element by element or with a factor for each channel.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/origin.h"
#include "ir/tensor.h"
#include "ops/internal/elementwise.h"
#include "ops/internal/images.h"
#include "ops/internal/node.h"
#include "passes/attributes.h"
#include "passes/layout/layout.h"
#include "passes/layout/layout_walk.h"
#include "passes/running_statistics.h"

namespace sardonyx::passes {
namespace {

using ops::internal::ScaleShift;

constexpr int64_t largest_transposed_constant = 1 << 20;  // elements

}  // namespace

bool LayoutWalk::unary(ir::Node& node) {
  if (!is_nhwc(node.inputs[0])) return false;
  if (joins_scale_shift(node)) return true;
  node.inputs[0] = as_nhwc(node.inputs[0]);
  emit(std::move(node));
  return true;
}

bool LayoutWalk::scaling(ir::Node& node) {
  if (!is_nhwc(node.inputs[0]) || node.inputs.size() < 2 || attr_int(node, "block_size", 0) != 0)
    return false;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].empty() && rank_of(node.inputs[i]) != 0) return false;
  }
  node.inputs[0] = as_nhwc(node.inputs[0]);
  emit(std::move(node));
  return true;
}

bool LayoutWalk::dynamic_quantization(ir::Node& node) {
  if (!is_nhwc(node.inputs[0])) return false;
  node.inputs[0] = as_nhwc(node.inputs[0]);
  if (node.name.empty()) ir::keep_source(node);
  make_nhwc(node.outputs[0]);  // the others are numbers
  graph_.nodes.push_back(std::move(node));
  return true;
}

bool LayoutWalk::fusion(ir::Node& node) {
  if (!is_image(node.outputs[0])) return false;
  const int64_t rank = rank_of(node.outputs[0]);
  const auto extents = ops::internal::from_node<ops::internal::FusedElementwise>(node).extents;
  constexpr auto whole = kernels::ElementwiseExtent::whole;
  constexpr auto single = kernels::ElementwiseExtent::single;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (extents[i] != single && (extents[i] != whole || rank_of(node.inputs[i]) != rank))
      return false;
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (extents[i] == whole)
      node.inputs[i] = as_nhwc(node.inputs[i]);
    else
      need_first(node.inputs[i]);
  }
  emit(std::move(node));
  return true;
}

bool LayoutWalk::can_broadcast(const std::string& value, int64_t rank) const {
  if (value.empty()) return false;
  const int64_t own = rank_of(value);
  if (own < 0 || own > rank) return false;
  if (own == rank || own == 0) return true;
  const Tensor* tensor = constant(value);
  return tensor != nullptr && tensor->size() <= largest_transposed_constant;
}

std::string LayoutWalk::broadcast_operand(const std::string& value, int64_t rank) {
  const Tensor* tensor = constant(value);
  if (rank_of(value) == 0 || (tensor && tensor->size() == 1)) return value;
  if (tensor == nullptr || tensor->size() > largest_transposed_constant) return as_nhwc(value);
  std::string& operand = operands_[{value, rank}];
  if (!operand.empty()) return operand;
  // A constant of one value for each channel is a vector then; of any other shape it is transposed.
  Shape shape(static_cast<size_t>(rank - tensor->rank()), 1);
  shape.insert(shape.end(), tensor->shape().begin(), tensor->shape().end());
  const Tensor held = ir::aligned(*tensor);
  if (shape[1] == tensor->size())
    return operand = add_constant(held.reshaped({tensor->size()}), value);
  const std::string full = add_constant(held.reshaped(shape), value);
  operand = names_.make(value, "last");
  transpose(full, operand, to_nhwc(rank));
  return operand;
}

bool LayoutWalk::transposes_for_pixels(const ir::Node& node) const {
  if (wanted_nhwc_.contains(node.outputs[0])) return false;
  const auto has_one_pixel = [&](const std::string& value) {
    const ir::Dims* shape = shape_of(value);
    return shape != nullptr && shape->size() > 2 &&
           std::all_of(shape->begin() + 2, shape->end(),
                       [](const ir::Dim& dim) { return dim == ir::Dim(1); });
  };
  bool transposes_images = false;
  for (const std::string& input : node.inputs) {
    if (has_one_pixel(input)) continue;
    if (is_nhwc(input)) return false;
    transposes_images |= constant(input) == nullptr && rank_of(input) == rank_of(node.outputs[0]) &&
                         !last_.contains(input);
  }
  return transposes_images;
}

bool LayoutWalk::broadcasting(ir::Node& node) {
  const int64_t rank = rank_of(node.outputs[0]);
  if (!is_image(node.outputs[0]) || transposes_for_pixels(node)) return false;
  for (const std::string& input : node.inputs) {
    if (!can_broadcast(input, rank)) return false;
  }
  for (std::string& input : node.inputs) input = broadcast_operand(input, rank);
  emit(std::move(node));
  return true;
}

bool LayoutWalk::batch_normalization(ir::Node& node) {
  const auto channels =
      running_statistics(node, [&](const std::string& name) { return constant(name); });
  if (!channels) return false;
  ir::keep_source(node);
  ops::internal::write(ScaleShift{}, node);
  std::string x = as_nhwc(node.inputs[0]), factors = add_constant(channels->factors, "factors"),
              terms = add_constant(channels->terms, "terms");
  ops::internal::place_inputs(node, {{ScaleShift::x, std::move(x)},
                                     {ScaleShift::factors, std::move(factors)},
                                     {ScaleShift::terms, std::move(terms)}});
  node.outputs.resize(1);
  emit(std::move(node));
  return true;
}

bool LayoutWalk::joins_scale_shift(ir::Node& node) {
  const bool silu = node.op_type == "Swish" && node.find("alpha") == nullptr;
  if (node.op_type != "Relu" && !silu) return false;
  if (graph_.nodes.empty()) return false;
  ir::Node& before = graph_.nodes.back();
  const std::string& x = node.inputs[0];
  if (uses(x) != 1 || before.outputs.empty() || before.outputs[0] != last_.at(x)) return false;
  const auto activation = ops::internal::activation_after_scaling(before);
  if (!activation || !activation->is_none()) return false;
  only_nhwc_.erase(x);
  using kernels::Activation;
  ops::internal::set_activation_after_scaling(before, {silu ? Activation::silu : Activation::relu});
  before.outputs[0] = node.outputs[0];
  make_nhwc(before.outputs[0]);
  const ir::Node scale_shift = before;
  ir::set_sources(before, std::array{&scale_shift, &std::as_const(node)});
  return true;
}

}  // namespace sardonyx::passes
