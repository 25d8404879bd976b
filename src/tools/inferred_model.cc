#include "tools/inferred_model.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/fail.h"
#include "base/memory_account.h"
#include "base/name_map.h"
#include "infer/declared.h"
#include "ir/dimension.h"
#include "ir/origin.h"
#include "lower/lower.h"
#include "ops/objections.h"
#include "ops/shared/held_count.h"
#include "sardonyx/inputs.h"
#include "wire/external.h"
#include "wire/footprint.h"

namespace sardonyx {
namespace {

using State = InferredValue::State;

constexpr size_t max_problems = 1000;

void fix(std::optional<ir::TypeProto>& type, const InferOptions& options) {
  if (!type || !type->shape) return;
  for (ir::Dimension& dim : type->shape->dims) {
    const auto found = options.sizes.find(ir::declared_name(dim));
    if (found == options.sizes.end()) continue;
    ir::set_number(dim, found->second);
  }
}

// What inference reads of the main graph besides its nodes, with the given sizes put in.
ir::Graph prepared(const ir::Graph& of, std::vector<ir::ValueInfo> value_info,
                   const InferOptions& options, bool keeps_all) {
  ir::Graph graph;
  if (keeps_all) {
    graph = ir::interface_of(of);
  } else {
    graph.name = of.name;
    graph.inputs = of.inputs;
    graph.outputs = of.outputs;
    graph.value_info = std::move(value_info);
    graph.sparse_initializers = of.sparse_initializers;
    std::ranges::copy_if(of.initializers, std::back_inserter(graph.initializers),
                         &ir::TensorProto::is_external);
  }
  NameMap<bool> defaults;
  defaults.reserve(of.initializers.size());
  for (const ir::TensorProto& tensor : of.initializers) defaults.emplace(tensor.name, true);
  ir::name_open_sizes(graph);
  if (!options.sizes.empty()) {
    std::vector<std::string> names = ir::size_names(graph.inputs);
    for (const auto* list : {&graph.outputs, &graph.value_info}) {
      for (std::string& name : ir::size_names(*list)) names.push_back(std::move(name));
    }
    refuse_unknown_sizes(options.sizes, names);
  }
  std::erase_if(graph.inputs,
                [&](const ir::ValueInfo& input) { return defaults.contains(input.name); });
  if (options.sizes.empty()) return graph;
  for (auto* list : {&graph.inputs, &graph.outputs, &graph.value_info}) {
    for (ir::ValueInfo& info : *list) fix(info.type, options);
  }
  return graph;
}

// Inputs that have an initializer are what that is; their declarations are held against it.
void check_defaults(const ir::Graph& graph, const infer::InferenceContext& findings) {
  NameMap<const ir::TensorProto*> defaults;
  defaults.reserve(graph.initializers.size());
  for (const ir::TensorProto& tensor : graph.initializers) defaults.emplace(tensor.name, &tensor);
  for (const ir::ValueInfo& input : graph.inputs) {
    const auto* found = defaults.find(input.name);
    if (found == nullptr) continue;
    const auto& dims = (*found)->dims;
    const auto type = ir::ValueType::tensor((*found)->element_type(), {dims.begin(), dims.end()});
    infer::hold_input_against(input, type, "its initializer is", "", findings);
  }
}

// Small integer tensors may be shapes: they are read where their file is there.
void read_small_tensors(ir::Graph& graph, const std::string& folder) {
  constexpr int64_t most = 1024;
  wire::ExternalData external(folder);
  for (ir::TensorProto& tensor : graph.initializers) {
    if (!tensor.is_external()) continue;
    int64_t count = 1;
    for (const int64_t dim : tensor.dims) {
      if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) count = most + 1;
    }
    const ElementType type = tensor.element_type();
    if (count > most || (type != ElementType::int64 && type != ElementType::int32)) continue;
    try {
      tensor.raw_data = external.bytes_of(tensor, static_cast<uint64_t>(byte_size(type, count)));
    } catch (const Error&) {
      continue;  // its type is enough
    }
    tensor.has_raw_data = true;
    tensor.data_location = 0;
    tensor.external_data.clear();
  }
}

State worse(State a, State b) { return std::max(a, b); }

State state_of(const ir::ValueType& type, const InferredModel& model) {
  using Kind = ir::TypeProto::Kind;
  if (!type.is_known()) return State::unknown;
  if (type.kind == Kind::opaque) return State::known;
  if (type.kind == Kind::tensor || type.kind == Kind::sparse_tensor) {
    if (type.element == ElementType::undefined || !type.shape) return State::partial;
    State state = State::known;
    for (const ir::Dim& dim : *type.shape) state = worse(state, model.state(dim));
    return state;
  }
  return type.nested ? std::min(state_of(*type.nested, model), State::partial) : State::partial;
}

void collect_names(const ir::TypeProto& type, std::unordered_set<std::string_view>& names) {
  const ir::TypeProto* at = &type;
  for (; at != nullptr; at = at->nested.get()) {
    if (!at->shape) continue;
    for (const ir::Dimension& dim : at->shape->dims) {
      names.insert(ir::declared_name(dim));
    }
  }
}

void find_late_names(InferredModel& model) {
  std::unordered_set<std::string_view> given;
  for (const ir::ValueInfo& input : model.graph.inputs) {
    if (input.type) collect_names(*input.type, given);
    if (const infer::ValueFacts* known = model.scope.find_here(input.name);
        known && known->type.shape) {
      for (const ir::Dim& dim : *known->type.shape) {  // places that the model leaves open
        if (const ir::Symbol* symbol = dim.as_symbol()) given.insert(symbol->name);
      }
    }
  }
  const auto is_late = [&](const ir::Symbol& symbol) {
    return !symbol.decided_by_run && !given.contains(symbol.name) &&
           model.symbols.explanation(symbol.id) == nullptr;
  };
  for (int id = 0; id < model.symbols.size(); ++id) {
    const ir::Symbol& symbol = model.symbols[id];
    if (is_late(symbol)) model.late_names.emplace(id, -1);
    const ir::Dim* by = symbol.decided_by_run ? model.symbols.explanation(id) : nullptr;
    const ir::Symbol* name = by ? by->as_symbol() : nullptr;
    if (name == nullptr || !is_late(*name)) continue;
    int& stands_for = model.late_names.emplace(name->id, id).first->second;
    if (stands_for < 0 || (symbol.upper && !model.symbols[stands_for].upper)) stands_for = id;
  }
}

// `value_info`: of the main graph; `nodes`: null, or where its nodes come from.
void infer_model(const ir::Model& model, std::vector<ir::ValueInfo> value_info,
                 ir::NodeSource* nodes, const InferOptions& options, const ops::CustomTable& custom,
                 InferredModel& made) {
  made.graph = prepared(*model.graph, std::move(value_info), options, made.keep_nodes);
  charge_memory(wire::memory_of(made.graph), [] { return "the copy of the graph's interface"; });
  read_small_tensors(made.graph, model.folder);
  infer::InferenceContext findings;
  findings.symbols = &made.symbols;
  findings.constraints = &made.constraints;
  findings.symbolic_values = true;
  findings.unknowns = &made.unknowns;
  // A body that is inferred in several rounds reports the same each time.
  const auto is_new = [&](const InferFinding& found) {
    return std::none_of(made.problems.begin(), made.problems.end(), [&](const InferFinding& other) {
      return other.place == found.place && other.message == found.message;
    });
  };
  const auto report = [&](InferFinding found) {
    if (made.problems.size() < max_problems && is_new(found))
      made.problems.push_back(std::move(found));
  };
  findings.problem = [&](const ir::Node& node, const Error& error) {
    report(
        {true, error.location().empty() ? ir::identify(node) : error.location(), error.message()});
  };
  std::optional<ops::ObjectionListener> objections;
  if (options.strict) {
    objections.emplace([&](const ir::Node& node, const std::string& message) {
      report({true, ir::place_of(node), message});
    });
  }
  findings.disagreement = [&](infer::Disagreement found) {
    const auto same = [&](const infer::Disagreement& other) {
      return other.where == found.where && other.value == found.value &&
             other.inferred == found.inferred && other.node == found.node;
    };
    if (made.disagreements.size() < max_problems && std::ranges::none_of(made.disagreements, same))
      made.disagreements.push_back(std::move(found));
  };
  check_defaults(*model.graph, findings);
  if (!made.keep_nodes) {
    made.scope.reserve(model.graph->inputs.size() + model.graph->initializers.size() +
                       (nodes ? nodes->size() : model.graph->nodes.size()));
    infer::enter_initializers(*model.graph, made.scope, findings);
  }
  findings.inferred = [&](const ir::Graph& graph, std::unique_ptr<infer::Scope> scope) {
    made.subgraphs[&graph] = std::move(scope);
  };
  made.calls = lower::lower_and_infer(
      model, nodes, made.graph,
      {.keep_unknown = true, .keep_nodes = made.keep_nodes, .custom = &custom}, findings,
      made.scope);
  find_late_names(made);
}

}  // namespace

const ir::Symbol* InferredModel::decided_by(int id) const {
  const ir::Symbol& symbol = symbols[id];
  if (symbol.decided_by_run) {
    const auto found = unknowns.find(id);
    return found != unknowns.end() && found->second->node.empty() ? nullptr : &symbol;
  }
  const auto late = late_names.find(id);
  if (late == late_names.end()) return nullptr;
  return late->second < 0 ? &symbol : &symbols[late->second];
}

State InferredModel::state(const ir::Graph* in, std::string_view name,
                           const ir::ValueType& type) const {
  const infer::ValueFacts* known = type.is_tensor() ? nullptr : find_in(in, name);
  return known != nullptr && ops::is_surely_empty(*known) ? State::known : state_of(type, *this);
}

// An expression is bounded where all that the run decides of it is.
State InferredModel::state(const ir::Dim& dim) const {
  if (dim.is_constant()) return State::known;
  std::vector<int> ids;
  dim.collect_symbols(ids);
  State state = State::known;
  for (const int id : ids) {
    if (const ir::Symbol* decided = decided_by(id))
      state = worse(state, decided->upper ? State::bounded : State::open);
  }
  return state != State::known && dim.upper() ? State::bounded : state;
}

ir::ValueType InferredModel::resolved(ir::ValueType type) const {
  if (!symbols.has_learned()) return type;
  if (type.shape) {
    for (ir::Dim& dim : *type.shape) dim = symbols.resolved(dim);
  }
  if (type.nested) type.nested = std::make_shared<const ir::ValueType>(resolved(*type.nested));
  return type;
}

ir::ValueType InferredModel::type(const std::string& name) const { return type_in(nullptr, name); }

ir::ValueType InferredModel::type_in(const ir::Graph* graph, const std::string& name) const {
  const infer::ValueFacts* found = find_in(graph, name);
  return found == nullptr ? ir::ValueType() : resolved(found->type);
}

const infer::ValueFacts* InferredModel::find_in(const ir::Graph* graph,
                                                std::string_view name) const {
  if (graph == nullptr) return scope.find_here(name);
  const auto inside = subgraphs.find(graph);
  return inside == subgraphs.end() ? nullptr : inside->second->find_here(name);
}

void infer_model(const ir::Model& model, const InferOptions& options,
                 const ops::CustomTable& custom, InferredModel& made) {
  if (!model.graph) fail_at(model.path, ErrorCode::invalid_model, "the model has no graph");
  infer_model(model, model.graph->value_info, nullptr, options, custom, made);
}

void infer_model(ir::Model& model, ir::NodeSource& nodes, const InferOptions& options,
                 const ops::CustomTable& custom, InferredModel& made) {
  if (!model.graph) fail_at(model.path, ErrorCode::invalid_model, "the model has no graph");
  infer_model(model, std::move(model.graph->value_info), &nodes, options, custom, made);
}

}  // namespace sardonyx
