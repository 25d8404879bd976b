#include "ops/shared/einsum_equation.h"

#include <algorithm>
#include <array>
#include <string>

namespace sardonyx::ops {
namespace {

constexpr int ellipsis = EinsumEquation::ellipsis;
constexpr int first_ellipsis_label = EinsumEquation::first_ellipsis_label;

bool contains(const EinsumTerm& term, int label) {
  return std::find(term.begin(), term.end(), label) != term.end();
}

EinsumTerm parse_term(const NodeView& node, std::string_view text) {
  EinsumTerm term;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      term.push_back(static_cast<unsigned char>(c));
    } else if (text.substr(i, 3) == "..." && !contains(term, ellipsis)) {
      term.push_back(ellipsis);
      i += 2;
    } else {
      node.fail("equation has '{}' where a letter, one '...', ',' or '->' is allowed", c);
    }
  }
  return term;
}

// Without "->": the ellipsis, then every label that occurs once, in alphabetical order.
EinsumTerm implied_output(const std::vector<EinsumTerm>& inputs) {
  std::array<int, 256> uses{};
  EinsumTerm output;
  for (const EinsumTerm& term : inputs) {
    for (const int label : term) {
      if (label != ellipsis)
        ++uses[static_cast<size_t>(label)];
      else if (output.empty())
        output.push_back(ellipsis);
    }
  }
  for (int label = 0; label < 256; ++label) {
    if (uses[static_cast<size_t>(label)] == 1) output.push_back(label);
  }
  return output;
}

void check_output(const NodeView& node, const EinsumEquation& equation) {
  for (const int label : equation.output) {
    if (label == ellipsis) continue;
    const char c = static_cast<char>(label);
    if (std::count(equation.output.begin(), equation.output.end(), label) > 1)
      node.fail("equation repeats label '{}' in its output", c);
    const bool known = std::any_of(equation.inputs.begin(), equation.inputs.end(),
                                   [&](const EinsumTerm& t) { return contains(t, label); });
    if (!known) node.fail("equation has label '{}' in its output only", c);
  }
}

// Each "..." becomes `dims` labels.
EinsumTerm replace_ellipsis(const EinsumTerm& term, size_t dims) {
  EinsumTerm result;
  for (const int label : term) {
    if (label != ellipsis) {
      result.push_back(label);
    } else {
      for (size_t i = dims; i-- > 0;) result.push_back(first_ellipsis_label + static_cast<int>(i));
    }
  }
  return result;
}

}  // namespace

EinsumEquation read_equation(const NodeView& node) {
  std::string text = node.attr_string("equation");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  EinsumEquation equation;
  for (size_t comma = left.find(','); comma != std::string_view::npos; comma = left.find(',')) {
    equation.inputs.push_back(parse_term(node, left.substr(0, comma)));
    left.remove_prefix(comma + 1);
  }
  equation.inputs.push_back(parse_term(node, left));
  if (static_cast<int>(equation.inputs.size()) != node.input_count()) {
    node.fail("equation '{}' names {} operands; the node has {}", text, equation.inputs.size(),
              node.input_count());
  }
  if (arrow == std::string::npos) {
    equation.output = implied_output(equation.inputs);
  } else {
    equation.output = parse_term(node, std::string_view(text).substr(arrow + 2));
    check_output(node, equation);
  }
  return equation;
}

std::vector<EinsumTerm> EinsumEquation::expand(const NodeView& node,
                                               const std::vector<size_t>& ranks) const {
  std::vector<EinsumTerm> terms;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool has_ellipsis = contains(inputs[i], ellipsis);
    const size_t letters = inputs[i].size() - (has_ellipsis ? 1 : 0);
    if (ranks[i] < letters || (!has_ellipsis && ranks[i] != letters)) {
      node.fail("{} has {} dimensions; its term in the equation has {} labels",
                node.input_name(static_cast<int>(i)), ranks[i], letters);
    }
    terms.push_back(replace_ellipsis(inputs[i], ranks[i] - letters));
  }
  return terms;
}

EinsumTerm EinsumEquation::expand_output(const std::vector<EinsumTerm>& terms) const {
  size_t dims = 0;
  for (const EinsumTerm& term : terms) {
    for (const int label : term)
      dims = std::max(dims, static_cast<size_t>(std::max(0, label - first_ellipsis_label + 1)));
  }
  return replace_ellipsis(output, dims);
}

}  // namespace sardonyx::ops
