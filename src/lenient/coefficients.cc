// Linear models with more coefficients than their input has columns for.
#include <fmt/format.h>

#include <algorithm>

#include "lenient/repairs.h"
#include "lenient/scopes.h"

namespace sardonyx::lenient {
namespace {

const ir::Attribute* attribute_of(const ir::Node& node, std::string_view name) {
  const auto found = std::ranges::find(node.attributes, name, &ir::Attribute::name);
  return found == node.attributes.end() ? nullptr : &*found;
}

size_t targets_of(const ir::Node& node) {
  if (node.op_type == "LinearRegressor") {
    const ir::Attribute* targets = attribute_of(node, "targets");
    return targets == nullptr ? 1
                              : static_cast<size_t>(std::max<int64_t>(targets->i.value_or(1), 1));
  }
  const ir::Attribute* intercepts = attribute_of(node, "intercepts");
  return intercepts == nullptr ? 1 : std::max<size_t>(intercepts->floats.size(), 1);
}

// The columns that an input of the graph is declared with; 0 where they are not known.
size_t columns_of(const ir::Graph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.inputs, name, &ir::ValueInfo::name);
  if (found == graph.inputs.end() || !found->type || !found->type->shape) return 0;
  const auto& dims = found->type->shape->dims;
  if (dims.empty() || dims.size() > 2 || !dims.back().value) return 0;
  return static_cast<size_t>(std::max<int64_t>(*dims.back().value, 0));
}

// How many of a node's coefficients count, where these are not all; else 0.
size_t used_coefficients(const ir::Graph& graph, const ir::Node& node) {
  if (ir::canonical_domain(node.domain) != "ai.onnx.ml" || node.inputs.empty() ||
      (node.op_type != "LinearClassifier" && node.op_type != "LinearRegressor"))
    return 0;
  const ir::Attribute* coefficients = attribute_of(node, "coefficients");
  const size_t columns = columns_of(graph, node.inputs[0]);
  if (coefficients == nullptr || columns == 0 || columns > coefficients->floats.size()) return 0;
  const size_t used = columns * targets_of(node);
  return used < coefficients->floats.size() ? used : 0;
}

}  // namespace

bool has_spare_coefficients(const ir::Model& model) {
  if (!model.graph) return false;
  return std::ranges::any_of(model.graph->nodes, [&](const ir::Node& node) {
    return used_coefficients(*model.graph, node) != 0;
  });
}

void drop_spare_coefficients(ir::Model& model, Repairs& repairs) {
  if (!model.graph) return;
  for_each_scope(model, [&](Scope& scope) {
    if (scope.graph != &*model.graph) return;
    for (size_t i = 0; i < scope.nodes->size(); ++i) {
      ir::Node& node = (*scope.nodes)[i];
      const size_t used = used_coefficients(*scope.graph, node);
      if (used == 0) continue;
      const auto found = std::ranges::find(node.attributes, "coefficients", &ir::Attribute::name);
      repairs.push_back(
          repaired("", place_of(scope, i, "attribute 'coefficients'"),
                   fmt::format("there are {} numbers, for an input of {} columns and {} targets",
                               found->floats.size(), columns_of(*scope.graph, node.inputs[0]),
                               targets_of(node)),
                   fmt::format("the first {} count", used)));
      found->floats.resize(used);
    }
  });
}

}  // namespace sardonyx::lenient
