#include "eval/eval.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/value_kind.h"
#include "ir/internal_domain.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/run_account.h"
#include "ops/step_memory.h"

namespace sardonyx::eval {
namespace {

using ops::ValueFacts;

// A subgraph run plainly, in the frame its node runs in.
class PlainGraph final : public ops::PreparedGraph {
 public:
  PlainGraph(const ir::Graph& graph, const Frame& frame, const Options& options)
      : graph_(graph), frame_(frame), options_(options) {}
  int input_count() const override { return static_cast<int>(graph_.inputs.size()); }
  int output_count() const override { return static_cast<int>(graph_.outputs.size()); }

  std::vector<Value> run(ops::RunContext& outer, std::span<Value> inputs) const override {
    if (inputs.size() != graph_.inputs.size()) {
      fail_at(fmt::format("graph '{}'", graph_.name), ErrorCode::run_failed,
              "takes {} inputs; got {}", graph_.inputs.size(), inputs.size());
    }
    Frame inside(&frame_);
    for (size_t i = 0; i < inputs.size(); ++i) inside.set(graph_.inputs[i].name, inputs[i]);
    const Environment::Scope scope(outer.environment());
    return run_graph(graph_, inside, outer.environment(), options_);
  }
  std::vector<ValueFacts> infer_outputs(ops::RunContext&,
                                        std::span<const ValueFacts> inputs) const override {
    return infer_graph_outputs(graph_, frame_, inputs);
  }

 private:
  const ir::Graph& graph_;
  const Frame& frame_;
  const Options& options_;
};

// The slots of one node's inputs or outputs; pointers stay valid while this lives.
struct Slots {
  std::vector<ops::Slot> slots;
  std::vector<ops::Slot*> pointers;
  explicit Slots(size_t count) : slots(count), pointers(count, nullptr) {}
};

Slots input_slots(std::span<const Value> inputs) {
  Slots made(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() == Value::Kind::none) continue;
    ops::Slot& slot = made.slots[i];
    made.pointers[i] = &slot;
    slot.value = inputs[i];
    if (!slot.value.is_tensor()) continue;
    const Tensor& tensor = slot.value.tensor();
    slot.data = tensor.data();
    slot.dims = tensor.shape().data();
    slot.rank = static_cast<int32_t>(tensor.rank());
    slot.element = tensor.element_type();
    slot.count = tensor.size();
  }
  return made;
}

// Sizes the run left open are errors unless the step allocates its own outputs.
void allocate(ops::Slot& slot, const ValueFacts& known, bool step_allocates,
              ops::RunEnvironment& environment, const ir::Node& node) {
  slot.element = known.type.element;
  if (step_allocates) return;
  const auto shape = known.type.concrete_shape();
  if (!known.type.is_tensor() || !shape) {
    fail_at(ir::place_of(node), ErrorCode::run_failed,
            "its inputs do not decide the shape of an output");
  }
  slot.value = Value(ops::charged_tensor(environment, known.type.element, *shape));
  const Tensor& held = slot.value.tensor();
  slot.data = held.data();
  slot.dims = held.shape().data();
  slot.rank = static_cast<int32_t>(held.rank());
  slot.count = held.size();
}

}  // namespace

const Value* Frame::find(std::string_view name) const {
  for (const Frame* frame = this; frame != nullptr; frame = frame->outer_) {
    const auto found = frame->values_.find(name);
    if (found != frame->values_.end()) return &found->second;
  }
  return nullptr;
}

namespace {

// A graph sees the frame's values by their types.
std::vector<ValueFacts> infer_inside(const ir::Graph& graph, const Frame& frame,
                                     std::span<const ValueFacts> inputs,
                                     const infer::InferenceContext& inference) {
  infer::Scope outer;
  for (const std::string& name : infer::captured_names(graph)) {
    if (const Value* value = frame.find(name)) outer.set(name, ValueFacts::of(*value));
  }
  infer::Scope scope(&outer);
  infer::enter(graph, scope, inference, inputs);
  infer::infer_graph(graph, scope, inference);
  return infer::outputs_of(graph, scope, inference);
}

// What inference knows of one node whose inputs are at hand.
struct InferredNode {
  ir::SymbolTable symbols;
  std::vector<ValueFacts> inputs, outputs;
  std::vector<const ValueFacts*> given;  // of the inputs; null where one is absent
};

// `with_elements`: false where types and shapes alone are asked.
void infer_from_values(InferredNode& inferred, const ir::Node& node, const infer::Binding& binding,
                       std::span<const Value> inputs, const Frame& frame, bool with_elements) {
  std::vector<ops::Constraint> constraints;
  infer::InferenceContext inference{&inferred.symbols, &constraints, {}};
  inferred.inputs.resize(inputs.size());
  inferred.given.assign(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() == Value::Kind::none) continue;
    inferred.inputs[i] =
        with_elements ? ValueFacts::of(inputs[i]) : ValueFacts::of(ir::type_of(inputs[i]));
    inferred.given[i] = &inferred.inputs[i];
  }
  const ops::InferSubgraph subgraph = [&](const ir::Graph& graph,
                                          std::span<const ValueFacts> given) {
    return infer_inside(graph, frame, given, inference);
  };
  inferred.outputs = infer::infer_node(node, binding, inferred.given, inference, &subgraph);
}

// Nothing is packed for a single run: prepare sees types only, as for values that change. Internal
// operators may ask for constants, which fusion gave them.
std::unique_ptr<ops::Step> prepare_step(InferredNode& inferred, const ir::Node& node,
                                        const infer::Binding& binding,
                                        const ops::PrepareServices& services) {
  if (!ir::is_internal(node)) {
    for (ValueFacts& value : inferred.inputs) value.constant.reset();
  }
  std::vector<const ValueFacts*> made;
  for (const ValueFacts& value : inferred.outputs) made.push_back(&value);
  ops::PrepareContext prepare(node, binding.signature, inferred.given, made, services);
  if (binding.op->prepare == nullptr) prepare.fail(ErrorCode::unsupported, "has no kernel");
  return binding.op->prepare(prepare);
}

// An item of a sequence, say, may be another kind of value than the first one.
void check_made(const ir::Node& node, size_t i, const ir::ValueType& type, const Value& made) {
  if (!type.is_tensor()) return;
  if (!made.is_tensor()) {
    fail_at(ir::place_of(node), ErrorCode::run_failed, "output '{}' is {}, not a tensor",
            node.outputs[i], with_article(made.kind()));
  }
  const ElementType element = made.tensor().element_type();
  if (type.element != ElementType::undefined && type.element != element) {
    fail_at(ir::place_of(node), ErrorCode::run_failed, "output '{}' holds {} instead of {}",
            node.outputs[i], name_of(element), name_of(type.element));
  }
}

std::vector<Value> run_step(const ops::Step& step, const ir::Node& node,
                            std::span<const Value> inputs, const std::vector<ValueFacts>& made,
                            Environment& environment) {
  const ops::StepTraits& traits = step.traits();
  Slots in = input_slots(inputs);
  Slots out(node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    out.pointers[i] = &out.slots[i];
    allocate(out.slots[i], made[i], traits.allocates_outputs, environment, node);
  }
  const auto in_count = static_cast<int>(in.pointers.size()),
             out_count = static_cast<int>(out.pointers.size());
  Bytes state = Bytes::allocate(static_cast<size_t>(traits.state_bytes));
  std::memset(state.mutable_data(), 0, state.size());
  ops::BindContext bind(in.pointers.data(), in_count, out.pointers.data(), out_count,
                        state.mutable_data(), environment.pool().threads());
  ops::within_run_limit(environment, node, [&] { step.bind(bind); });
  environment.charge(bind.scratch());
  Bytes scratch = Bytes::allocate(static_cast<size_t>(bind.scratch()));
  ops::RunContext run(in.pointers.data(), in_count, out.pointers.data(), out_count, state.data(),
                      scratch.mutable_data(), environment);
  const ops::TextCharge texts(node, traits.allocates_outputs, in.pointers, out.pointers,
                              environment);
  ops::within_run_limit(environment, node, [&] { step.run(run); });
  texts.made(in.pointers, out.pointers);
  environment.release(bind.scratch());

  std::vector<Value> outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (out.pointers[i]) check_made(node, i, made[i].type, out.slots[i].value);
    outputs.push_back(out.pointers[i] ? ops::to_owned(out.slots[i].value) : Value());
  }
  return outputs;
}

}  // namespace

namespace {

// Whether shapes and types alone make the node impossible.
bool has_wrong_shapes(const ir::Node& node, const infer::Binding& binding,
                      std::span<const Value> inputs, const Frame& frame) {
  InferredNode inferred;
  try {
    infer_from_values(inferred, node, binding, inputs, frame, false);
  } catch (const Error&) {
    return true;
  }
  return false;
}

// Of inputs that are named and hold nothing: a node without them.
ir::Node without_empty_inputs(ir::Node node, std::span<const Value> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() == Value::Kind::none) node.inputs[i].clear();
  }
  return node;
}

bool has_empty_input(const ir::Node& node, std::span<const Value> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() == Value::Kind::none && !node.inputs[i].empty()) return true;
  }
  return false;
}

std::vector<Value> run_bound_node(const ir::Node& node, std::span<const Value> inputs,
                                  const Frame& frame, Environment& environment,
                                  const Options& options) {
  const infer::Binding binding = infer::bind_node(node);
  InferredNode inferred;
  try {
    infer_from_values(inferred, node, binding, inputs, frame, true);
  } catch (const Error& error) {
    if (!options.is_sound || error.code() != ErrorCode::invalid_model) throw;
    const bool shapes = has_wrong_shapes(node, binding, inputs, frame);
    throw Error(shapes ? ErrorCode::bad_input : ErrorCode::run_failed, error.message(),
                error.location());
  }
  ops::PackCache packs;
  ops::PrepareServices services;
  services.packs = &packs;
  services.exact = true;  // plans are held against it
  services.prepare_graph = [&](const ir::Graph& graph,
                               std::span<const ValueFacts>) -> std::unique_ptr<ops::PreparedGraph> {
    return std::make_unique<PlainGraph>(graph, frame, options);
  };
  const std::unique_ptr<ops::Step> step = prepare_step(inferred, node, binding, services);
  return run_step(*step, node, inputs, inferred.outputs, environment);
}

}  // namespace

std::vector<Value> run_node(const ir::Node& node, std::span<const Value> inputs, const Frame& frame,
                            Environment& environment, const Options& options) {
  if (has_empty_input(node, inputs))
    return run_node(without_empty_inputs(node, inputs), inputs, frame, environment, options);
  try {
    return run_bound_node(node, inputs, frame, environment, options);
  } catch (const std::bad_alloc&) {
    ops::fail_for_memory(node);
  } catch (const std::length_error&) {
    ops::fail_for_memory(node);
  }
}

namespace {

// By node: the values made in the graph that nothing reads after it. A sequence that grows would be
// held at every length otherwise.
std::vector<std::vector<std::string_view>> last_reads(const ir::Graph& graph) {
  constexpr size_t never = std::numeric_limits<size_t>::max();
  std::unordered_map<std::string_view, size_t> last;
  for (const ir::ValueInfo& output : graph.outputs) last.emplace(output.name, never);
  std::vector<std::vector<std::string_view>> dropped(graph.nodes.size());
  const auto read = [&](size_t i, const std::string& name) {  // of what was made before alone
    const auto at = last.find(name);
    if (at != last.end() && at->second != never) at->second = i;
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const ir::Node& node = graph.nodes[i];
    for (const std::string& name : node.inputs) read(i, name);
    for (const std::string& name : node.outputs) {
      if (!last.try_emplace(name, i).second) read(i, name);
    }
    ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
      for (const std::string& name : infer::captured_names(inner)) read(i, name);
    });
  }
  for (const ir::Node& node : graph.nodes) {
    for (const std::string& name : node.outputs) {
      const size_t at = last.at(name);
      if (!name.empty() && at != never) dropped[at].push_back(last.find(name)->first);
    }
  }
  return dropped;
}

}  // namespace

std::vector<Value> run_graph(const ir::Graph& graph, Frame& frame, Environment& environment,
                             const Options& options) {
  std::unordered_set<std::string_view> inputs_by_name;
  if (!graph.initializers.empty()) {
    for (const ir::ValueInfo& input : graph.inputs) inputs_by_name.insert(input.name);
  }
  for (const ir::TensorProto& initializer : graph.initializers) {
    if (inputs_by_name.contains(initializer.name)) {
      const Value* fed = frame.find(initializer.name);
      if (fed != nullptr && fed->kind() != Value::Kind::none) continue;
    }
    frame.set(initializer.name, ir::aligned(ir::to_tensor(initializer)));
  }
  // Few values are not worth finding out.
  constexpr size_t few = 64;
  const auto dropped =
      graph.nodes.size() > few ? last_reads(graph) : std::vector<std::vector<std::string_view>>();
  std::vector<Value> inputs;
  for (const ir::Node& node : graph.nodes) {
    environment.check_cancelled();
    inputs.clear();
    for (const std::string& name : node.inputs) {
      const Value* value = name.empty() ? nullptr : frame.find(name);
      if (!name.empty() && value == nullptr) {
        fail_at(ir::place_of(node), ErrorCode::invalid_model,
                "input '{}' is not defined before the node", name);
      }
      inputs.push_back(value ? *value : Value());
    }
    std::vector<Value> outputs;
    try {
      outputs = run_node(node, inputs, frame, environment, options);
    } catch (const Error& error) {
      if (!error.location().empty()) throw;
      throw Error(error.code(), error.message(), ir::place_of(node));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (options.observe) options.observe(node, i, outputs[i]);
      frame.set(node.outputs[i], std::move(outputs[i]));
    }
    if (dropped.empty()) continue;
    for (const std::string_view name : dropped[static_cast<size_t>(&node - graph.nodes.data())])
      frame.drop(std::string(name));
  }
  std::vector<Value> results;
  for (const ir::ValueInfo& output : graph.outputs) {
    const Value* value = frame.find(output.name);
    if (value == nullptr) {
      fail_at(fmt::format("graph '{}'", graph.name), ErrorCode::invalid_model,
              "output '{}' is not made by any node", output.name);
    }
    results.push_back(*value);
  }
  return results;
}

std::vector<ValueFacts> infer_graph_outputs(const ir::Graph& graph, const Frame& around,
                                            std::span<const ValueFacts> inputs) {
  ir::SymbolTable symbols;
  infer::InferenceContext inference{&symbols, nullptr, {}};
  inference.symbolic_values = true;
  return infer_inside(graph, around, inputs, inference);
}

}  // namespace sardonyx::eval
