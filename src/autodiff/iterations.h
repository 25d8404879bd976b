// What the gradients of operators with graphs share. Internal to the gradients.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/walk.h"

namespace sardonyx::autodiff {

inline std::vector<ir::ValueInfo> named(const std::vector<std::string>& names) {
  std::vector<ir::ValueInfo> values;
  for (const std::string& name : names) values.emplace_back().name = name;
  return values;
}

inline const ir::Graph& graph_of(const ir::Node& node, std::string_view attribute) {
  return *node.find(attribute)->g;
}

inline std::string first_output(const ir::Node& node) {
  const auto found =
      std::ranges::find_if(node.outputs, [](const auto& name) { return !name.empty(); });
  return found == node.outputs.end() ? std::string() : *found;
}

inline infer::ValueFacts like(const infer::ValueFacts* value) {
  return value == nullptr ? infer::ValueFacts{} : infer::ValueFacts::of(value->type);
}

// iterations_forward.cc
// A Loop that adds items of one sequence, `count` of them from `start` on (the first, where it is
// empty), to the end of another.
ir::Node appended(const std::string& to, const std::string& from, const std::string& start,
                  const std::string& count, const std::string& result,
                  const GradientServices& services);
ir::Node no_items(ElementType type, const std::string& result);  // an empty sequence
// Of a sequence, or of what flows back into an optional value; undefined where not known.
ElementType item_type(const infer::ValueFacts* value);

// A Loop or Scan, seen alike.
struct GradientWalk::Iteration {
  const ir::Node* node;
  const ir::Graph* body;
  size_t states = 0;        // carried from iteration to iteration
  size_t first_state = 0;   // among the node's inputs
  size_t body_inputs = 0;   // before the states of the body's
  size_t body_outputs = 0;  // before the states of the body's
  bool loop = false;
  std::vector<int64_t> input_axes, input_directions;    // of a Scan's inputs
  std::vector<int64_t> output_axes, output_directions;  // of what is stacked
};

}  // namespace sardonyx::autodiff
