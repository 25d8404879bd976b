#include "passes/layout/two_layouts.h"

#include <algorithm>
#include <utility>

#include "ir/origin.h"
#include "ir/tensor.h"
#include "ops/upgrade_context.h"
#include "passes/graph_index.h"
#include "passes/layout/layout.h"
#include "passes/value_names.h"

namespace sardonyx::passes {
namespace {

bool is_byte(ElementType type) { return type == ElementType::int8 || type == ElementType::uint8; }

}  // namespace

TwoLayouts::TwoLayouts(ir::Graph& graph, const infer::Scope& scope)
    : graph_(graph), scope_(scope), names_(scope) {
  const auto use = [&](const std::string& name) { ++uses_[name]; };
  for (const ir::Node& node : graph_.nodes) for_each_read(node, use);
  for (const ir::ValueInfo& output : graph_.outputs) use(output.name);
}

const ir::Dims* TwoLayouts::shape_of(const std::string& value) const {
  return value.empty() ? nullptr : passes::shape_of(scope_.find(value));
}

int64_t TwoLayouts::rank_of(const std::string& value) const {
  const auto* shape = shape_of(value);
  return shape ? static_cast<int64_t>(shape->size()) : -1;
}

bool TwoLayouts::is_image(const std::string& value) const {
  const infer::ValueFacts* known = value.empty() ? nullptr : scope_.find(value);
  const int64_t rank = rank_of(value);
  return known && (known->type.element == ElementType::float32 || is_byte(known->type.element)) &&
         rank >= 3 && rank <= 5;
}

bool TwoLayouts::is_float_image(const std::string& value) const {
  return is_image(value) && !is_byte(scope_.find(value)->type.element);
}

const Tensor* TwoLayouts::constant(const std::string& value) const {
  const infer::ValueFacts* known = value.empty() ? nullptr : scope_.find(value);
  return known ? known->constant.get() : nullptr;
}

std::optional<std::vector<int64_t>> TwoLayouts::integers(const std::string& value) const {
  const Tensor* tensor = constant(value);
  if (tensor == nullptr || tensor->element_type() != ElementType::int64) return std::nullopt;
  const Tensor held = ir::aligned(*tensor);
  const auto list = held.elements<int64_t>();
  return std::vector<int64_t>(list.begin(), list.end());
}

bool TwoLayouts::is_any_nhwc(const ir::Node& node) const {
  return std::ranges::any_of(node.inputs, [&](const std::string& i) { return is_nhwc(i); });
}

int TwoLayouts::uses(const std::string& value) const {
  const auto found = uses_.find(value);
  return found == uses_.end() ? 0 : found->second;
}

void TwoLayouts::transpose(const std::string& from, std::string to, std::vector<int64_t> perm) {
  ir::Node node;
  node.op_type = "Transpose";
  node.name = to;
  node.origin = "from layout";
  node.is_helper = true;
  node.inputs = {from};
  node.outputs = {std::move(to)};
  node.attributes = {ops::ints_attribute("perm", std::move(perm))};
  graph_.nodes.push_back(std::move(node));
}

void TwoLayouts::need_first(const std::string& value) {
  if (only_nhwc_.erase(value) == 0) return;
  transpose(last_.at(value), value, to_channels_first(rank_of(value)));
}

std::string TwoLayouts::as_nhwc(const std::string& value) {
  if (const auto found = last_.find(value); found != last_.end()) return found->second;
  if (const Tensor* tensor = constant(value); tensor && tensor->size() == 1) return value;
  std::string twin = names_.make(value, "last");
  transpose(value, twin, to_nhwc(rank_of(value)));
  last_[value] = twin;
  return twin;
}

void TwoLayouts::make_nhwc(std::string& output) {
  if (output.empty()) return;
  std::string twin = names_.make(output, "last");
  last_[output] = twin;
  only_nhwc_.insert(output);
  output = std::move(twin);
}

std::string TwoLayouts::add_constant(const Tensor& tensor, std::string_view hint) {
  std::string name = names_.make(hint, "layout");
  graph_.initializers.push_back(ir::to_proto(tensor, name));
  return name;
}

std::string TwoLayouts::add_integers(const std::vector<int64_t>& values, std::string_view hint) {
  Tensor tensor(ElementType::int64, {static_cast<int64_t>(values.size())});
  std::ranges::copy(values, tensor.mutable_elements<int64_t>().begin());
  return add_constant(tensor, hint);
}

void TwoLayouts::emit(ir::Node node) {
  if (node.name.empty()) ir::keep_source(node);
  for (std::string& output : node.outputs) make_nhwc(output);
  graph_.nodes.push_back(std::move(node));
}

void TwoLayouts::keep(ir::Node node) {
  for_each_read(node, [&](const std::string& name) { need_first(name); });
  graph_.nodes.push_back(std::move(node));
}

}  // namespace sardonyx::passes
