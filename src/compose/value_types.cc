#include "compose/value_types.h"

#include "infer/infer.h"
#include "ir/tensor.h"
#include "lower/lower.h"

namespace sardonyx::compose {
namespace {

using Types = std::unordered_map<std::string, ir::TypeProto>;

ir::TypeProto type_of(const ir::TensorProto& tensor) {
  ir::TypeProto type;
  type.kind = ir::TypeProto::Kind::tensor;
  type.elem_type = tensor.data_type;
  type.shape.emplace();
  for (const int64_t dim : tensor.dims) type.shape->dims.emplace_back().value = dim;
  return type;
}

void add_inferred(const ir::Model& model, Types& types) {
  const ir::Graph graph = lower::lower(model);
  ir::SymbolTable symbols;
  infer::InferenceContext findings;
  findings.symbols = &symbols;
  findings.problem = [](const ir::Node&, const Error&) {};
  infer::Scope scope;
  infer::enter(graph, scope, findings);
  infer::infer_graph(graph, scope, findings);
  for (const ir::Node& node : graph.nodes) {
    for (const std::string& name : node.outputs) {
      const infer::ValueFacts* known = name.empty() ? nullptr : scope.find(name);
      if (known && known->type.is_known()) types.try_emplace(name, ir::to_proto(known->type));
    }
  }
}

}  // namespace

Types value_types(const ir::Model& model) {
  Types types;
  if (!model.graph) return types;
  for (const auto* infos :
       {&model.graph->inputs, &model.graph->outputs, &model.graph->value_info}) {
    for (const ir::ValueInfo& info : *infos) {
      if (info.type && info.type->kind != ir::TypeProto::Kind::none)
        types.try_emplace(info.name, *info.type);
    }
  }
  for (const ir::TensorProto& tensor : model.graph->initializers)
    types.try_emplace(tensor.name, type_of(tensor));
  try {
    add_inferred(model, types);
  } catch (const Error&) {  // a model that cannot run may still be cut
  }
  return types;
}

}  // namespace sardonyx::compose
