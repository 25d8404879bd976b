// Running the steps of a bound context, one kind after the other.
#include <algorithm>

#include "base/checked.h"
#include "base/fail.h"
#include "base/value_kind.h"
#include "ir/origin.h"
#include "ir/walk.h"
#include "ops/run_account.h"
#include "ops/step_memory.h"
#include "run/context.h"

namespace sardonyx::run {
// Whatever inference said, no step may read beyond what it views.
void Context::check_view(const PlanStep& step) {
  const int input = step.inputs[static_cast<size_t>(step.step->traits().view_of_input)];
  const int output = step.outputs[0];
  if (input < 0 || output < 0 || !value(input).has_rank() || !value(output).has_rank()) return;
  const ops::Slot &from = slot(input), &to = slot(output);
  if (from.count == to.count && from.element == to.element) return;
  if (from.element != to.element &&
      byte_size(from.element, from.count) == byte_size(to.element, to.count))
    return;
  fail_at(ir::place_of(*step.node), ErrorCode::run_failed,
          "the input has {} elements, the output's shape {} holds {}", from.count,
          to_string(to.shape()), to.count);
}

void Context::make_view(const PlanStep& step) {
  const ops::Slot& from = slot(step.inputs[static_cast<size_t>(step.step->traits().view_of_input)]);
  ops::Slot& to = slot(step.outputs[0]);
  to.data = from.data;
  to.value = from.value;
  if (to.value.is_tensor() && to.element != from.element) {  // the same bits as another type
    const Tensor& tensor = from.value.tensor();
    to.value = Tensor::view(to.element, Shape(to.dims, to.dims + to.rank), tensor.data(),
                            tensor.byte_size(), tensor.owner());
  }
}

// Outputs that are planned but live in their slots: strings.
void Context::allocate_boxed(const PlanStep& step, eval::Environment& environment) {
  for (const int index : step.outputs) {
    if (index < 0 || !value(index).boxed) continue;
    ops::Slot& s = slot(index);
    s.value = Value(ops::charged_tensor(environment, value(index).known.type.element,
                                        Shape(s.dims, s.dims + s.rank), s.blocks));
    s.data = s.value.tensor().data();
  }
}

bool Context::is_view(const PlanStep& step) const {
  return step.step->traits().view_of_input >= 0 && step.outputs[0] >= 0 &&
         value(step.outputs[0]).root != step.outputs[0];
}

ops::RunContext Context::context_of(int index, Bytes& scratch, eval::Environment& environment) {
  const PlanStep& step = this->step(index);
  const StepSlots& at = step_slots_[static_cast<size_t>(index)];
  return {pointers_.data() + at.inputs,
          static_cast<int>(step.inputs.size()),
          pointers_.data() + at.outputs,
          static_cast<int>(step.outputs.size()),
          state_.data() + step.state_offset,
          scratch.mutable_data(),
          environment,
          &step.in_place};
}

void Context::run_step(int index, ops::RunContext& run, eval::Environment& environment) {
  const PlanStep& step = this->step(index);
  if (environment.memory_limit == INT64_MAX) return step.step->run(run);
  const StepSlots& at = step_slots_[static_cast<size_t>(index)];
  const std::span<ops::Slot*const> inputs(pointers_.data() + at.inputs, step.inputs.size()),
      outputs(pointers_.data() + at.outputs, step.outputs.size());
  const ops::TextCharge texts(*step.node, step.step->traits().allocates_outputs, inputs, outputs,
                              environment);
  ops::within_run_limit(environment, *step.node, [&] { step.step->run(run); });
  texts.made(inputs, outputs);
}

void Context::run_planned(int index, eval::Environment& environment) {
  const PlanStep& step = this->step(index);
  if (is_view(step)) return make_view(step);
  const bool allocates = step.step->traits().allocates_outputs;
  if (!allocates) allocate_boxed(step, environment);
  ops::RunContext run = context_of(index, scratch_, environment);
  run_step(index, run, environment);
  if (allocates) check_made_shapes(step);
}

// A step that makes its own outputs must keep to the sizes the plan has counted on.
void Context::check_made_shapes(const PlanStep& step) {
  for (const int index : step.outputs) {
    if (index < 0 || !value(index).known.type.is_tensor()) continue;
    ops::Slot& s = slot(index);
    const PlanValue& v = value(index);
    if (!s.value.is_tensor())
      fail_at(ir::place_of(*step.node), ErrorCode::run_failed, "output '{}' is {}, not a tensor",
              v.name, with_article(s.value.kind()));
    if (s.value.tensor().element_type() != v.known.type.element) {
      fail_at(ir::place_of(*step.node), ErrorCode::run_failed, "output '{}' holds {} instead of {}",
              v.name, name_of(s.value.tensor().element_type()), name_of(v.known.type.element));
    }
    if (!v.has_rank()) continue;
    const Shape& shape = s.value.tensor().shape();
    if (!std::equal(shape.begin(), shape.end(), dims_of(index), dims_of(index) + v.rank())) {
      fail_at(ir::place_of(*step.node), ErrorCode::run_failed,
              "output '{}' has shape {}, inference said {}", v.name, to_string(shape),
              to_string(std::span<const int64_t>(dims_of(index), static_cast<size_t>(v.rank()))));
    }
    s.dims = dims_of(index);
  }
}

void Context::learn_sizes(const PlanStep& step) {
  for (const int index : step.outputs) {
    if (index < 0) continue;
    const PlanValue& v = value(index);
    if (v.known.type.is_tensor() && !slot(index).value.is_tensor() && !is_view(step)) {
      fail_at(ir::place_of(*step.node), ErrorCode::run_failed, "output '{}' is {}, not a tensor",
              v.name, with_article(slot(index).value.kind()));
    }
    if (!slot(index).value.is_tensor()) continue;
    ops::Slot& s = slot(index);
    const Tensor& tensor = s.value.tensor();
    if (v.known.type.is_tensor() && v.known.type.element != ElementType::undefined &&
        tensor.element_type() != v.known.type.element) {
      fail_at(ir::place_of(*step.node), ErrorCode::run_failed, "output '{}' holds {} instead of {}",
              v.name, name_of(tensor.element_type()), name_of(v.known.type.element));
    }
    if (v.has_rank()) {
      learn_shape(step, index, tensor.shape());
    } else {
      s.dims = tensor.shape().data();
      s.rank = static_cast<int32_t>(tensor.rank());
      s.element = tensor.element_type();
      s.count = tensor.size();
    }
  }
}

void Context::learn_size(int id, int64_t size) {
  const auto at = static_cast<size_t>(id);
  sizes_[at] = size;
  if (learned_[at] != size) {
    learned_[at] = size;
    changed_at_[at] = ++changes_;
  }
  newest_change_ = std::max(newest_change_, changed_at_[at]);
}

void Context::learn_shape(const PlanStep& step, int index, std::span<const int64_t> shape) {
  const PlanValue& v = value(index);
  const auto& expected = *v.known.type.shape;
  bool fits = shape.size() == expected.size();
  for (size_t d = 0; fits && d < expected.size(); ++d) {
    if (const ir::Symbol* symbol = expected[d].as_symbol()) {
      const int64_t& bound = sizes_[static_cast<size_t>(symbol->id)];
      if (bound < 0) learn_size(symbol->id, shape[d]);
      fits = bound == shape[d];
    } else {
      const auto known = expected[d].evaluate(sizes_);
      fits = known && *known == shape[d];
    }
  }
  if (!fits) {
    fail_at(ir::place_of(*step.node), ErrorCode::run_failed,
            "output '{}' has shape {}, inference said {}", v.name, to_string(shape),
            v.known.type.to_string());
  }
  const auto count = checked_count(shape);
  if (!count) {
    fail_at(ir::place_of(*step.node), ErrorCode::run_failed,
            "output '{}' of shape {} would have more than 2^63 elements", v.name, to_string(shape));
  }
  std::copy(shape.begin(), shape.end(), dims_of(index));
  ops::Slot& s = slot(index);
  s.dims = dims_of(index);
  s.rank = v.rank();
  s.count = *count;
}

// The same inference as before the run, now with all sizes and values at hand.
std::vector<ValueFacts> Context::infer_late(int index, eval::Environment& environment) {
  const PlanStep& step = this->step(index);
  ir::SymbolTable symbols;
  std::vector<ops::Constraint> constraints;
  const infer::InferenceContext inference{&symbols, &constraints, {}};
  const size_t own = step.node->inputs.size();
  std::vector<ValueFacts> known(own);
  std::vector<const ValueFacts*> pointers(own, nullptr);
  const ops::RunContext view = context_of(index, late_scratch_, environment);
  for (size_t i = 0; i < own; ++i) {
    if (step.inputs[i] < 0) continue;
    known[i] = ValueFacts::of(view.in_value(static_cast<int>(i)));
    pointers[i] = &known[i];
  }
  try {
    return infer::infer_node(*step.node, step.binding, pointers, inference, nullptr);
  } catch (const Error& error) {
    // The model was found sound when the plan was made: its inputs are at fault, where shapes alone
    // make the node impossible, or what it computes.
    if (error.code() != ErrorCode::invalid_model) throw;
    throw Error(has_wrong_shapes(index) ? ErrorCode::bad_input : ErrorCode::run_failed,
                error.message(), error.location());
  }
}

Tensor Context::late_tensor(int index, ElementType type, const Shape& shape,
                            eval::Environment& environment) {
  const auto found = std::find(plan_.outputs().begin(), plan_.outputs().end(), index);
  if (found != plan_.outputs().end() && type != ElementType::string) {
    const Value& given = run_outputs_[static_cast<size_t>(found - plan_.outputs().begin())];
    if (given.is_tensor() && given.tensor().element_type() == type &&
        given.tensor().shape() == shape)
      return given.tensor();
  }
  return ops::charged_tensor(environment, type, shape, slot(index).blocks);
}

void Context::make_late_outputs(int index, eval::Environment& environment) {
  const PlanStep& step = this->step(index);
  const std::vector<ValueFacts> made = infer_late(index, environment);
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    const int output = step.outputs[o];
    if (output < 0) continue;
    const auto shape = made[o].type.concrete_shape();
    if (!shape)
      fail_at(ir::place_of(*step.node), ErrorCode::run_failed,
              "its inputs do not decide the shape of output {}", o);
    if (o == 0 && is_view(step)) {
      learn_shape(step, output, *shape);
      continue;
    }
    ops::Slot& s = slot(output);
    s.value = Value(late_tensor(output, made[o].type.element, *shape, environment));
    s.data = s.value.tensor().data();
  }
  learn_sizes(step);
}

// For a step that makes outputs as large as its inputs say though there is nothing to put in: what
// can be told of their sizes, -1 for the others.
void Context::expect_sizes(const PlanStep& step) {
  for (const int output : step.outputs) {
    if (output < 0 || !value(output).has_rank()) continue;
    const auto& expected = *value(output).known.type.shape;
    for (size_t d = 0; d < expected.size(); ++d)
      dims_of(output)[d] = expected[d].evaluate(sizes_).value_or(-1);
    slot(output).dims = dims_of(output);
    slot(output).rank = value(output).rank();
  }
}

void Context::run_data_dependent(int index, eval::Environment& environment) {
  const PlanStep& step = this->step(index);
  for (const int output : step.outputs) {
    if (output >= 0) slot(output).value = Value();
  }
  const bool allocates = step.step->traits().allocates_outputs;
  if (allocates) {
    expect_sizes(step);
  } else {
    make_late_outputs(index, environment);
  }
  if (is_view(step)) return make_late_view(step);
  bind_step(index, environment);
  ops::RunContext run = context_of(index, late_scratch_, environment);
  run_step(index, run, environment);
  if (allocates) learn_sizes(step);
}

// Why a step failed, as inference with the values at hand tells it: plain evaluation asks that
// first, so that both refuse with the same words.
Error Context::reason_of(int index, const Error& error, eval::Environment& environment) {
  const PlanStep& step = this->step(index);
  const Error own(error.code(), error.message(), ir::place_of(*step.node));
  if (error.code() != ErrorCode::run_failed || step.mode == PlanStep::Mode::interpreted ||
      ir::has_graphs(*step.node))
    return own;
  // Inputs that no step reads as they are, packed ones say, have no elements to look at.
  for (const int input : step.inputs) {
    if (input >= 0 && slot(input).data == nullptr && slot(input).count != 0) return own;
  }
  try {
    infer_late(index, environment);
  } catch (const Error& found) {
    return Error(found.code(), found.message(), ir::place_of(*step.node));
  }
  return own;
}

void Context::make_late_view(const PlanStep& step) {
  check_view(step);
  make_view(step);
}

void Context::run_interpreted(int index, eval::Environment& environment) {
  const PlanStep& step = this->step(index);
  eval::Frame frame;
  std::vector<Value> inputs;
  const size_t own = step.node->inputs.size();
  const ops::RunContext view = context_of(index, late_scratch_, environment);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    Value given = step.inputs[i] < 0 ? Value() : view.in_value(static_cast<int>(i));
    if (i < own)
      inputs.push_back(given);
    else
      frame.set(step.captured[i - own], std::move(given));
  }
  std::vector<Value> made =
      eval::run_node(*step.node, inputs, frame, environment, {.observe = {}, .is_sound = true});
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    if (step.outputs[o] < 0) continue;
    ops::Slot& s = slot(step.outputs[o]);
    s.value = std::move(made[o]);
    if (!s.value.is_tensor()) continue;
    const Tensor& tensor = s.value.tensor();
    s.data = tensor.data();
    s.dims = tensor.shape().data();
    s.rank = static_cast<int32_t>(tensor.rank());
    s.element = tensor.element_type();
    s.count = tensor.size();
  }
  learn_sizes(step);
}

}  // namespace sardonyx::run
