#include "ops/internal/node.h"

#include <fmt/format.h>

#include "base/fail.h"
#include "ir/origin.h"
#include "ops/internal/all.h"

namespace sardonyx::ops::internal {

void refuse_operator(const ir::Node& node, std::string_view wanted) {
  fail_at(ir::place_of(node), ErrorCode::internal, "is no node of the internal operator {}",
          wanted);
}

void place_inputs(ir::Node& node, Positions inputs) {
  node.inputs.clear();
  for (const auto& [position, value] : inputs) {
    if (!value.empty()) ir::set_input(node, static_cast<size_t>(position), value);
  }
}

std::optional<std::string> problem_of_values(std::span<const std::string> values,
                                             std::span<const std::string_view> names,
                                             std::string_view what) {
  const bool any_number = !names.empty() && names.back().ends_with("...");
  if (values.size() > names.size() && !any_number)
    return fmt::format("has {} {}s, but there are at most {}", values.size(), what, names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if ((i >= values.size() || values[i].empty()) && !names[i].ends_with('?'))
      return fmt::format("lacks {} {}", what, names[i]);
  }
  return std::nullopt;
}

std::optional<std::string> problem_of(const ir::Node& node) {
  std::optional<std::string> problem;
  const bool found = AllOperators::any([&]<class Op>(std::type_identity<Op>) {
    if (!is<Op>(node)) return false;
    try {
      from_node<Op>(node);
      problem = problem_of_values(node.inputs, Op::inputs, "input");
      if (!problem) problem = problem_of_values(node.outputs, Op::outputs, "output");
    } catch (const Error& error) {
      problem = error.message();
    }
    return true;
  });
  if (!found) return "is no internal operator";
  return problem;
}

}  // namespace sardonyx::ops::internal
