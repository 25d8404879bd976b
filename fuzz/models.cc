// A real model, changed where models have structure: inputs and outputs left out, values exchanged
// and retyped, nodes doubled, moved, renamed and cut to pieces. Each costs an error message:
// checked, run planned and plain, carried to every opset, and given to the tools (model_tools.h).
//
// The bytes are the model; what is changed in it follows from their sum, so that each mutation of
// the driver's changes something else, too.
#include <chrono>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model_tools.h"
#include "sardonyx/session.h"
#include "session/convert.h"
#include "session/numbers.h"
#include "target.h"
#include "wire/read.h"
#include "wire/write.h"

namespace {

using namespace sardonyx;
using fuzzing::any_value;
using fuzzing::below;
using fuzzing::Random;

constexpr int64_t largest_tensor = 1 << 16;
constexpr size_t newest_opset = 28;

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

void change_node(ir::Graph& graph, ir::Node& node, Random& random) {
  switch (below(random, 9)) {
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
    case 7: std::swap(node, graph.nodes[below(random, graph.nodes.size())]); break;
    default: {
      ir::Node copy = node;
      for (std::string& name : copy.outputs) name += "_again";
      graph.nodes.push_back(std::move(copy));
      break;
    }
  }
}

void change(ir::Model& model, Random& random) {
  if (below(random, 8) == 0) model.ir_version = static_cast<int64_t>(below(random, 1200));
  if (below(random, 8) == 0 && !model.opset_imports.empty())
    model.opset_imports[0].version = static_cast<int64_t>(below(random, 30));
  ir::Graph& graph = *model.graph;
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

void run(const Model& model, bool plain, Random random) {
  RunOptions limits;
  limits.memory_limit = 64 << 20;
  limits.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  SessionOptions options;
  options.threads = 1;
  options.reference = plain;
  try {
    const Session session(model, options);
    std::vector<NamedValue> inputs;
    for (const ValueDescription& input : session.inputs()) {
      if (!input.optional) inputs.emplace_back(input.name, value_for(input, random));
    }
    (void)session.run(inputs, limits);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) std::fprintf(stderr, "%s\n", error.what());
    require(error.code() != ErrorCode::internal, "no error is a defect of our own");
  }
}

Bytes bytes_of(const std::string& text) { return Bytes::copy_of(std::as_bytes(std::span(text))); }

// Carried to any opset, a model can be written, read and run.
void try_convert(const Model& model, Random& random) {
  ConvertOptions options;
  options.opset = static_cast<int64_t>(below(random, newest_opset + 2));
  options.assume_inference = below(random, 2) == 0;
  const std::string bytes = wire::write_model(convert(model, options));
  try {
    const Model converted(bytes.data(), bytes.size());
    run(converted, false, random);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    require(false, "a model that was converted can be read");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) sum = (sum ^ data[i]) * 0x100000001b3;
  Random random(sum);
  try {
    Bytes copy = Bytes::allocate(size);
    std::copy(data, data + size, reinterpret_cast<uint8_t*>(copy.mutable_data()));
    ir::Model changed = wire::read_model(copy);
    if (!changed.graph) return 0;
    change(changed, random);
    const std::string bytes = wire::write_model(changed);
    fuzzing::try_tools(wire::read_model(bytes_of(bytes)), random);
    const Model model(bytes.data(), bytes.size());
    run(model, false, random);
    run(model, true, random);
    try_convert(model, random);
  } catch (const Error&) {
  }
  return 0;
}
