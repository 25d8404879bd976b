#include "train/master_weights.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ir/tensor.h"
#include "ir/walk.h"
#include "kernels/convert/cast.h"
#include "ops/upgrade_context.h"

namespace sardonyx::train {
namespace {

constexpr std::string_view suffix = "_master";

Tensor as(ElementType type, const ir::TensorProto& proto) {
  const Tensor from = ir::aligned(ir::to_tensor(proto));
  Tensor to(type, from.shape());
  if (from.size() > 0)
    kernels::cast_row(from.element_type(), type, from.data(), to.mutable_data(), from.size());
  return to;
}

std::unordered_map<std::string, size_t> places_of(const std::vector<ir::TensorProto>& tensors) {
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < tensors.size(); ++i) places.emplace(tensors[i].name, i);
  return places;
}

bool is_half(int64_t type) {
  return type == static_cast<int64_t>(ElementType::float16) ||
         type == static_cast<int64_t>(ElementType::bfloat16);
}

}  // namespace

void add_master_weights(ir::Graph& graph, std::vector<Parameter>& parameters, ElementType half,
                        NamePool& names) {
  const auto places = places_of(graph.initializers);
  std::vector<ir::Node> casts;
  for (Parameter& one : parameters) {
    ir::TensorProto& tensor = graph.initializers[places.at(one.name)];
    const std::string master = names.make(one.name + std::string(suffix));
    tensor = ir::to_proto(as(ElementType::float32, tensor), master);
    ir::Node& cast = casts.emplace_back();
    cast.op_type = "Cast";
    cast.inputs = {master}, cast.outputs = {one.name};
    cast.attributes = {ops::int_attribute("to", static_cast<int64_t>(half))};
    one.name = master;
  }
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(casts.begin()),
                     std::make_move_iterator(casts.end()));
}

void narrow_master_weights(ir::Graph& graph) {
  const auto places = places_of(graph.initializers);
  std::unordered_map<std::string, int> reads;
  const auto count = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
    for (const std::string& input : node.inputs) ++reads[input];
  };
  ir::walk(graph, {.enter = {}, .leave = {}, .node = count});
  for (const ir::ValueInfo& output : graph.outputs) ++reads[output.name];
  std::erase_if(graph.nodes, [&](const ir::Node& node) {
    if (node.op_type != "Cast" || node.inputs.size() != 1 || node.outputs.size() != 1) return false;
    const auto place = places.find(node.inputs[0]);
    const ir::Attribute* to = node.find("to");
    if (place == places.end() || to == nullptr || !is_half(to->i.value_or(0)) ||
        reads[node.inputs[0]] != 1 ||
        !node.inputs[0].starts_with(node.outputs[0] + std::string(suffix)))
      return false;
    ir::TensorProto& tensor = graph.initializers[place->second];
    if (tensor.element_type() != ElementType::float32) return false;
    tensor = ir::to_proto(as(static_cast<ElementType>(*to->i), tensor), node.outputs[0]);
    return true;
  });
}

}  // namespace sardonyx::train
