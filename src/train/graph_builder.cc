#include "train/graph_builder.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "ir/dimension.h"
#include "ir/tensor.h"
#include "ops/upgrade_context.h"

namespace sardonyx::train {

std::string NamePool::make(const std::string& hint) {
  std::string name = hint;
  for (int i = 1; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", hint, i);
  return name;
}

std::string GraphBuilder::add(const std::string& op, std::vector<std::string> inputs,
                              std::vector<ir::Attribute> attributes, const std::string& hint) {
  std::string output = name(hint.empty() ? "training_" + op : hint);
  add_to(op, std::move(inputs), {output}, std::move(attributes));
  return output;
}

ir::Node& GraphBuilder::add_to(const std::string& op, std::vector<std::string> inputs,
                               std::vector<std::string> outputs,
                               std::vector<ir::Attribute> attributes) {
  ir::Node& node = graph_.nodes.emplace_back();
  node.op_type = op;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes = std::move(attributes);
  return node;
}

std::string GraphBuilder::constant(const Tensor& tensor) {
  return add("Constant", {}, {ops::tensor_attribute("value", tensor)});
}
std::string GraphBuilder::number(double value) { return constant(scalar(element_, value)); }
std::string GraphBuilder::integer(int64_t value) { return constant(Tensor::scalar(value)); }
std::string GraphBuilder::truth(bool value) { return constant(Tensor::scalar(value)); }
std::string GraphBuilder::integers(std::vector<int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return constant(Tensor::of(std::span<const int64_t>(values), {count}));
}
std::string GraphBuilder::cast(const std::string& value, ElementType to) {
  return add("Cast", {value}, {ops::int_attribute("to", static_cast<int64_t>(to))});
}

std::string GraphBuilder::initializer(const std::string& hint, const Tensor& tensor) {
  std::string made = name(hint);
  graph_.initializers.push_back(ir::to_proto(tensor, made));
  return made;
}

void GraphBuilder::output(const std::string& name, ElementType element, const Shape& shape) {
  graph_.outputs.push_back(value_info(name, element, shape));
}

ir::Attribute strings_attribute(std::string name, std::vector<std::string> values) {
  ir::Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = ir::AttributeKind::strings;
  attribute.strings = std::move(values);
  return attribute;
}

ir::ValueInfo value_info(const std::string& name, ElementType element, const Shape& shape) {
  ir::ValueInfo info;
  info.name = name;
  ir::TypeProto& type = info.type.emplace();
  type.kind = ir::TypeProto::Kind::tensor;
  type.elem_type = static_cast<int32_t>(element);
  ir::TensorShape& dims = type.shape.emplace();
  for (const int64_t size : shape) ir::set_number(dims.dims.emplace_back(), size);
  return info;
}

Tensor zeros(ElementType element, const Shape& shape) {
  Tensor tensor(element, shape);
  if (tensor.byte_size() > 0) std::memset(tensor.mutable_data(), 0, tensor.byte_size());
  return tensor;
}

Tensor scalar(ElementType element, double value) {
  if (element == ElementType::float64) return Tensor::scalar(value);
  return Tensor::scalar(static_cast<float>(value));
}

bool fits(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = pattern.npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1, t = ++taken;  // the last star takes one more
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool fits_any(const std::vector<std::string>& patterns, std::string_view text) {
  return std::ranges::any_of(patterns, [&](const std::string& one) { return fits(one, text); });
}

}  // namespace sardonyx::train
