#include "lower/fresh_names.h"

#include <array>
#include <charconv>

#include "base/fail.h"
#include "ir/walk.h"

namespace sardonyx::lower {

// Made names differ by their numbers.
std::string FreshNames::make(std::string_view hint) {
  if (counter_ == 0) {
    collect(*model_.graph);
    for (const ir::Function& function : model_.functions) {
      for (const ir::Node& node : function.nodes) collect_inside(node);
    }
  }
  std::string name;
  std::array<char, 20> number{};
  do {
    const auto written = std::to_chars(number.begin(), number.end(), counter_++);
    name.assign(hint).append("__").append(number.begin(), written.ptr);
    if (comes_in_parts_) made_.push_back(name);
  } while (taken_.contains(name));
  return name;
}

void FreshNames::meet(const ir::Node& node) { collect(node); }

void FreshNames::collect(const ir::Graph& graph) {
  for (const auto& input : graph.inputs) collect(input.name);
  for (const auto& initializer : graph.initializers) collect(initializer.name);
  for (const auto& sparse : graph.sparse_initializers) collect(sparse.values.name);
  for (const ir::Node& node : graph.nodes) collect(node);
}

void FreshNames::collect(const ir::Node& node) {
  for (const std::string& output : node.outputs) collect(output);
  collect_inside(node);
}

void FreshNames::collect_inside(const ir::Node& node) {
  if (!has_graphs(node)) return;
  ir::for_each_subgraph(
      node, [this](const ir::Graph& graph, const ir::Attribute&, int) { collect(graph); });
}

// Only what ends with "__" and a number can be in the way.
void FreshNames::collect(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
  if (end == name.size() || !name.substr(0, end).ends_with("__")) return;
  uint64_t number = 0;
  std::from_chars(name.data() + end, name.data() + name.size(), number);
  if (number < made_.size() && made_[number] == name)
    fail(ErrorCode::unsupported, "'{}' was made before the model's own value was met", name);
  taken_.emplace(name);
}

}  // namespace sardonyx::lower
