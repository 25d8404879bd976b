#include "infer/infer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <forward_list>
#include <list>
#include <unordered_set>

#include "base/checked.h"
#include "base/fail.h"
#include "base/small_vector.h"
#include "infer/declared.h"
#include "infer/evaluations.h"
#include "ir/tensor.h"
#include "ops/custom.h"
#include "ops/families/fixed_point.h"

namespace sardonyx::infer {
namespace {

thread_local int64_t evaluated = 0;

// Whether a tensor is nothing but the bytes that its type and dims take.
bool is_plain(const ir::TensorProto& tensor) {
  const auto count = checked_count(tensor.dims);
  const bool has_others = tensor.segment || tensor.data_location != 0 ||
                          !tensor.float_data.empty() || !tensor.double_data.empty() ||
                          !tensor.int32_data.empty() || !tensor.int64_data.empty() ||
                          !tensor.uint64_data.empty() || !tensor.string_data.empty();
  return count && !has_others &&
         static_cast<uint64_t>(byte_size(tensor.element_type(), *count)) == tensor.raw_data.size();
}

// Weights, whose elements decide no shape: reading them would touch the file and, where they lie
// unaligned, copy them.
bool is_weight(const ir::TensorProto& tensor) {
  constexpr size_t surely = size_t{1} << 16, least = 4 * ops::max_known_elements;
  return tensor.has_raw_data && tensor.raw_data.size() > least &&
         is_floating(tensor.element_type()) &&
         (tensor.raw_data.size() >= surely || is_plain(tensor));
}

// Of the integers that shapes are made of, as they lie in the file.
bool is_small_list(const ir::TensorProto& tensor) {
  return tensor.element_type() == ElementType::int64 && tensor.has_raw_data &&
         tensor.dims.size() == 1 && tensor.dims[0] <= ops::max_known_elements && is_plain(tensor);
}

Known known_of_small_list(const ir::TensorProto& tensor) {
  std::array<int64_t, ops::max_known_elements> list;
  if (!tensor.raw_data.empty())
    std::memcpy(list.data(), tensor.raw_data.data(), tensor.raw_data.size());
  return Known::of(std::span(list).first(static_cast<size_t>(tensor.dims[0])));
}

// Of external data that was not read, the type is known.
Known known_of(const ir::TensorProto& tensor, bool thorough) {
  if (thorough && is_small_list(tensor)) return known_of_small_list(tensor);
  if (!tensor.is_external() && !(thorough && is_weight(tensor)))
    return Known::of(ir::to_tensor(tensor));
  ir::Dims shape;
  shape.reserve(tensor.dims.size());
  for (const int64_t dim : tensor.dims) {
    if (dim < 0) {
      fail_at(fmt::format("tensor '{}'", tensor.name), ErrorCode::invalid_model,
              "dims must not be negative; found {}", dim);
    }
    shape.push_back(ir::Dim(dim));
  }
  return Known::of(ops::ValueType::tensor(tensor.element_type(), std::move(shape)));
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

// The elements of a small integer tensor that nothing is known of get a name each.
void name_elements(Known& value, ir::SymbolTable& symbols) {
  constexpr int64_t most = 16;
  if (value.elements || !value.type.is_tensor()) return;
  if (value.type.element != ElementType::int64 && value.type.element != ElementType::int32) return;
  const auto shape = value.type.concrete_shape();
  const auto count = shape ? checked_count(*shape) : std::nullopt;
  if (!count || *count > most) return;
  ir::Dims elements;
  elements.reserve(static_cast<size_t>(*count));
  for (int64_t i = 0; i < *count; ++i) elements.push_back(ir::Dim(symbols.unknown_value()));
  value.elements = std::make_shared<const ir::Dims>(std::move(elements));
}

std::string any_of(std::span<const schema::TypeId> types) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) {
    text += i == 0 ? "" : i + 1 < types.size() ? ", " : " or ";
    text += schema::to_string(types[i]);
  }
  return text;
}

// Types nest through what graphs put into each other: a chain of nodes would make texts and copies
// of types that grow with its square.
bool nests_too_deep(const ops::ValueType& type) {
  constexpr int most = 3;  // the standard's: an optional of a sequence, a sequence of maps
  int depth = 0;
  for (const ops::ValueType* at = type.nested.get(); at != nullptr; at = at->nested.get()) ++depth;
  return depth > most;
}

// Kernels read their inputs as the signature's types say: no other may reach them.
void check_input_types(const ops::InferContext& context, const schema::Signature& signature) {
  // By constraint: the first input that it holds for, counted from 1.
  std::array<int, 16> few{};
  std::vector<int> many;
  std::span<int> first = few;
  if (signature.constraints.size() > few.size()) {
    many.resize(signature.constraints.size());
    first = many;
  }
  for (int i = 0; i < context.input_count(); ++i) {
    const ops::ValueType& given = context.type(i);
    if (!given.is_known()) continue;
    if (given.nested != nullptr && nests_too_deep(given))
      context.fail("{} nests deeper than any type of the standard", context.input_name(i));
    const schema::Formal* formal = signature.input(static_cast<size_t>(i));
    const schema::TypeId type =
        given.is_tensor() ? schema::TypeId::tensor(given.element) : schema::type_id(given);
    if (formal == nullptr || !type.valid() || type.element() == ElementType::undefined) continue;
    if (!schema::allows(*formal, type)) {
      context.fail("{} ('{}') must be {}; it is {}", context.input_name(i), formal->name,
                   any_of(formal->types), schema::to_string(type));
    }
    if (formal->constraint < 0 || !formal->homogeneous) continue;
    int& with = first[static_cast<size_t>(formal->constraint)];
    if (with == 0) {
      with = i + 1;
    } else if (const schema::TypeId other = schema::type_id(context.type(with - 1));
               other != type) {
      context.fail("{} and {} must have one type; they have {} and {}",
                   context.input_name(with - 1), context.input_name(i), schema::to_string(other),
                   schema::to_string(type));
    }
  }
}

}  // namespace

const Known* Scope::find_here(const HashedName& name) const {
  Value* const* found = values_.find(name);
  return found == nullptr ? nullptr : &(*found)->known;
}

const Known* Scope::find(const HashedName& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    if (const Known* known = scope->find_here(name)) return known;
  }
  return nullptr;
}

void Scope::reserve(size_t count) {
  values_.reserve(values_.size() + count);
  const size_t room = blocks_.empty() ? 0 : blocks_.back().capacity() - blocks_.back().size();
  if (room < count) blocks_.emplace_back().reserve(count);
}

Known& Scope::set(const HashedName& name, Known&& known) {
  constexpr size_t least = 4, most = 1024;
  if (blocks_.empty() || blocks_.back().size() == blocks_.back().capacity())
    blocks_.emplace_back().reserve(std::clamp(values_.size(), least, most));
  std::vector<Value>& block = blocks_.back();
  Value& added = block.emplace_back(name.text, std::move(known));
  const auto [place, is_new] = values_.emplace({added.name, name.hash}, &added);
  if (is_new) return added.known;
  Known& kept = (*place)->known;
  kept = std::move(added.known);
  block.pop_back();
  return kept;
}

Binding bind_node(const ir::Node& node) {
  if (node.custom) return {ops::custom_signature(node), &ops::custom_operator()};
  const ops::Operator* op = ops::find_operator(node.domain, node.op_type);
  const schema::Signature* signature = schema::newest(node.domain, node.op_type);
  if (op != nullptr) return {signature, op};
  std::string advice;
  if (signature != nullptr) {
    advice =
        "either the model does not import its domain, or no kernel and no function body of it is "
        "known here";
  } else if (schema::latest_opset(node.domain) > 0 && !schema::is_standard_domain(node.domain)) {
    advice = fmt::format("it is not among the operators of {} that Sardonyx knows", node.domain);
  } else if (!schema::is_standard_domain(node.domain)) {
    advice = fmt::format(
        "domain '{}' is neither of the standard nor of a function in the model; a library with the "
        "operator can be named when the model is loaded (--library FILE)",
        node.domain);
  } else {
    const auto close = schema::closest_name(node.domain, node.op_type);
    advice = close.empty() ? "no operator of the standard has this name"
                           : fmt::format("did you mean {}?", close);
  }
  const std::string place = node.origin.empty()
                                ? ir::describe(node)
                                : fmt::format("{} ({})", ir::describe(node), node.origin);
  fail_at(place, ErrorCode::unsupported, "operator {} cannot run: {}", node.op_type, advice);
}

namespace {

// Inputs with what has been learned of their sizes put in its place.
class Resolved {
 public:
  Resolved(std::span<const Known* const> inputs, const ir::SymbolTable& symbols)
      : symbols_(symbols), pointers_(inputs) {
    for (const Known*& input : pointers_) {
      if (input != nullptr) input = resolved(*input);
    }
  }
  std::span<const Known* const> inputs() const { return pointers_; }

 private:
  const Known* resolved(const Known& known) {
    ir::Dims shape, elements;
    const bool other_shape = known.type.shape && differ(*known.type.shape, shape);
    const bool other_elements =
        known.elements && !known.constant && differ(*known.elements, elements);
    if (!other_shape && !other_elements) return &known;
    Known& copy = copies_.emplace_front(known);
    if (other_shape) copy.type.shape = std::move(shape);
    if (other_elements) copy.elements = std::make_shared<const ir::Dims>(std::move(elements));
    return &copy;
  }

  // Nearly all are as they were.
  bool differ(const ir::Dims& dims, ir::Dims& resolved) const {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i].is_constant()) continue;
      ir::Dim now = symbols_.resolved(dims[i]);
      if (now == dims[i]) continue;
      if (resolved.empty()) resolved = dims;
      resolved[i] = std::move(now);
    }
    return !resolved.empty();
  }

  const ir::SymbolTable& symbols_;
  SmallVector<const Known*, 8> pointers_;
  std::forward_list<Known> copies_;
};

std::string reason_for(const ops::InferContext& context) {
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    const ops::ValueType& type = context.type(i);
    if (!type.is_known() || (type.is_tensor() && !type.shape))
      return fmt::format("{} of {} is unknown", type.is_known() ? "the rank" : "the type",
                         context.input_name(i));
  }
  for (int i = 1; i < context.input_count(); ++i) {
    if (!context.has_input(i) || context.constant(i) != nullptr) continue;
    const auto* elements = context.elements(i);
    const bool open =
        elements == nullptr || std::any_of(elements->begin(), elements->end(),
                                           [](const ir::Dim& e) { return e.depends_on_run(); });
    if (open && is_integer(context.element(i)))
      return fmt::format("the elements of {} are known only to the run", context.input_name(i));
  }
  return "its data decide";
}

// It is said of each unknown again.
std::string shortened(std::string text) {
  constexpr size_t most = 1024;
  if (text.size() > most) text.replace(most, std::string::npos, "...");
  return text;
}

void note_unknowns(const ops::InferContext& context, int first, const Findings& findings) {
  if (findings.unknowns == nullptr || findings.symbols->size() == first) return;
  const auto unknown =
      std::make_shared<const Unknown>(shortened(context.place()), shortened(reason_for(context)));
  for (int id = first; id < findings.symbols->size(); ++id) findings.unknowns->emplace(id, unknown);
}

// What most values have, and what is not counted.
constexpr size_t usual_rank = 8, usual_elements = 16;

bool is_large(const Known& value) {
  return (value.type.shape && value.type.shape->size() > usual_rank) ||
         (value.elements && value.elements->size() > usual_elements) ||
         (value.constant && value.constant->size() > static_cast<int64_t>(usual_elements));
}

void make_small(Known& value) {
  if (value.type.shape && value.type.shape->size() > usual_rank) value.type.shape.reset();
  if (value.elements && value.elements->size() > usual_elements) value.elements = nullptr;
  if (value.constant && value.constant->size() > static_cast<int64_t>(usual_elements))
    value.constant.reset();
}

// Of a large value, its place in the report included.
int64_t bytes_of(const Known& value) {
  constexpr int64_t expression = 400, size = 250, element = 32;
  const auto bytes = [](const ir::Dims& dims, size_t usual, int64_t each) {
    if (dims.size() <= usual) return int64_t{0};
    int64_t total = 0;
    for (const ir::Dim& dim : dims)
      total += each + (dim.is_constant() || dim.as_symbol() ? 0 : expression);
    return total;
  };
  return (value.type.shape ? bytes(*value.type.shape, usual_rank, size) : 0) +
         (value.elements ? bytes(*value.elements, usual_elements, element) : 0);
}

// Inputs of which nothing large is known any more.
class SmallInputs {
 public:
  explicit SmallInputs(std::span<const Known* const> inputs) : pointers_(inputs) {
    for (const Known*& input : pointers_) {
      if (input == nullptr || !is_large(*input)) continue;
      Known& copy = copies_.emplace_front(*input);
      make_small(copy);
      input = &copy;
    }
  }
  std::span<const Known* const> inputs() const { return pointers_; }

 private:
  SmallVector<const Known*, 8> pointers_;
  std::forward_list<Known> copies_;
};

// Charges what an output takes of memory; leaves nothing large where that is spent.
void charge_bytes(Known& output, Budget& budget) {
  budget.bytes -= bytes_of(output);
  if (budget.bytes >= 0) return;
  budget.bytes = -1;
  make_small(output);
}

// Charges what the outputs hold of expressions; leaves none where the budget is spent.
void charge(ops::InferContext& context, Known& output, Budget& budget) {
  const auto cost_of = [](const ir::Dims& dims) {
    int64_t cost = 0;
    for (const ir::Dim& dim : dims) {
      if (!dim.is_constant()) cost += dim.complexity();
    }
    return cost;
  };
  if (output.type.shape) budget.symbols -= cost_of(*output.type.shape);
  if (output.elements) budget.symbols -= cost_of(*output.elements);
  if (budget.symbols >= 0) return;
  budget.symbols = -1;
  const auto simple = [](const ir::Dim& dim) { return dim.is_constant() || dim.as_symbol(); };
  if (output.type.shape) {
    for (ir::Dim& dim : *output.type.shape) {
      if (!simple(dim)) dim = context.unknown();
    }
  }
  if (output.elements && !std::all_of(output.elements->begin(), output.elements->end(), simple))
    output.elements = nullptr;
}

}  // namespace

int64_t formulas_evaluated() { return evaluated; }

std::vector<Known> infer_node(const ir::Node& node, const Binding& binding,
                              std::span<const Known* const> inputs, const Findings& findings,
                              const ops::InferSubgraph* subgraph) {
  std::vector<Known> outputs;
  infer_node(node, binding, inputs, findings, subgraph, outputs);
  return outputs;
}

void infer_node(const ir::Node& node, const Binding& binding, std::span<const Known* const> inputs,
                const Findings& findings, const ops::InferSubgraph* subgraph,
                std::vector<Known>& outputs) {
  // Formulas speak of a node's first output. A file may leave it out, though the standard forbids
  // that: it then is one without a name.
  if (node.outputs.empty()) {
    ir::Node named = node;  // graphs are shared, not copied
    named.outputs.emplace_back();
    infer_node(named, binding, inputs, findings, subgraph, outputs);
    return outputs.clear();
  }
  std::optional<Resolved> resolved;
  if (findings.thorough && findings.symbols->has_learned())
    inputs = resolved.emplace(inputs, *findings.symbols).inputs();
  const int first_symbol = findings.symbols->size();
  Budget& budget = *findings.budget;
  std::optional<SmallInputs> small;
  if (findings.thorough && budget.bytes < 0) inputs = small.emplace(inputs).inputs();
  ops::InferContext context(node, binding.signature, inputs, *findings.symbols,
                            findings.constraints, subgraph, outputs,
                            {.thorough = findings.thorough,
                             .truths = findings.truths,
                             .budget = &budget.nodes,
                             .bytes = findings.thorough ? &budget.bytes : nullptr});
  const auto* signature = binding.signature;
  if (signature != nullptr) {
    const int given = context.input_count(), made = context.output_count();
    if (given > signature->max_inputs || given < signature->min_inputs) {
      context.fail("takes {} to {} inputs; the node has {}", signature->min_inputs,
                   signature->max_inputs, given);
    }
    if (made > signature->max_outputs) {
      context.fail("gives at most {} outputs; the node names {}", signature->max_outputs, made);
    }
    for (int i = 0; i < given || i < signature->min_inputs; ++i) {
      if (context.has_input(i)) continue;
      const schema::Formal* formal = signature->input(static_cast<size_t>(i));
      if (formal && formal->option != schema::FormalOption::optional) {
        context.fail("input {} '{}' is required and absent", i, formal->name);
      }
    }
    check_input_types(context, *signature);
  }
  if (binding.op->infer == nullptr) context.fail(ErrorCode::unsupported, "has no inference");
  ++evaluated;
  binding.op->infer(context);
  context.settle_outputs();
  for (Known& output : outputs) {
    if (findings.thorough) {
      name_elements(output, *findings.symbols);
      charge_bytes(output, budget);
    }
    charge(context, output, budget);
    if (!output.constant && !findings.thorough) {
      if (auto constant = ops::tensor_of_elements(output))
        output.constant = std::make_shared<const Tensor>(std::move(*constant));
    }
  }
  note_unknowns(context, first_symbol, findings);
  constexpr int64_t symbol_bytes = 1000;
  const int64_t made = findings.symbols->size() - first_symbol;
  if (findings.thorough && made > static_cast<int64_t>(usual_rank))
    budget.bytes = std::max<int64_t>(budget.bytes - made * symbol_bytes, -1);
}

ops::InferSubgraph subgraphs_of(const Scope& scope, const Findings& findings) {
  return [&scope, &findings](const ir::Graph& graph, std::span<const Known> inputs) {
    Findings inner = findings;
    inner.constraints = nullptr;  // a branch may not run, a body's sizes are its own
    // What can't be in a branch is an error only where that branch is taken: If decides.
    if (findings.problem) {
      inner.problem = [&findings](const ir::Node& node, const Error& error) {
        if (error.code() != ErrorCode::unsupported) throw error;
        findings.problem(node, error);
      };
    }
    const size_t declared = graph.value_info.size() + graph.initializers.size();
    findings.budget->nodes -= static_cast<int64_t>(graph.nodes.size() + declared / 8) + 1;
    auto inside = std::make_unique<Scope>(&scope);
    inside->reserve(graph.initializers.size() + graph.inputs.size() + graph.nodes.size());
    enter(graph, *inside, inner, inputs);
    infer_graph(graph, *inside, inner);
    std::vector<Known> outputs = outputs_of(graph, *inside, inner);
    if (!inner.inferred) return outputs;
    inside->forget_outer();
    inner.inferred(graph, std::move(inside));
    return outputs;
  };
}

namespace {

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

namespace {

// A declaration of a function, by the name that its value has in a call.
struct Added {
  ir::ValueInfo info;
  std::string of, own_name;
};

}  // namespace

struct Walk::State {
  State(const ir::Graph& graph, Scope& scope, const Findings& findings)
      : scope(scope),
        findings(findings),
        subgraph(subgraphs_of(scope, findings)),
        declared(graph, findings) {}

  void gather(const ir::Node& node) {
    inputs.clear();
    for (const std::string& name : node.inputs) {
      const Known* known = name.empty() ? nullptr : scope.find(name);
      if (!name.empty() && known == nullptr) {
        fail_at(ir::describe(node), ErrorCode::invalid_model,
                "input '{}' is not defined before the node: it is neither a graph input, an "
                "initializer nor an output of an earlier node",
                name);
      }
      inputs.push_back(known);
    }
  }

  template <class Bind>
  void step(const ir::Node& node, const Bind& bind) {
    try {
      gather(node);
      infer_node(node, bind(), inputs, findings, &subgraph, outputs);
    } catch (const Error& error) {
      if (!findings.problem) throw;
      findings.problem(node, error);
      outputs.assign(node.outputs.size(), Known());
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      const HashedName name(node.outputs[i]);
      declared.merge(node, name, outputs[i]);
      scope.set(name, std::move(outputs[i]));
    }
  }

  Scope& scope;
  const Findings& findings;
  const ops::InferSubgraph subgraph;
  Declared declared;
  std::list<Added> added;            // to what is declared
  std::vector<const Known*> inputs;  // of the node at hand
  std::vector<Known> outputs;
};

Walk::Walk(const ir::Graph& graph, Scope& scope, const Findings& findings)
    : state_(std::make_unique<State>(graph, scope, findings)) {}
Walk::~Walk() = default;

void Walk::declare(ir::ValueInfo info, std::string function, std::string own_name) {
  auto& added = state_->added.emplace_back(
      Added{std::move(info), "function " + std::move(function), std::move(own_name)});
  state_->declared.add(added.info, "value_info", added.of, added.own_name);
}

void Walk::step(const ir::Node& node) {
  state_->step(node, [&] { return bind_node(node); });
}

void Walk::step(const ir::Node& node, const Binding& binding) {
  state_->step(node, [&] { return binding; });
}

void infer_graph(const ir::Graph& graph, Scope& scope, const Findings& findings) {
  Walk walk(graph, scope, findings);
  for (const ir::Node& node : graph.nodes) walk.step(node);
}

std::vector<Known> outputs_of(const ir::Graph& graph, const Scope& scope,
                              const Findings& findings) {
  std::vector<Known> outputs;
  outputs.reserve(graph.outputs.size());
  for (const ir::ValueInfo& output : graph.outputs) {
    const Known* known = scope.find(output.name);
    if (known == nullptr) {
      fail_at(fmt::format("graph '{}'", graph.name), ErrorCode::invalid_model,
              "output '{}' is not made by any node, input or initializer", output.name);
    }
    outputs.push_back(*known);
    if (!outputs.back().type.is_known() && output.type) {
      outputs.back().type = ir::value_type(*output.type, *findings.symbols);
    }
  }
  return outputs;
}

std::vector<std::string> captured_names(const ir::Graph& graph) {
  std::unordered_set<std::string_view> defined;
  std::unordered_set<std::string> seen;
  std::vector<std::string> captured;
  for (const auto& input : graph.inputs) defined.insert(input.name);
  for (const auto& initializer : graph.initializers) defined.insert(initializer.name);
  for (const auto& sparse : graph.sparse_initializers) defined.insert(sparse.values.name);
  const auto use = [&](const std::string& name) {
    if (!name.empty() && !defined.contains(name) && seen.insert(name).second)
      captured.push_back(name);
  };
  for (const ir::Node& node : graph.nodes) {
    for (const std::string& name : node.inputs) use(name);
    for (const ir::Attribute& attribute : node.attributes) {
      if (attribute.g)
        for (const auto& name : captured_names(*attribute.g)) use(name);
      for (const auto& inner : attribute.graphs)
        for (const auto& name : captured_names(*inner)) use(name);
    }
    for (const std::string& name : node.outputs) defined.insert(name);
  }
  for (const auto& output : graph.outputs) use(output.name);
  return captured;
}

}  // namespace sardonyx::infer
