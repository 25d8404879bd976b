#include "session/inferred_model.h"

#include <algorithm>

#include "base/fail.h"
#include "rewrite/lower.h"

namespace sardonyx {
namespace {

using State = InferredValue::State;

constexpr size_t most_problems = 1000;

void fix(std::optional<ir::TypeProto>& type, const InferOptions& options) {
  if (!type || !type->shape) return;
  for (ir::Dimension& dim : type->shape->dims) {
    const auto found = dim.param ? options.sizes.find(*dim.param) : options.sizes.end();
    if (found == options.sizes.end()) continue;
    dim.value = found->second;
    dim.param.reset();
  }
}

// The part of a model that inference reads, with the given sizes put in.
ir::Model prepared(const ir::Model& model, const InferOptions& options) {
  ir::Model copy;
  copy.ir_version = model.ir_version;
  copy.opset_imports = model.opset_imports;
  copy.functions = model.functions;
  copy.graph = model.graph;
  copy.path = model.path;
  ir::Graph& graph = *copy.graph;
  std::unordered_map<std::string_view, bool> defaults;
  for (const ir::TensorProto& tensor : graph.initializers) defaults[tensor.name] = true;
  std::erase_if(graph.inputs,
                [&](const ir::ValueInfo& input) { return defaults.contains(input.name); });
  for (auto* list : {&graph.inputs, &graph.outputs, &graph.value_info}) {
    for (ir::ValueInfo& info : *list) fix(info.type, options);
  }
  return copy;
}

// What a graph's values are, copied out of a scope that will not last.
std::unordered_map<std::string, ir::ValueType> types_of(const infer::Scope& scope) {
  std::unordered_map<std::string, ir::ValueType> types;
  scope.for_each_here(
      [&](const std::string& name, const infer::Known& known) { types[name] = known.type; });
  return types;
}

State worse(State a, State b) { return std::max(a, b); }

State state_of(const ir::Dim& dim) {
  if (!dim.depends_on_run()) return State::known;
  return dim.upper() || (dim.as_symbol() && dim.as_symbol()->upper) ? State::bounded : State::open;
}

}  // namespace

State state_of(const ir::ValueType& type) {
  using Kind = ir::TypeProto::Kind;
  if (!type.is_known()) return State::unknown;
  if (type.kind == Kind::opaque) return State::known;
  if (type.kind == Kind::tensor || type.kind == Kind::sparse_tensor) {
    if (type.element == ElementType::undefined || !type.shape) return State::partial;
    State state = State::known;
    for (const ir::Dim& dim : *type.shape) state = worse(state, state_of(dim));
    return state;
  }
  return type.nested ? std::min(state_of(*type.nested), State::partial) : State::partial;
}

ir::ValueType InferredModel::resolved(ir::ValueType type) const {
  if (type.shape) {
    for (ir::Dim& dim : *type.shape) dim = symbols.resolved(dim);
  }
  if (type.nested) type.nested = std::make_shared<const ir::ValueType>(resolved(*type.nested));
  return type;
}

ir::ValueType InferredModel::type(const std::string& name) const {
  const infer::Known* known = scope.find_here(name);
  return known ? resolved(known->type) : ir::ValueType();
}

void infer_model(const ir::Model& model, const InferOptions& options,
                 const ops::CustomTable& custom, InferredModel& made) {
  if (!model.graph) fail_at(model.path, ErrorCode::invalid_model, "the model has no graph");
  made.graph = rewrite::lower(prepared(model, options), {.keep_unknown = true, .custom = &custom});
  infer::Findings findings;
  findings.symbols = &made.symbols;
  findings.constraints = &made.constraints;
  findings.thorough = true;
  findings.unknowns = &made.unknowns;
  // A body that is inferred in several rounds reports the same each time.
  const auto is_new = [&](const InferFinding& found) {
    return std::none_of(made.problems.begin(), made.problems.end(), [&](const InferFinding& other) {
      return other.place == found.place && other.message == found.message;
    });
  };
  findings.problem = [&](const ir::Node& node, const Error& error) {
    InferFinding found{true, error.location().empty() ? ir::describe(node) : error.location(),
                       error.message()};
    if (made.problems.size() < most_problems && is_new(found))
      made.problems.push_back(std::move(found));
  };
  findings.disagreement = [&](infer::Disagreement found) {
    made.disagreements.push_back(std::move(found));
  };
  findings.inferred = [&](const ir::Graph& graph, const infer::Scope& scope) {
    made.subgraphs[&graph] = types_of(scope);
  };
  infer::enter(made.graph, made.scope, findings);
  infer::infer_graph(made.graph, made.scope, findings);
}

}  // namespace sardonyx
