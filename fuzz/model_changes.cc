#include "model_changes.h"

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "tools/numbers.h"

namespace sardonyx::fuzzing {
namespace {

constexpr int64_t largest_tensor = 1 << 16;

ir::TypeProto nested(ir::TypeProto::Kind kind, ir::TypeProto inner) {
  ir::TypeProto type;
  type.kind = kind;
  type.nested = std::make_shared<const ir::TypeProto>(std::move(inner));
  return type;
}

void retype(ir::ValueInfo& info, Random& random) {
  using Kind = ir::TypeProto::Kind;
  if (!info.type) return;
  switch (below(random, 6)) {
    case 0: info.type.reset(); break;
    case 1: info.type->elem_type = static_cast<int32_t>(below(random, 30)); break;
    case 2: info.type->shape.reset(); break;
    case 3: info.type = nested(Kind::sequence, *info.type); break;
    case 4: info.type = nested(Kind::optional, *info.type); break;
    default: info.name.clear(); break;
  }
}

// A number near to the one that is there (beyond a limit it wraps), or one at a limit.
int64_t another(int64_t number, Random& random) {
  constexpr int64_t extremes[] = {
      -1, 0, 1, 1 << 20, int64_t{1} << 31, int64_t{1} << 40, INT64_MAX, INT64_MIN};
  if (below(random, 3) == 0) return extremes[below(random, std::size(extremes))];
  return static_cast<int64_t>(static_cast<uint64_t>(number) + below(random, 7) - 3);
}

void change_attribute(ir::Node& node, Random& random) {
  if (node.attributes.empty()) return;
  ir::Attribute& attribute = node.attributes[below(random, node.attributes.size())];
  if (attribute.i) attribute.i = another(*attribute.i, random);
  if (attribute.f) attribute.f = static_cast<float>(below(random, 9)) / 2 - 2;
  if (!attribute.ints.empty()) {
    int64_t& one = attribute.ints[below(random, attribute.ints.size())];
    one = another(one, random);
    if (below(random, 3) == 0) attribute.ints.resize(below(random, attribute.ints.size() + 3));
  }
  if (!attribute.floats.empty() && below(random, 2) == 0)
    attribute.floats.resize(below(random, attribute.floats.size() + 3));
  if (attribute.strings.size() > 1)
    attribute.strings[0] = attribute.strings[below(random, attribute.strings.size())];
}

void change_node(ir::Graph& graph, ir::Node& node, Random& random) {
  switch (below(random, 10)) {
    case 0:
      if (!node.inputs.empty()) node.inputs[below(random, node.inputs.size())].clear();
      break;
    case 1:
      if (!node.outputs.empty()) node.outputs[below(random, node.outputs.size())].clear();
      break;
    case 2: node.inputs.resize(below(random, node.inputs.size() + 3)); break;
    case 3: node.outputs.resize(below(random, node.outputs.size() + 3)); break;
    case 4:
      if (!node.inputs.empty())
        node.inputs[below(random, node.inputs.size())] = any_value(graph, random);
      break;
    case 5:
      if (!node.attributes.empty())
        node.attributes.erase(node.attributes.begin() +
                              static_cast<std::ptrdiff_t>(below(random, node.attributes.size())));
      break;
    case 6: node.op_type = graph.nodes[below(random, graph.nodes.size())].op_type; break;
    case 7: change_attribute(node, random); break;
    case 8: std::swap(node, graph.nodes[below(random, graph.nodes.size())]); break;
    default: {
      ir::Node copy = node;
      for (std::string& name : copy.outputs) name += "_again";
      graph.nodes.push_back(std::move(copy));
      break;
    }
  }
}

}  // namespace

std::string any_value(const ir::Graph& graph, Random& random) {
  std::vector<std::string> names{""};
  for (const ir::ValueInfo& input : graph.inputs) names.push_back(input.name);
  for (const ir::TensorProto& tensor : graph.initializers) names.push_back(tensor.name);
  for (const ir::Node& node : graph.nodes) {
    names.insert(names.end(), node.outputs.begin(), node.outputs.end());
  }
  return names[below(random, names.size())];
}

void change_graph(ir::Graph& graph, Random& random) {
  for (size_t count = below(random, 4); count > 0; --count) {
    const size_t what = below(random, 8);
    if (what == 0 && !graph.inputs.empty())
      retype(graph.inputs[below(random, graph.inputs.size())], random);
    else if (what == 1 && !graph.outputs.empty())
      retype(graph.outputs[below(random, graph.outputs.size())], random);
    else if (what == 2)
      graph.name.clear();
    else if (!graph.nodes.empty())
      change_node(graph, graph.nodes[below(random, graph.nodes.size())], random);
  }
}

// Numbers around zero, in every type; its bits are no promise of a fresh tensor.
Tensor small_tensor(ElementType type, const Shape& shape, Random& random) {
  Tensor doubles(ElementType::float64, shape);
  for (double& element : doubles.mutable_elements<double>())
    element = static_cast<double>(below(random, 9)) / 2 - (below(random, 4) == 0 ? 2 : 0);
  if (type == ElementType::string) {
    Tensor texts(type, shape);
    for (std::string& text : texts.mutable_elements<std::string>())
      text.assign(below(random, 4), static_cast<char>('a' + below(random, 3)));
    return texts;
  }
  return converted(doubles, type);
}

// A value for an input of whatever kind; now and then of another one than the model takes.
Value value_for(const ValueDescription& input, Random& random) {
  Shape shape;
  int64_t size = 1;
  if (input.shape) {
    for (const auto& dimension : *input.shape) {
      const int64_t wanted = dimension.size.value_or(static_cast<int64_t>(below(random, 4)));
      shape.push_back(wanted < 0 || wanted > largest_tensor ? 1 : wanted);
      size *= shape.back();
      if (size > largest_tensor) shape.back() = 1, size = 1;
    }
  }
  if (size > largest_tensor) shape.assign(shape.size(), 1);
  const bool is_type = input.element_type != ElementType::undefined && is_known(input.element_type);
  const Tensor tensor =
      small_tensor(is_type ? input.element_type : ElementType::float32, shape, random);
  if (below(random, 24) == 0) return Sequence();
  if (input.kind == Value::Kind::optional || below(random, 24) == 0) return Optional();
  if (input.kind != Value::Kind::sequence) return tensor;
  Sequence sequence;
  for (size_t i = below(random, 3); i > 0; --i) sequence.items.emplace_back(tensor);
  return sequence;
}

}  // namespace sardonyx::fuzzing
