// What is known of a graph's initializers and inputs before its nodes are walked over.
#include "base/fail.h"
#include "infer/declared.h"
#include "infer/infer.h"
#include "infer/unknowns.h"
#include "ir/tensor.h"
#include "ops/families/file_constants.h"

namespace sardonyx::infer {
namespace {

// Of external data that was not read, the type is known.
Known known_of(const ir::TensorProto& tensor, bool thorough) {
  if (thorough) {
    if (std::optional<Known> known = ops::known_of_file(tensor)) return std::move(*known);
  }
  if (!tensor.is_external()) return Known::of(ir::to_tensor(tensor));
  return Known::of(ops::declared_type(tensor));
}

Known known_of(const ir::SparseTensorProto& sparse) {
  ir::Dims shape;
  for (const int64_t dim : sparse.dims) {
    if (dim < 0) {
      fail_at(fmt::format("sparse tensor '{}'", sparse.values.name), ErrorCode::invalid_model,
              "dims must not be negative; found {}", dim);
    }
    shape.push_back(ir::Dim(dim));
  }
  return Known::of(ops::ValueType::tensor(sparse.values.element_type(), std::move(shape)));
}

// Sizes that the model leaves open in its inputs get the names of their places: "image.2". The
// caller decides them, not the run.
void name_open_sizes(const ir::ValueInfo& input, ops::ValueType& type, ir::SymbolTable& symbols) {
  if (!type.shape || !input.type || !input.type->shape) return;
  // Of two inputs with one name the last one's type counts.
  if (input.type->shape->dims.size() != type.shape->size()) return;
  for (size_t d = 0; d < type.shape->size(); ++d) {
    const ir::Dimension& declared = input.type->shape->dims[d];
    if ((declared.value && *declared.value >= 0) || (declared.param && !declared.param->empty()))
      continue;
    std::string name =
        fmt::format("{}.{}", std::string_view(input.name).substr(0, ir::SymbolTable::max_name), d);
    while (symbols.find(name) != nullptr) name += '_';
    (*type.shape)[d] = ir::Dim(symbols.named(name));
  }
}

}  // namespace

void enter_initializers(const ir::Graph& graph, Scope& scope, const Findings& findings) {
  for (const ir::TensorProto& initializer : graph.initializers)
    scope.set(initializer.name, known_of(initializer, findings.thorough));
  for (const ir::SparseTensorProto& sparse : graph.sparse_initializers)
    scope.set(sparse.values.name, known_of(sparse));
}

void enter(const ir::Graph& graph, Scope& scope, const Findings& findings,
           std::span<const Known> inputs) {
  // A model's own inputs, not what a node hands to its subgraph.
  const bool names_sizes = findings.thorough && findings.constraints != nullptr;
  enter_initializers(graph, scope, findings);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::ValueInfo& input = graph.inputs[i];
    Known known;
    if (i < inputs.size()) known = inputs[i];
    if (!known.type.is_known() && input.type) {
      known = Known::of(ir::value_type(*input.type, *findings.symbols));
    } else {
      hold_input_against(input, known.type, "it is given", graph.name, findings);
    }
    if (const Known* initializer = scope.find_here(input.name); initializer && i >= inputs.size()) {
      if (!known.type.is_known()) known = Known::of(initializer->type);
    }
    const int first = findings.symbols->size();
    if (findings.thorough) name_elements(known, *findings.symbols);
    for (int id = first; findings.unknowns && id < findings.symbols->size(); ++id) {
      const std::string element = known.type.rank() == 0
                                      ? fmt::format("value of '{}'", input.name)
                                      : fmt::format("element {} of '{}'", id - first, input.name);
      const std::string_view maker = names_sizes ? "" : "the graph's input";
      findings.unknowns->emplace(
          id, std::make_shared<const Unknown>(std::string(maker), shortened(element)));
    }
    scope.set(input.name, std::move(known));
  }
  if (!names_sizes) return;
  // After all names that inputs declare are known.
  for (const ir::ValueInfo& input : graph.inputs) {
    const Known* known = scope.find_here(input.name);
    if (known == nullptr || !known->type.is_tensor()) continue;
    Known named = *known;
    name_open_sizes(input, named.type, *findings.symbols);
    scope.set(input.name, std::move(named));
  }
}

}  // namespace sardonyx::infer
