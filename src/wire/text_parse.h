// Reads ONNX's textual syntax (docs/text_syntax.md), with a few additions of ours for what the
// standard's grammar cannot say. All functions may be called from any thread.
//
// Each throws Error (invalid_model) at the first syntax error, located as "line L, column C"; the
// message names what was expected, where in the grammar, and what was found. Nesting of graphs and
// types is bounded by max_text_depth. The text is not checked for meaning: names, counts of
// elements and operator signatures are the checker's business.
#pragma once

#include <string_view>

#include "ir/model.h"

namespace sardonyx::wire {

// Graphs inside attributes, or types inside types, may nest this deep.
inline constexpr int max_text_depth = 200;

// The whole text has to be one model, graph, …; only comments and white space may follow it.
ir::Model parse_model(std::string_view text);
ir::Graph parse_graph(std::string_view text);
ir::Function parse_function(std::string_view text);
ir::Node parse_node(std::string_view text);
ir::Attribute parse_attribute(std::string_view text);  // "axis: int = 1"
ir::TypeProto parse_type(std::string_view text);       // "seq(float[N, 3])"
ir::TensorProto parse_tensor(std::string_view text);   // "float[2] name = {1, 2}"

}  // namespace sardonyx::wire
