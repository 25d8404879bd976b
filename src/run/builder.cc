#include "run/builder.h"

#include <algorithm>
#include <climits>
#include <new>
#include <stdexcept>

#include "base/fail.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/custom.h"
#include "ops/step_memory.h"
#include "run/subgraph.h"

namespace sardonyx::run {
namespace {

// About what a step takes in the plan and in the context of a run, what its kernel keeps included.
constexpr int64_t step_memory = 1024;
// The same of a value.
constexpr int64_t value_memory = sizeof(PlanValue) + 96;

bool fixed_width_tensor(const ir::ValueType& type) {
  return type.is_tensor() && type.element != ElementType::string &&
         type.element != ElementType::undefined;
}

// What is known of a value inside a subgraph: the same, with every open size as a name of the
// subgraph's own symbol table. Equal expressions get equal names.
ValueFacts resymbolized(const ValueFacts& known, ir::SymbolTable& symbols) {
  ValueFacts copy = known;
  if (!known.constant) copy.elements = nullptr;
  if (copy.type.shape) {
    for (ir::Dim& dim : *copy.type.shape) {
      if (!dim.is_constant()) dim = ir::Dim(symbols.named(dim.to_string()));
    }
  }
  if (copy.type.nested) {
    copy.type.nested =
        std::make_shared<const ir::ValueType>(ir::with_open_sizes(*copy.type.nested, symbols));
  }
  return copy;
}

}  // namespace

int Builder::add_value(const std::string& name, ValueFacts known, PlanValue::Source source) {
  const int index = static_cast<int>(plan_.values_.size());
  PlanValue& value = plan_.values_.emplace_back();
  value.name = name;
  value.source = source;
  value.root = index;
  value.boxed = !fixed_width_tensor(known.type) || !known.type.shape;
  value.known = std::move(known);
  plan_.memory_.add(value_memory + static_cast<int64_t>(name.size()));
  if (value.has_rank()) {
    value.dims_offset = plan_.dims_count_;
    plan_.dims_count_ += value.rank();
  }
  by_name_[name] = index;
  scope_.set(name, value.known);
  return index;
}

int Builder::value_of(const ir::Node& node, const std::string& name) const {
  if (name.empty()) return -1;
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    fail_at(ir::place_of(node), ErrorCode::invalid_model,
            "input '{}' is not defined before the node: it is neither a graph input, an "
            "initializer nor an output of "
            "an earlier node",
            name);
  }
  return found->second;
}

void Builder::define_symbols(const ValueFacts& known) {
  if (!known.type.shape) return;
  defined_.resize(static_cast<size_t>(plan_.symbols_.size()), 0);
  for (const ir::Dim& dim : *known.type.shape) {
    if (const ir::Symbol* symbol = dim.as_symbol()) defined_[static_cast<size_t>(symbol->id)] = 1;
  }
}

bool Builder::is_defined(const ValueFacts& known) const {
  if (!known.type.is_tensor()) return true;
  if (!known.type.shape) return false;
  std::vector<int> ids;
  for (const ir::Dim& dim : *known.type.shape) dim.collect_symbols(ids);
  return std::all_of(ids.begin(), ids.end(), [&](int id) {
    return static_cast<size_t>(id) < defined_.size() && defined_[static_cast<size_t>(id)];
  });
}

void Builder::build(std::span<const ValueFacts> inputs,
                    std::vector<std::pair<std::string, ValueFacts>> captured) {
  inference_.symbols = &plan_.symbols_;
  inference_.constraints = &constraints_;
  inference_.budget = services_.budget;
  const ir::Graph& graph = plan_.graph_;

  std::vector<ValueFacts> entering;
  for (const ValueFacts& known : inputs) {
    entering.push_back(resymbolized(known, plan_.symbols_));
    entering.back().constant.reset();  // every run brings its own
    entering.back().elements = nullptr;
  }
  infer::Scope declared;
  infer::enter(graph, declared, inference_, entering);
  for (const ir::TensorProto& initializer : graph.initializers) {
    add_value(initializer.name, *declared.find_here(initializer.name), PlanValue::Source::constant);
  }
  for (const ir::ValueInfo& input : graph.inputs) {
    ValueFacts known = *declared.find_here(input.name);
    define_symbols(known);
    plan_.inputs_.push_back(add_value(input.name, std::move(known), PlanValue::Source::input));
    segment_.values.push_back(plan_.inputs_.back());
  }
  for (auto& [name, known] : captured) {
    ValueFacts inside = resymbolized(known, plan_.symbols_);
    define_symbols(inside);
    const bool constant = inside.constant != nullptr;
    plan_.captured_.push_back(
        add_value(name, std::move(inside),
                  constant ? PlanValue::Source::constant : PlanValue::Source::captured));
    if (!constant) segment_.values.push_back(plan_.captured_.back());
  }
  for (const ir::Node& node : graph.nodes) add_node(node);
  end_segment();
  for (const ir::ValueInfo& output : graph.outputs) {
    const auto found = by_name_.find(output.name);
    if (found == by_name_.end()) {
      fail_at(fmt::format("graph '{}'", graph.name), ErrorCode::invalid_model,
              "output '{}' is not made by any node, input or initializer", output.name);
    }
    plan_.outputs_.push_back(found->second);
  }
  find_lifetimes();
  place_outputs();
  take_in_place();
  align_constants();
  plan_.graph_.initializers.clear();
  plan_.graph_.value_info.clear();
}

void Builder::name_late_sizes(std::vector<ValueFacts>& outputs) {
  for (ValueFacts& output : outputs) {
    if (!output.type.shape || is_defined(output)) continue;
    for (ir::Dim& dim : *output.type.shape) {
      if (dim.as_symbol() != nullptr) continue;
      std::vector<int> ids;
      dim.collect_symbols(ids);
      const bool open = std::any_of(ids.begin(), ids.end(), [&](int id) {
        return static_cast<size_t>(id) >= defined_.size() || !defined_[static_cast<size_t>(id)];
      });
      if (open) dim = ir::Dim(plan_.symbols_.unknown(std::make_shared<const ir::Dim>(dim)));
    }
  }
}

bool Builder::is_interpreted(const ir::Node& node, const PlanStep& step,
                             std::span<const ValueFacts> outputs) const {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (step.inputs[i] < 0) continue;
    const ir::ValueType& type = plan_.values_[static_cast<size_t>(step.inputs[i])].known.type;
    if (!type.is_known()) return true;
    if (type.is_tensor() && type.element == ElementType::undefined) return true;
    if (type.is_tensor() && !type.shape && !ops::prepares_without_ranks(node)) return true;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::ValueType& type = outputs[i].type;
    if (!node.outputs[i].empty() && type.is_tensor() && type.element == ElementType::undefined)
      return true;
  }
  return false;
}

// Its inputs, then what its subgraphs capture.
void Builder::connect(const ir::Node& node, PlanStep& step) const {
  for (const std::string& name : node.inputs) step.inputs.push_back(value_of(node, name));
  std::unordered_set<std::string> seen;
  ir::for_each_subgraph(node, [&](const ir::Graph& graph, const ir::Attribute&, int) {
    for (const std::string& name : infer::captured_names(graph)) {
      if (!seen.insert(name).second) continue;
      step.inputs.push_back(value_of(node, name));
      step.captured.push_back(name);
    }
  });
}

void Builder::prepare(PlanStep& step, std::span<const ValueFacts* const> inputs,
                      const std::vector<ValueFacts>& outputs) {
  const ir::Node& node = *step.node;
  std::vector<const ValueFacts*> made;
  for (const ValueFacts& output : outputs) made.push_back(&output);
  ops::PrepareServices services;
  services.packs = services_.packs;
  services.exact = services_.exact;
  services.prepare_graph = [&](const ir::Graph& graph, std::span<const ValueFacts> given) {
    auto prepared = prepare_graph(graph, given, step);
    step.bodies.push_back({&graph, prepared->plan()});
    return prepared;
  };
  ops::PrepareContext prepare(node, step.binding.signature, inputs, made, services);
  if (step.binding.op->prepare == nullptr) prepare.fail(ErrorCode::unsupported, "has no kernel");
  try {
    step.step = step.binding.op->prepare(prepare);
  } catch (const std::bad_alloc&) {
    ops::fail_for_memory(node);
  } catch (const std::length_error&) {
    ops::fail_for_memory(node);
  }
  step.refusals = prepare.take_refusals();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!node.outputs[i].empty() && !is_defined(outputs[i]))
      step.mode = PlanStep::Mode::data_dependent;
  }
  for (const ValueFacts* input : inputs) {
    if (input != nullptr && input->type.is_tensor() && !input->type.shape)
      step.mode = PlanStep::Mode::data_dependent;
  }
  step.state_offset = plan_.state_bytes_;
  plan_.state_bytes_ += (step.step->traits().state_bytes + 63) / 64 * 64;
}

void Builder::add_outputs(PlanStep& step, std::vector<ValueFacts> outputs) {
  const ir::Node& node = *step.node;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) {
      step.outputs.push_back(-1);
      continue;
    }
    if (step.mode == PlanStep::Mode::interpreted) outputs[i].elements = nullptr;
    define_symbols(outputs[i]);
    const int value = add_value(node.outputs[i], std::move(outputs[i]), PlanValue::Source::step);
    PlanValue& made = plan_.values_[static_cast<size_t>(value)];
    made.made_by = static_cast<int>(plan_.steps_.size());
    made.boxed |= step.mode != PlanStep::Mode::planned ||
                  (step.step && step.step->traits().allocates_outputs);
    step.outputs.push_back(value);
    if (step.mode == PlanStep::Mode::planned) segment_.values.push_back(value);
  }
}

void Builder::add_node(const ir::Node& node) {
  try {
    plan_.memory_.add(step_memory);
    take_node(node);
  } catch (MemoryLimitReached& reached) {
    reached.locate(ir::place_of(node));
    throw;
  }
}

void Builder::take_node(const ir::Node& node) {
  PlanStep step;
  step.node = &node;
  connect(node, step);
  step.binding = infer::bind_node(node);
  std::vector<const ValueFacts*> known;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int value = step.inputs[i];
    known.push_back(value < 0 ? nullptr : &plan_.values_[static_cast<size_t>(value)].known);
  }
  // A subgraph's own plan checks what its sizes must be.
  const ops::InferSubgraph subgraph = infer::subgraphs_of(scope_, inference_);
  std::vector<ValueFacts> outputs =
      infer::infer_node(node, step.binding, known, inference_, &subgraph);
  name_late_sizes(outputs);
  if (is_interpreted(node, step, outputs)) {
    step.mode = PlanStep::Mode::interpreted;
  } else {
    prepare(step, known, outputs);
  }
  add_outputs(step, std::move(outputs));
  if (step.step) share_memory(step);
  const bool ends = step.mode != PlanStep::Mode::planned;
  plan_.steps_.push_back(std::move(step));
  if (ends) end_segment();
}

std::unique_ptr<PlannedGraph> Builder::prepare_graph(const ir::Graph& graph,
                                                     std::span<const ValueFacts> inputs,
                                                     const PlanStep& step) {
  const size_t own_inputs = step.node->inputs.size();
  std::vector<std::pair<std::string, ValueFacts>> captured;
  std::vector<int> positions;
  for (const std::string& name : infer::captured_names(graph)) {
    captured.emplace_back(name, *scope_.find(name));
    const auto at = std::find(step.captured.begin(), step.captured.end(), name);
    if (!captured.back().second.constant)
      positions.push_back(static_cast<int>(own_inputs) +
                          static_cast<int>(at - step.captured.begin()));
    else
      positions.push_back(-1);
  }
  return std::make_unique<PlannedGraph>(graph, inputs, std::move(captured), std::move(positions),
                                        services_);
}

// A view's output is its input's memory, as long as both are plain tensors.
void Builder::share_memory(PlanStep& step) {
  const int from = step.step->traits().view_of_input;
  if (from < 0 || step.outputs[0] < 0 || step.inputs[static_cast<size_t>(from)] < 0) return;
  PlanValue& output = plan_.values_[static_cast<size_t>(step.outputs[0])];
  const PlanValue& input =
      plan_.values_[static_cast<size_t>(step.inputs[static_cast<size_t>(from)])];
  if (!fixed_width_tensor(input.known.type) && input.known.type.element != ElementType::string)
    return;
  if (!output.has_rank()) return;  // nowhere to keep its sizes
  output.root = input.root;
  output.boxed = plan_.values_[static_cast<size_t>(input.root)].boxed;
}

void Builder::end_segment() {
  segment_.end = static_cast<int>(plan_.steps_.size());
  segment_.constraints = std::move(constraints_);
  constraints_.clear();
  plan_.segments_.push_back(std::move(segment_));
  segment_ = {};
  segment_.begin = static_cast<int>(plan_.steps_.size());
}

void Builder::find_lifetimes() {
  for (size_t s = 0; s < plan_.steps_.size(); ++s) {
    const PlanStep& step = plan_.steps_[s];
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] < 0) continue;
      if (step.step) {
        const auto& unread = step.step->traits().unread_inputs;
        const bool data_dependent =
            step.mode != PlanStep::Mode::planned;  // inference reads values then
        if (!data_dependent &&
            std::find(unread.begin(), unread.end(), static_cast<int>(i)) != unread.end())
          continue;
      }
      const int root = plan_.values_[static_cast<size_t>(step.inputs[i])].root;
      plan_.values_[static_cast<size_t>(root)].last_use = static_cast<int>(s);
    }
    for (const int output : step.outputs) {
      if (output < 0) continue;
      PlanValue& root =
          plan_.values_[static_cast<size_t>(plan_.values_[static_cast<size_t>(output)].root)];
      root.last_use = std::max(root.last_use, static_cast<int>(s));
    }
  }
  for (const int output : plan_.outputs_) {
    plan_.values_[static_cast<size_t>(plan_.values_[static_cast<size_t>(output)].root)].last_use =
        INT_MAX;
  }
}

// An output made by a step is made in the memory that the caller gets.
void Builder::place_outputs() {
  for (size_t i = 0; i < plan_.outputs_.size(); ++i) {
    PlanValue& root = plan_.values_[static_cast<size_t>(
        plan_.values_[static_cast<size_t>(plan_.outputs_[i])].root)];
    if (root.source == PlanValue::Source::step && !root.boxed && root.output_storage < 0) {
      root.output_storage = static_cast<int>(i);
    }
  }
}

void Builder::take_in_place() {
  for (size_t s = 0; s < plan_.steps_.size(); ++s) {
    PlanStep& step = plan_.steps_[s];
    if (!step.step || step.mode != PlanStep::Mode::planned) continue;
    for (const auto& pair : step.step->traits().in_place) {
      const auto at = [&](const std::vector<int>& list, int i) {
        return static_cast<size_t>(i) < list.size() ? list[static_cast<size_t>(i)] : -1;
      };
      const int input = at(step.inputs, pair.input), output = at(step.outputs, pair.output);
      if (input < 0 || output < 0) continue;
      const PlanValue& from =
          plan_.values_[static_cast<size_t>(plan_.values_[static_cast<size_t>(input)].root)];
      const PlanValue& to = plan_.values_[static_cast<size_t>(output)];
      // The same memory may reach the step through two inputs; then in place is not safe.
      int uses = 0;
      for (const int other : step.inputs) {
        uses += other >= 0 && plan_.values_[static_cast<size_t>(other)].root ==
                                  plan_.values_[static_cast<size_t>(input)].root;
      }
      if (from.last_use != static_cast<int>(s) || uses != 1) continue;
      const bool in_arena = from.source == PlanValue::Source::step && !from.boxed &&
                            from.output_storage < 0 && !to.boxed && to.output_storage < 0;
      const bool sequence = from.known.type.kind == ir::TypeProto::Kind::sequence;
      if (in_arena || sequence) {
        step.in_place.push_back(pair);
      }
    }
  }
}

// Constants that a step reads while running must be aligned for their type, unless it says
// otherwise; those that nothing reads give their memory back to the file they are mapped from.
void Builder::align_constants() {
  enum class Read : char { never, anywhere, aligned };
  std::vector<Read> reads(plan_.values_.size(), Read::never);
  const auto reads_value = [&](int value, Read how) {
    Read& read = reads[static_cast<size_t>(plan_.values_[static_cast<size_t>(value)].root)];
    read = std::max(read, how);
  };
  for (const PlanStep& step : plan_.steps_) {
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] < 0) continue;
      Read how = Read::aligned;
      if (step.step && step.mode == PlanStep::Mode::planned) {
        const auto names = [&](const std::vector<int>& inputs) {
          return std::find(inputs.begin(), inputs.end(), static_cast<int>(i)) != inputs.end();
        };
        const ops::StepTraits& traits = step.step->traits();
        if (names(traits.unread_inputs)) continue;
        if (names(traits.unaligned_inputs)) how = Read::anywhere;
      }
      reads_value(step.inputs[i], how);
    }
  }
  for (const int output : plan_.outputs_) reads_value(output, Read::aligned);
  for (size_t i = 0; i < plan_.values_.size(); ++i) {
    auto& constant = plan_.values_[i].known.constant;
    if (!constant) continue;
    // What a step makes all the same is not kept; the step runs.
    if (plan_.values_[i].source != PlanValue::Source::constant || reads[i] == Read::never) {
      constant.reset();
    } else if (reads[i] == Read::aligned) {
      const Tensor aligned = ir::aligned(*constant);
      if (aligned.data() != constant->data()) services_.packs->release(*constant);
      constant = std::make_shared<const Tensor>(aligned);
    }
  }
}

}  // namespace sardonyx::run
