#include "train/graphs.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/dimension.h"
#include "ir/walk.h"

namespace sardonyx::train {
namespace {

using Names = std::unordered_set<std::string>;

// What the main graph of a method's model shares with the training model.
ir::Model frame_of(const ir::Model& model) {
  ir::Model frame;
  frame.ir_version = model.ir_version;
  frame.opset_imports = model.opset_imports;
  frame.functions = model.functions;
  frame.path = model.path;
  frame.folder = model.folder;
  return frame;
}

void add_attribute_names(const ir::Node& node, Names& to) {
  // Gradient names what it derives, and for what, in attributes.
  if (node.op_type != "Gradient") return;
  for (const ir::Attribute& attribute : node.attributes) {
    if (attribute.s) to.insert(*attribute.s);
    to.insert(attribute.strings.begin(), attribute.strings.end());
  }
}

// All names that a node reads, and those that graphs inside it may.
Names read_by(const ir::Node& node) {
  Names names(node.inputs.begin(), node.inputs.end());
  add_attribute_names(node, names);
  ir::for_each_subgraph(node, [&](const ir::Graph& graph, const ir::Attribute&, int) {
    const auto add = [&](const ir::WalkPlace&, const ir::Node& inner, size_t) {
      names.insert(inner.inputs.begin(), inner.inputs.end());
      add_attribute_names(inner, names);
    };
    const auto add_outputs = [&](const ir::WalkPlace& place) {
      if (place.graph == nullptr) return true;
      for (const ir::ValueInfo& output : place.graph->outputs) names.insert(output.name);
      return true;
    };
    ir::walk(graph, {.enter = add_outputs, .node = add});
  });
  names.erase("");
  return names;
}

// The names that the values of these names need, themselves among them; `needed` marks the nodes.
Names reach(const ir::Graph& graph, const std::vector<std::string>& from,
            std::vector<char>& needed) {
  std::unordered_map<std::string_view, size_t> makers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& output : graph.nodes[i].outputs) makers.emplace(output, i);
  }
  needed.assign(graph.nodes.size(), 0);
  Names seen(from.begin(), from.end());
  std::vector<std::string> waiting = from;
  while (!waiting.empty()) {
    const std::string name = std::move(waiting.back());
    waiting.pop_back();
    const auto maker = makers.find(name);
    if (maker == makers.end() || needed[maker->second]) continue;
    needed[maker->second] = 1;
    for (const std::string& read : read_by(graph.nodes[maker->second])) {
      if (seen.insert(read).second) waiting.push_back(read);
    }
  }
  return seen;
}

// Leaves what the outputs do not need out.
void prune(ir::Graph& graph) {
  std::vector<std::string> outputs;
  for (const ir::ValueInfo& output : graph.outputs) outputs.push_back(output.name);
  std::vector<char> needed;
  const Names names = reach(graph, outputs, needed);
  std::vector<ir::Node> kept;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) kept.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(kept);
  const auto is_idle = [&](const auto& one) { return !names.contains(one.name); };
  std::erase_if(graph.inputs, is_idle);
  std::erase_if(graph.initializers, is_idle);
  std::erase_if(graph.sparse_initializers,
                [&](const ir::SparseTensorProto& one) { return !names.contains(one.values.name); });
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

ir::ValueInfo declared(const StateVariable& variable) {
  ir::ValueInfo info;
  info.name = variable.key;
  ir::TypeProto& type = info.type.emplace();
  type.kind = ir::TypeProto::Kind::tensor;
  type.elem_type = static_cast<int32_t>(variable.element);
  ir::TensorShape& shape = type.shape.emplace();
  for (const int64_t size : variable.shape) ir::set_number(shape.dims.emplace_back(), size);
  return info;
}

// State variables are no constants (TR-16): they become inputs. What is a constant needs no input
// of its name.
void take_states(ir::Graph& graph, const StateTable& table, int entry,
                 std::vector<size_t>& states) {
  Names names;
  std::vector<ir::TensorProto> constants;
  for (ir::TensorProto& tensor : graph.initializers) {
    names.insert(tensor.name);
    if (const auto index = table.find(tensor.name, entry)) {
      states.push_back(*index);
    } else {
      constants.push_back(std::move(tensor));
    }
  }
  for (const ir::SparseTensorProto& sparse : graph.sparse_initializers)
    names.insert(sparse.values.name);
  graph.initializers = std::move(constants);
  std::erase_if(graph.inputs,
                [&](const ir::ValueInfo& input) { return names.contains(input.name); });
  std::erase_if(graph.value_info,
                [&](const ir::ValueInfo& info) { return names.contains(info.name); });
  ir::name_open_sizes(graph);
  for (const size_t index : states) graph.inputs.push_back(declared(table.all()[index]));
}

// Leaves the outputs of these names, in their order.
void choose_outputs(ir::Graph& graph, const std::vector<std::string>& names) {
  std::vector<ir::ValueInfo> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(graph.outputs, name, &ir::ValueInfo::name);
    if (found != graph.outputs.end()) chosen.push_back(*found);
  }
  graph.outputs = std::move(chosen);
}

}  // namespace

std::vector<std::string> unique_names(const std::vector<ir::StringEntry>& bindings) {
  std::vector<std::string> names;
  Names seen;
  for (const ir::StringEntry& binding : bindings) {
    if (seen.insert(binding.value).second) names.push_back(binding.value);
  }
  return names;
}

MethodModel inference_model(const ir::Model& model, const StateTable& table) {
  MethodModel made{frame_of(model), {}};
  made.model.graph = model.graph;
  take_states(*made.model.graph, table, main_graph, made.states);
  return made;
}

MethodModel step_model(const ir::Model& model, const StateTable& table, size_t entry,
                       const std::vector<std::string>& outputs) {
  MethodModel made{frame_of(model), {}};
  ir::Graph& graph = made.model.graph.emplace(*model.graph);
  if (const auto& algorithm = model.training_info[entry].algorithm) {
    graph.name = algorithm->name;
    append(graph.inputs, algorithm->inputs);
    append(graph.initializers, algorithm->initializers);
    append(graph.outputs, algorithm->outputs);
    append(graph.nodes, algorithm->nodes);
    append(graph.value_info, algorithm->value_info);
    append(graph.sparse_initializers, algorithm->sparse_initializers);
  }
  choose_outputs(graph, outputs);
  prune(graph);
  take_states(graph, table, static_cast<int>(entry), made.states);
  return made;
}

MethodModel initialization_model(const ir::Model& model, const StateTable& table, size_t entry,
                                 const std::vector<std::string>& outputs) {
  MethodModel made{frame_of(model), {}, true};
  const ir::TrainingInfo& info = model.training_info[entry];
  ir::Graph& graph = made.model.graph.emplace(*info.initialization);
  Names own;
  for (const ir::TensorProto& tensor : graph.initializers) own.insert(tensor.name);
  std::erase_if(graph.inputs, [&](const ir::ValueInfo& input) { return own.contains(input.name); });
  choose_outputs(graph, outputs);
  std::vector<char> needed;
  const Names names = reach(graph, outputs, needed);
  // Its own initializers are constants, whatever state has their name.
  for (const ir::Graph* around : {&*model.graph, info.algorithm ? &*info.algorithm : nullptr}) {
    if (around == nullptr) continue;
    for (const ir::TensorProto& tensor : around->initializers) {
      if (!names.contains(tensor.name) || !own.insert(tensor.name).second) continue;
      if (const auto index = table.find(tensor.name, static_cast<int>(entry))) {
        made.states.push_back(*index);
        graph.inputs.push_back(declared(table.all()[*index]));
      } else {
        graph.initializers.push_back(tensor);
      }
    }
  }
  return made;
}

}  // namespace sardonyx::train
