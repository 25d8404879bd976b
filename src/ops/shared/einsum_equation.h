// The equation of an Einsum.
#pragma once

#include <string_view>
#include <vector>

#include "ops/node_view.h"

namespace sardonyx::ops {

// The labels of a tensor's dimensions. A label is a letter, or a number from first_ellipsis_label
// on for the dimensions that "..." stands for, counted from the right.
using EinsumTerm = std::vector<int>;

struct EinsumEquation {
  static constexpr int ellipsis = -1;
  static constexpr int first_ellipsis_label = 256;
  std::vector<EinsumTerm> inputs;  // with `ellipsis` as a label of its own
  EinsumTerm output;

  // The terms for operands of these ranks; fails where a rank does not fit its term.
  std::vector<EinsumTerm> expand(const NodeView& node, const std::vector<size_t>& ranks) const;
  // The output's labels for expanded inputs.
  EinsumTerm expand_output(const std::vector<EinsumTerm>& inputs) const;
};

// Reads attribute 'equation' and checks it against the number of inputs.
EinsumEquation read_equation(const NodeView& node);

}  // namespace sardonyx::ops
