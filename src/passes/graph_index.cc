#include "passes/graph_index.h"

#include <algorithm>
#include <utility>

#include "ir/origin.h"
#include "ir/tensor.h"
#include "passes/value_names.h"

namespace sardonyx::passes {

const std::string* other_input(const ir::Node& node, std::string_view value) {
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return nullptr;
  if (node.inputs[0] == value) return &node.inputs[1];
  if (node.inputs[1] == value) return &node.inputs[0];
  return nullptr;
}

GraphIndex::GraphIndex(ir::Graph& graph, const infer::Scope& scope)
    : graph_(graph), scope_(scope), names_(scope), dead_(graph.nodes.size(), 0) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& output : graph.nodes[i].outputs) {
      if (!output.empty()) makers_[output] = i;
    }
    count(graph.nodes[i], i, 1);
  }
  for (const ir::ValueInfo& output : graph.outputs) uses_[output.name].count += 1;
}

void GraphIndex::count(const ir::Node& node, size_t i, int by) {
  const auto use = [&](const std::string& name) {
    if (name.empty()) return;
    Uses& uses = uses_[name];
    uses.count += by;
    if (by > 0) {
      uses.users.push_back(i);
    } else {
      const auto found = std::find(uses.users.begin(), uses.users.end(), i);
      if (found != uses.users.end()) uses.users.erase(found);
    }
  };
  for_each_read(node, use);
}

size_t GraphIndex::producer_index(std::string_view value) const {
  const auto found = makers_.find(std::string(value));
  return found == makers_.end() || dead_[found->second] ? size() : found->second;
}

const ir::Node* GraphIndex::producer(std::string_view value) const {
  const size_t i = producer_index(value);
  return i == size() ? nullptr : &graph_.nodes[i];
}

int GraphIndex::uses(std::string_view value) const {
  const auto found = uses_.find(std::string(value));
  return found == uses_.end() ? 0 : found->second.count;
}

std::vector<size_t> GraphIndex::users(std::string_view value) const {
  const auto found = uses_.find(std::string(value));
  return found == uses_.end() ? std::vector<size_t>() : found->second.users;
}

size_t GraphIndex::only_user(std::string_view value) const {
  const auto found = uses_.find(std::string(value));
  if (found == uses_.end() || found->second.count != 1 || found->second.users.size() != 1)
    return size();
  return found->second.users[0];
}

const infer::ValueFacts* GraphIndex::known(std::string_view value) const {
  if (const infer::ValueFacts* found = scope_.find(value)) return found;
  const auto added = added_.find(std::string(value));
  return added == added_.end() ? nullptr : &added->second;
}

const Tensor* GraphIndex::constant(std::string_view value) const {
  const infer::ValueFacts* found = known(value);
  if (found == nullptr || !found->constant) return nullptr;
  // A graph input may be given anew by every run; only what no one makes or feeds stays.
  return found->constant.get();
}

std::optional<double> GraphIndex::scalar(std::string_view value) const {
  const Tensor* tensor = constant(value);
  if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
  const Tensor held = ir::aligned(*tensor);
  if (held.element_type() == ElementType::float32) return held.elements<float>()[0];
  if (held.element_type() == ElementType::float64) return held.elements<double>()[0];
  return std::nullopt;
}

std::optional<int32_t> GraphIndex::byte(std::string_view value) const {
  const Tensor* tensor = constant(value);
  if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
  if (tensor->element_type() == ElementType::int8)
    return *static_cast<const int8_t*>(tensor->data());
  if (tensor->element_type() == ElementType::uint8)
    return *static_cast<const uint8_t*>(tensor->data());
  return std::nullopt;
}

bool GraphIndex::is_float32(std::string_view value) const {
  const infer::ValueFacts* found = known(value);
  return found && found->type.is_tensor() && found->type.element == ElementType::float32;
}

bool GraphIndex::same_shape(std::string_view a, std::string_view b) const {
  const infer::ValueFacts *x = known(a), *y = known(b);
  return x && y && x->type.shape && y->type.shape && *x->type.shape == *y->type.shape;
}

const Tensor* GraphIndex::vector_along(size_t axis, std::string_view value,
                                       std::string_view image) const {
  const ir::Dims* shape = shape_of(image);
  const Tensor* vector = constant(value);
  if (shape == nullptr || axis >= shape->size() || vector == nullptr ||
      vector->element_type() != ElementType::float32 || !((*shape)[axis] == vector->size()))
    return nullptr;
  // Every dimension but the one along the axis must be 1.
  const int64_t at = vector->rank() - static_cast<int64_t>(shape->size() - axis);
  const bool fits = at >= 0 && vector->rank() <= static_cast<int64_t>(shape->size()) &&
                    vector->shape()[static_cast<size_t>(at)] == vector->size();
  return fits ? vector : nullptr;
}

void GraphIndex::change(size_t i, ir::Node node) {
  ++edits_;
  count(graph_.nodes[i], i, -1);
  for (const std::string& output : node.outputs) {
    if (!output.empty()) makers_[output] = i;
  }
  count(node, i, 1);
  graph_.nodes[i] = std::move(node);
}

void GraphIndex::replace(size_t i, ir::Node node, std::span<const size_t> with) {
  ++edits_;
  count(graph_.nodes[i], i, -1);
  for (const std::string& output : graph_.nodes[i].outputs) makers_.erase(output);
  for (const std::string& output : node.outputs) {
    if (!output.empty()) makers_[output] = i;
  }
  count(node, i, 1);
  const ir::Node old = std::exchange(graph_.nodes[i], std::move(node));
  std::vector<size_t> parts(with.begin(), with.end());
  for (const size_t part : with) kill_unread(part, parts);
  for (const std::string& input : old.inputs) {
    if (const size_t maker = producer_index(input); maker != size()) kill_unread(maker, parts);
  }
  parts.push_back(i);
  std::ranges::sort(parts);
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  std::vector<const ir::Node*> nodes;
  for (const size_t part : parts) nodes.push_back(part == i ? &old : &graph_.nodes[part]);
  ir::set_sources(graph_.nodes[i], nodes);
}

bool GraphIndex::is_read(size_t i) const {
  return std::ranges::any_of(graph_.nodes[i].outputs, [&](const std::string& output) {
    const auto maker = makers_.find(output);
    // An output that has got another name since: who reads it is not known here.
    if (maker == makers_.end()) return !output.empty();
    return maker->second == i && uses(output) > 0;
  });
}

void GraphIndex::kill_unread(size_t i, std::vector<size_t>& killed) {
  std::vector<size_t> left{i};
  while (!left.empty()) {
    const size_t at = left.back();
    left.pop_back();
    if (dead_[at] || is_read(at)) continue;
    count(graph_.nodes[at], at, -1);
    dead_[at] = 1;
    killed.push_back(at);
    for (const std::string& input : graph_.nodes[at].inputs) {
      if (const size_t maker = producer_index(input); maker != size()) left.push_back(maker);
    }
  }
}

std::string GraphIndex::add_initializer(const Tensor& tensor, std::string_view hint) {
  std::string name = names_.make(hint, "fused");
  graph_.initializers.push_back(ir::to_proto(tensor, name));
  added_.emplace(name, infer::ValueFacts::of(tensor));
  return name;
}

void GraphIndex::compact() {
  size_t kept = 0;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (dead_[i]) continue;
    if (kept != i) graph_.nodes[kept] = std::move(graph_.nodes[i]);
    ++kept;
  }
  graph_.nodes.resize(kept);
}

}  // namespace sardonyx::passes
