// What is known of a graph's initializers and inputs before its nodes are walked over.
#include "base/fail.h"
#include "infer/declared.h"
#include "infer/infer.h"
#include "infer/unknowns.h"
#include "ir/tensor.h"
#include "ops/shared/file_constants.h"

namespace sardonyx::infer {
namespace {

// Of external data that was not read, the type is known.
ValueFacts known_of(const ir::TensorProto& tensor, bool symbolic_values) {
  if (symbolic_values) {
    if (std::optional<ValueFacts> known = ops::known_of_file(tensor)) return std::move(*known);
  }
  if (!tensor.is_external()) return ValueFacts::of(ir::to_tensor(tensor));
  return ValueFacts::of(ops::declared_type(tensor));
}

ValueFacts known_of(const ir::SparseTensorProto& sparse) {
  ir::Dims shape;
  for (const int64_t dim : sparse.dims) {
    if (dim < 0) {
      fail_at(fmt::format("sparse tensor '{}'", sparse.values.name), ErrorCode::invalid_model,
              "dims must not be negative; found {}", dim);
    }
    shape.push_back(ir::Dim(dim));
  }
  return ValueFacts::of(ops::ValueType::tensor(sparse.values.element_type(), std::move(shape)));
}

}  // namespace

void enter_initializers(const ir::Graph& graph, Scope& scope, const InferenceContext& inference) {
  for (const ir::TensorProto& initializer : graph.initializers)
    scope.set(initializer.name, known_of(initializer, inference.symbolic_values));
  for (const ir::SparseTensorProto& sparse : graph.sparse_initializers)
    scope.set(sparse.values.name, known_of(sparse));
}

void enter(const ir::Graph& graph, Scope& scope, const InferenceContext& inference,
           std::span<const ValueFacts> inputs) {
  // A model's own inputs, not what a node hands to its subgraph.
  const bool are_own = inference.symbolic_values && inference.constraints != nullptr;
  enter_initializers(graph, scope, inference);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::ValueInfo& input = graph.inputs[i];
    ValueFacts known;
    if (i < inputs.size()) known = inputs[i];
    if (!known.type.is_known() && input.type) {
      known = ValueFacts::of(ir::value_type(*input.type, *inference.symbols));
    } else {
      hold_input_against(input, known.type, "it is given", graph.name, inference);
    }
    if (const ValueFacts* initializer = scope.find_here(input.name);
        initializer && i >= inputs.size()) {
      if (!known.type.is_known()) known = ValueFacts::of(initializer->type);
    }
    const int first = inference.symbols->size();
    if (inference.symbolic_values) name_elements(known, *inference.symbols);
    for (int id = first; inference.unknowns && id < inference.symbols->size(); ++id) {
      const std::string element = known.type.rank() == 0
                                      ? fmt::format("value of '{}'", input.name)
                                      : fmt::format("element {} of '{}'", id - first, input.name);
      const std::string_view maker = are_own ? "" : "the graph's input";
      inference.unknowns->emplace(
          id, std::make_shared<const Unknown>(std::string(maker), shortened(element)));
    }
    scope.set(input.name, std::move(known));
  }
}

}  // namespace sardonyx::infer
