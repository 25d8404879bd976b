#include "ops/upgrade_context.h"

#include <algorithm>
#include <iterator>

#include "ir/tensor.h"
#include "kernels/convert/cast.h"

namespace sardonyx::ops {

ir::Attribute int_attribute(std::string name, int64_t value) {
  ir::Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = ir::AttributeKind::int_;
  attribute.i = value;
  return attribute;
}

ir::Attribute float_attribute(std::string name, float value) {
  ir::Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = ir::AttributeKind::float_;
  attribute.f = value;
  return attribute;
}

ir::Attribute string_attribute(std::string name, std::string value) {
  ir::Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = ir::AttributeKind::string;
  attribute.s = std::move(value);
  return attribute;
}

ir::Attribute ints_attribute(std::string name, std::vector<int64_t> value) {
  ir::Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = ir::AttributeKind::ints;
  attribute.ints = std::move(value);
  return attribute;
}

ir::TensorProto tensor_proto(const Tensor& tensor, std::string name) {
  return ir::to_proto(tensor, std::move(name));
}

ir::Attribute tensor_attribute(std::string name, const Tensor& tensor) {
  ir::Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = ir::AttributeKind::tensor;
  attribute.t = std::make_shared<const ir::TensorProto>(ir::to_proto(tensor));
  return attribute;
}

ir::Attribute graph_attribute(std::string name, ir::Graph graph) {
  ir::Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = ir::AttributeKind::graph;
  attribute.g = std::make_shared<const ir::Graph>(std::move(graph));
  return attribute;
}

const ValueType* UpgradeContext::type(size_t input) const {
  if (!has_input(input) || !services_.known) return nullptr;
  const ValueFacts* known = services_.known(node_.inputs[input]);
  return known && known->type.is_known() ? &known->type : nullptr;
}

ElementType UpgradeContext::element(size_t input) const {
  const ValueType* found = type(input);
  return found && found->is_tensor() ? found->element : ElementType::undefined;
}

std::optional<int64_t> UpgradeContext::rank(size_t input) const {
  const ValueType* found = type(input);
  if (found == nullptr || !found->shape) return std::nullopt;
  return static_cast<int64_t>(found->shape->size());
}

const Tensor* UpgradeContext::constant(size_t input) const {
  if (!has_input(input) || !services_.known) return nullptr;
  const ValueFacts* known = services_.known(node_.inputs[input]);
  return known ? made_constants_.of(*known) : nullptr;
}

void UpgradeContext::shape_like(size_t output, size_t input) {
  const ValueType* like = type(input);
  if (has_output(output) && like != nullptr && like->shape)
    shapes_.push_back({node_.outputs[output], *like->shape});
}

void UpgradeContext::remove_attribute(std::string_view name) {
  std::erase_if(node_.attributes, [&](const ir::Attribute& a) { return a.name == name; });
}

ir::Attribute& UpgradeContext::replace_attribute(std::string_view name, ir::AttributeKind kind) {
  remove_attribute(name);
  ir::Attribute& attribute = node_.attributes.emplace_back();
  attribute.name = name;
  attribute.kind = kind;
  return attribute;
}

void UpgradeContext::set_attribute(std::string_view name, int64_t value) {
  replace_attribute(name, ir::AttributeKind::int_).i = value;
}
void UpgradeContext::set_attribute(std::string_view name, float value) {
  replace_attribute(name, ir::AttributeKind::float_).f = value;
}
void UpgradeContext::set_attribute(std::string_view name, std::string_view value) {
  replace_attribute(name, ir::AttributeKind::string).s = std::string(value);
}
void UpgradeContext::set_attribute(std::string_view name, std::vector<int64_t> value) {
  replace_attribute(name, ir::AttributeKind::ints).ints = std::move(value);
}

void UpgradeContext::set_input(size_t i, std::string value) {
  if (node_.inputs.size() <= i) node_.inputs.resize(i + 1);
  node_.inputs[i] = std::move(value);
}

std::string UpgradeContext::constant(Tensor tensor, std::string_view hint) {
  constants_.push_back({services_.fresh_name(hint), ValueFacts::of(std::move(tensor))});
  return constants_.back().name;
}

std::vector<ir::Node> UpgradeContext::take_before() {
  std::vector<ir::Node> nodes;
  nodes.reserve(constants_.size() + before_.size());
  for (NamedConstant& constant : constants_) {
    ir::Node& node = nodes.emplace_back();
    node.op_type = "Constant";
    node.attributes.push_back(tensor_attribute("value", *made_constants_.of(constant.value)));
    node.outputs.push_back(std::move(constant.name));
  }
  std::ranges::move(before_, std::back_inserter(nodes));
  constants_.clear();
  before_.clear();
  return nodes;
}

std::string UpgradeContext::constant_ints(const std::vector<int64_t>& values,
                                          std::string_view hint) {
  const auto count = static_cast<int64_t>(values.size());
  if (count > max_known_elements) return constant(Tensor::of<int64_t>(values, {count}), hint);
  constants_.push_back(
      {services_.fresh_name(hint), ValueFacts::of(std::span<const int64_t>(values))});
  return constants_.back().name;
}

std::string UpgradeContext::scalar_like(float value, size_t like_input, std::string_view hint) {
  const ElementType wanted = element(like_input);
  if (wanted == ElementType::float32) return constant(Tensor::scalar<float>(value), hint);
  if (wanted == ElementType::float64) return constant(Tensor::scalar<double>(value), hint);
  if (wanted == ElementType::float16 || wanted == ElementType::bfloat16) {
    Tensor rounded(wanted, {});
    kernels::to_float16(wanted, &value, rounded.mutable_data(), 1);
    return constant(std::move(rounded), hint);
  }
  const std::string plain = constant(Tensor::scalar<float>(value), hint);
  return before("CastLike", {plain, node_.inputs[like_input]});
}

std::string UpgradeContext::before(std::string_view op, std::vector<std::string> inputs,
                                   std::vector<ir::Attribute> attributes) {
  ir::Node& node = before_.emplace_back();
  node.op_type = op;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  return node.outputs.emplace_back(services_.fresh_name(op));
}

std::string UpgradeContext::detach_output(size_t i, std::string* old_name) {
  *old_name = node_.outputs.at(i);
  node_.outputs[i] = services_.fresh_name(*old_name);
  return node_.outputs[i];
}

void UpgradeContext::after(std::string_view op, std::vector<std::string> inputs, std::string output,
                           std::vector<ir::Attribute> attributes) {
  ir::Node& node = after_.emplace_back();
  node.op_type = op;
  node.inputs = std::move(inputs);
  node.outputs.push_back(std::move(output));
  node.attributes = std::move(attributes);
}

}  // namespace sardonyx::ops
