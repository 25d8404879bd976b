// Gradient nodes (ai.onnx.preview.training) as the nodes that compute them, by reverse-mode
// differentiation of the graph around them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::autodiff {

struct GradientServices {
  std::function<std::string(std::string_view hint)> fresh_name;
  // What is known of a value by name; null where nothing is.
  std::function<const infer::ValueFacts*(std::string_view value)> known;
  // Of Loop and Scan: compute each iteration again; false: keep what costly nodes made.
  bool recompute_iterations = false;
  // Says what a value is that a node makes since it was lowered.
  std::function<void(const std::string& value, infer::ValueFacts facts)> assume;
  // Appends what a node of these imports becomes when it is lowered.
  std::function<void(ir::Node node, const std::vector<ir::OperatorSetId>& imports,
                     std::vector<ir::Node>& out)>
      lower;
  // Calls `make` with services for a graph inside this one, whose inputs are `values`.
  std::function<void(const std::vector<std::pair<std::string, infer::ValueFacts>>& values,
                     const std::function<void(const GradientServices& inside)>& make)>
      within;
};

// `nodes` are a graph's, lowered and in order. What computes y is used where it stands, unless the
// node gives other values for xs and zs or comes before it: then it is computed again. Rules are
// the texts of spec/gradients and, where they depend on how many inputs there are or on ranks,
// gradient_rules.cc; an operator without either is differentiated through other operators
// (gradient_bodies.h) or its function body, one with graphs by those (gradient_graphs.cc).
// Throws Error (invalid_model, unsupported) with the node's place.
void expand_gradients(std::vector<ir::Node>& nodes, const GradientServices& services);

// All operators that have a gradient other than that of their function body: "Gelu", and
// "Gelu.tanh" for what an attribute's value changes.
std::vector<std::string> gradient_names();

}  // namespace sardonyx::autodiff
