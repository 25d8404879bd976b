// Internal operators as nodes of a graph: the struct of ops/internal/fields.h to a node and back.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/model.h"
#include "ir/node_values.h"
#include "ops/internal/fields.h"

namespace sardonyx::ops::internal {

template <class Op>
bool is(const ir::Node& node) {
  return node.domain == domain && node.op_type == Op::name;
}
template <class Op>
bool is(const ir::Node* node) {
  return node != nullptr && is<Op>(*node);
}

// Whether the node is of the operator of ai.onnx that `Op` is a form of.
template <class Op>
bool is_standard(const ir::Node& node) {
  return ir::canonical_domain(node.domain).empty() && node.op_type == Op::name;
}

// What a node of this operator says. Throws Error (internal), with the node's place, where it is
// another operator or its attributes are not those that write() makes.
template <class Op>
Op from_node(const ir::Node& node);

// Makes the node one of this operator; its name, inputs and outputs stay.
template <class Op>
void write(const Op& op, ir::Node& node);

// Values by position; those between and before them are absent.
using Positions = std::initializer_list<std::pair<int, std::string>>;

// A node of this operator. `inputs` by the operator's positions, absent ones at the end left out.
template <class Op>
ir::Node to_node(const Op& op, std::string name, Positions inputs,
                 std::vector<std::string> outputs);

// What is wrong with an internal node as such: there is no such operator, its attributes are not
// those of the operator, an input or output that it must have is absent, or it has more than there
// are. nullopt where all is well.
std::optional<std::string> problem_of(const ir::Node& node);

// --- How it is done ------------------------------------------------------------------------------

[[noreturn]] void refuse_operator(const ir::Node& node, std::string_view wanted);
void place_inputs(ir::Node& node, Positions inputs);
// The same of what a struct says of its inputs or outputs.
std::optional<std::string> problem_of_values(std::span<const std::string> values,
                                             std::span<const std::string_view> names,
                                             std::string_view what);

template <class Op>
Op from_node(const ir::Node& node) {
  if (!is<Op>(node)) refuse_operator(node, Op::name);
  Op op;
  FieldReader reader(node);
  Op::fields(reader, op);
  if (!reader.took_all()) {
    FieldNames names;
    Op::fields(names, op);
    refuse_unknown(node, names);
  }
  return op;
}

template <class Op>
void write(const Op& op, ir::Node& node) {
  static const Op usual{};
  node.domain = domain;
  node.op_type = Op::name;
  node.attributes.clear();
  FieldWriter writer(node.attributes);
  Op::fields(writer, op, usual);
}

template <class Op>
ir::Node to_node(const Op& op, std::string name, Positions inputs,
                 std::vector<std::string> outputs) {
  ir::Node node;
  write(op, node);
  node.name = std::move(name);
  place_inputs(node, inputs);
  node.outputs = std::move(outputs);
  return node;
}

}  // namespace sardonyx::ops::internal
