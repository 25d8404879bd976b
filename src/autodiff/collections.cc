// Gradients of operators on sequences and optional values. What flows back into a sequence is a
// sequence of as many items; into an optional tensor, one of as many as it holds.
#include "autodiff/bodies.h"
#include "autodiff/rules.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {

using ops::int_attribute;

namespace {

ir::Node node_with(std::string_view op, std::vector<std::string> inputs, std::string output,
                   std::vector<ir::Attribute> attributes = {}) {
  ir::Node node;
  node.op_type = op;
  node.inputs = std::move(inputs), node.outputs = {std::move(output)};
  node.attributes = std::move(attributes);
  return node;
}

// A SequenceMap whose graph is these nodes.
std::string mapped(GradientEmitter& e, std::vector<std::string> sequences,
                   std::vector<std::string> items, std::vector<ir::Node> nodes) {
  ir::Graph body;
  body.name = "item";
  for (std::string& item : items) body.inputs.emplace_back().name = std::move(item);
  body.outputs.emplace_back().name = nodes.back().outputs[0];
  body.nodes = std::move(nodes);
  return e.emit("SequenceMap", std::move(sequences),
                {ops::graph_attribute("body", std::move(body))});
}

// Where a position, which may count from the end, lies in a sequence; the end where there is none.
std::string position(const GradientCall& call, GradientEmitter& e, size_t input,
                     int64_t otherwise) {
  const std::string length = e.emit("SequenceLength", {call.node.inputs[0]});
  const auto number = [&](int64_t value) {
    return e.emit("Constant", {}, {ops::tensor_attribute("value", Tensor::scalar<int64_t>(value))});
  };
  if (input >= call.node.inputs.size() || call.node.inputs[input].empty())
    return e.emit("Add", {length, number(otherwise)});
  const std::string given = e.emit("Cast", {call.node.inputs[input]}, {int_attribute("to", 7)});
  const std::string from_end = e.emit("Less", {given, number(0)});
  return e.emit("Where", {from_end, e.emit("Add", {given, length}), given});
}

}  // namespace

std::string zeros_like_sequence(GradientEmitter& e, const std::string& sequence) {
  const auto fresh = [&](std::string_view hint) { return e.services().fresh_name(hint); };
  const std::string item = fresh("item"), shape = fresh("shape"), plain = fresh("zero"),
                    zero = fresh("zero");
  const std::vector<ir::Node> nodes{
      node_with("Constant", {}, plain, {ops::tensor_attribute("value", Tensor::scalar<float>(0))}),
      node_with("CastLike", {plain, item}, zero), node_with("Shape", {item}, shape),
      node_with("Expand", {zero, shape}, fresh("zeros"))};
  return mapped(e, {sequence}, {item}, nodes);
}

std::string sum_of_sequences(GradientEmitter& e, const std::vector<std::string>& sequences) {
  std::vector<std::string> items;
  for (size_t i = 0; i < sequences.size(); ++i) items.push_back(e.services().fresh_name("item"));
  return mapped(e, sequences, items, {node_with("Sum", items, e.services().fresh_name("sum"))});
}

std::string item_of(GradientEmitter& e, const std::string& sequence, int64_t position) {
  const std::string at =
      e.emit("Constant", {}, {ops::tensor_attribute("value", Tensor::scalar<int64_t>(position))});
  return e.emit("SequenceAt", {sequence, at});
}

void sequence_construct_gradient(const GradientCall& call, GradientEmitter& e) {
  for (size_t i = 0; i < call.of_inputs.size(); ++i)
    if (call.wanted[i]) call.of_inputs[i] = item_of(e, flow(call), static_cast<int64_t>(i));
}

void sequence_at_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string at = position(call, e, 1, -1);
  const std::string zeros = zeros_like_sequence(e, call.node.inputs[0]);
  const std::string others = e.emit("SequenceErase", {zeros, at});
  call.of_inputs[0] = e.emit("SequenceInsert", {others, flow(call), at});
}

void sequence_insert_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string at = position(call, e, 2, 0);
  if (call.wanted[1]) call.of_inputs[1] = e.emit("SequenceAt", {flow(call), at});
  if (call.wanted[0]) call.of_inputs[0] = e.emit("SequenceErase", {flow(call), at});
}

void sequence_erase_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string at = position(call, e, 1, -1);
  const std::string item = e.emit("SequenceAt", {call.node.inputs[0], at});
  call.of_inputs[0] = e.emit("SequenceInsert", {flow(call), e.filled_like(0, item), at});
}

void concat_from_sequence_gradient(const GradientCall& call, GradientEmitter& e) {
  const ops::NodeView view = view_of(call);
  const int64_t axis = view.attr_int("axis");
  if (view.attr_int("new_axis", 0) != 0) {
    call.of_inputs[0] = e.emit("SplitToSequence", {flow(call)},
                               {int_attribute("axis", axis), int_attribute("keepdims", 0)});
    return;
  }
  const auto fresh = [&](std::string_view hint) { return e.services().fresh_name(hint); };
  const std::string item = fresh("item"), shape = fresh("shape"), at = fresh("axis");
  const std::string sizes =
      mapped(e, {call.node.inputs[0]}, {item},
             {node_with("Shape", {item}, shape),
              node_with("Constant", {}, at,
                        {ops::tensor_attribute("value", Tensor::of<int64_t>({axis}, {1}))}),
              node_with("Gather", {shape, at}, fresh("size"), {int_attribute("axis", 0)})});
  const std::string split = e.emit("ConcatFromSequence", {sizes}, {int_attribute("axis", 0)});
  call.of_inputs[0] = e.emit("SplitToSequence", {flow(call), split}, {int_attribute("axis", axis)});
}

void split_to_sequence_gradient(const GradientCall& call, GradientEmitter& e) {
  const ops::NodeView view = view_of(call);
  const bool drops = !view.has_input(1) && view.attr_int("keepdims", 1) == 0;
  call.of_inputs[0] = e.emit(
      "ConcatFromSequence", {flow(call)},
      {int_attribute("axis", view.attr_int("axis", 0)), int_attribute("new_axis", drops ? 1 : 0)});
}

// --- Optional values ----------------------------------------------------------------------------

namespace {

using Kind = ir::TypeProto::Kind;

bool holds_sequence(const ir::ValueType& type) {
  return type.nested && type.nested->kind == Kind::sequence;
}

std::string first_of(NodeWriter& w, const std::string& list) {
  return w.add("SequenceAt", {list, w.constant(Tensor::scalar<int64_t>(0))});
}

// An If without inputs of its own, whose branches give what the writers' last nodes do.
ir::Node chosen(const std::string& condition, std::vector<ir::Node> then,
                std::vector<ir::Node> otherwise, const std::string& result) {
  ir::Node node = node_with("If", {condition}, result);
  const auto add = [&](std::string_view name, std::vector<ir::Node> nodes) {
    ir::Graph graph;
    graph.name = name;
    graph.outputs.emplace_back().name = nodes.back().outputs[0];
    graph.nodes = std::move(nodes);
    node.attributes.push_back(ops::graph_attribute(std::string(name), std::move(graph)));
  };
  add("then_branch", std::move(then));
  add("else_branch", std::move(otherwise));
  return node;
}

ir::Attribute type_attribute(const ir::ValueType& type) {
  ir::Attribute attribute;
  attribute.name = "type", attribute.kind = ir::AttributeKind::type_proto;
  attribute.tp = std::make_shared<const ir::TypeProto>(ir::to_proto(type));
  return attribute;
}

// Sizes differ from value to value.
ir::ValueType without_sizes(ir::ValueType type) {
  type.shape.reset();
  if (type.nested) type.nested = std::make_shared<const ir::ValueType>(without_sizes(*type.nested));
  return type;
}

}  // namespace

ir::ValueType flow_type(const ir::ValueType& type) {
  if (type.kind != Kind::optional || !type.nested) return type;
  return holds_sequence(type) ? *type.nested : ir::ValueType::sequence_of(*type.nested);
}

std::vector<ir::Node> listed_optional(const std::string& value, const ir::ValueType& type,
                                      const std::string& list, const std::string& present,
                                      const GradientServices& services) {
  NodeWriter all(services), held(services), none(services);
  all.add_to({present}, "OptionalHasElement", {value});
  const std::string element = held.add("OptionalGetElement", {value});
  if (!holds_sequence(type)) held.add("SequenceConstruct", {element});
  none.add("SequenceEmpty", {},
           {int_attribute("dtype", static_cast<int64_t>(flow_type(type).nested->element))});
  all.append({chosen(present, held.take(), none.take(), list)});
  return all.take();
}

std::vector<ir::Node> optional_of_list(const std::string& list, const std::string& present,
                                       const ir::ValueType& type, const std::string& value,
                                       const GradientServices& services) {
  NodeWriter held(services), none(services);
  held.add("Optional", {holds_sequence(type) ? list : first_of(held, list)});
  none.add("Optional", {}, {type_attribute(without_sizes(*type.nested))});
  return {chosen(present, held.take(), none.take(), value)};
}

void optional_gradient(const GradientCall& call, GradientEmitter& e) {
  call.of_inputs[0] = e.flow_kind(call.node.inputs[0]) == Kind::sequence
                          ? e.emit("Identity", {flow(call)})
                          : item_of(e, flow(call), 0);
}

void optional_get_element_gradient(const GradientCall& call, GradientEmitter& e) {
  const infer::ValueFacts* known = e.services().known(call.node.inputs[0]);
  const bool lists =
      known != nullptr && known->type.kind == Kind::optional && !holds_sequence(known->type);
  call.of_inputs[0] = e.emit(lists ? "SequenceConstruct" : "Identity", {flow(call)});
}

}  // namespace sardonyx::autodiff
