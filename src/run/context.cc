#include "run/context.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/checked.h"
#include "base/fail.h"
#include "ir/tensor.h"
#include "run/arena.h"

namespace sardonyx::run {
namespace {

std::string place(const ir::Node& node) {
  return node.origin.empty() ? ir::describe(node)
                             : fmt::format("{} ({})", ir::describe(node), node.origin);
}

void reserve(Bytes& block, int64_t bytes) {
  if (static_cast<int64_t>(block.size()) < bytes) {
    block = {};
    block = Bytes::allocate(static_cast<size_t>(bytes));
  }
}

}  // namespace

Context::Context(const Plan& plan)
    : plan_(plan),
      slots_(plan.values().size()),
      dims_(static_cast<size_t>(plan.dims_count()), 0),
      sizes_(static_cast<size_t>(plan.symbols().size()), -1),
      segment_bound_(plan.segments().size(), 0),
      late_sizes_(plan.segments().size()),
      arenas_(plan.segments().size()),
      offsets_(plan.values().size(), -1),
      state_(Bytes::allocate(static_cast<size_t>(plan.state_bytes()))) {
  std::memset(state_.mutable_data(), 0, state_.size());
  size_t pointers = 0;
  for (const PlanStep& step : plan.steps()) pointers += step.inputs.size() + step.outputs.size();
  pointers_.reserve(pointers);
  for (const PlanStep& step : plan.steps()) {
    StepSlots places;
    places.inputs = static_cast<int>(pointers_.size());
    for (const int index : step.inputs) pointers_.push_back(index < 0 ? nullptr : &slot(index));
    places.outputs = static_cast<int>(pointers_.size());
    for (const int index : step.outputs) pointers_.push_back(index < 0 ? nullptr : &slot(index));
    step_slots_.push_back(places);
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    const PlanValue& v = plan.values()[i];
    ops::Slot& s = slots_[i];
    s.element = v.known.type.is_tensor() ? v.known.type.element : ElementType::undefined;
    if (v.has_rank()) {
      s.dims = dims_.data() + v.dims_offset;
      s.rank = v.rank();
    }
    if (v.source == PlanValue::Source::constant) {
      const auto shape = v.known.type.concrete_shape();
      if (!shape) continue;
      std::copy(shape->begin(), shape->end(), dims_.begin() + v.dims_offset);
      s.count = count_of(*shape);
      if (v.known.constant) {
        s.value = Value(*v.known.constant);
        s.data = s.value.tensor().data();
      }
    }
  }
}

int64_t Context::arena_bytes() const {
  int64_t bytes = static_cast<int64_t>(scratch_.size() + late_scratch_.size() + state_.size());
  for (const Bytes& arena : arenas_) bytes += static_cast<int64_t>(arena.size());
  return bytes;
}

void Context::match(int index, std::span<const int64_t> shape) {
  const PlanValue& v = value(index);
  if (!v.has_rank()) return;
  const auto complain = [&](const std::string& why) {
    throw ShapeMismatch(ErrorCode::bad_input,
                        fmt::format("has shape {}, the model takes {}: {}", to_string(shape),
                                    v.known.type.to_string(), why),
                        fmt::format("input '{}'", v.name));
  };
  const auto& expected = *v.known.type.shape;
  if (shape.size() != expected.size())
    complain(fmt::format("rank {} instead of {}", shape.size(), expected.size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (const ir::Symbol* symbol = expected[d].as_symbol()) {
      int64_t& size = sizes_[static_cast<size_t>(symbol->id)];
      if (size < 0) size = shape[d];
      if (size != shape[d]) {
        complain(fmt::format("dimension {} is {}, but '{}' is {} elsewhere", d, shape[d],
                             symbol->name, size));
      }
    } else if (expected[d].is_constant() && shape[d] != *expected[d].value()) {
      complain(fmt::format("dimension {} must be {}", d, *expected[d].value()));
    }
  }
  std::copy(shape.begin(), shape.end(), dims_of(index));
}

bool Context::take_inputs(std::span<const Value> inputs, std::span<ops::Slot* const> captured) {
  std::vector<int64_t> shapes;
  shapes.reserve(input_shapes_.size());
  const auto note = [&](std::span<const int64_t> shape) {
    shapes.push_back(static_cast<int64_t>(shape.size()));
    shapes.insert(shapes.end(), shape.begin(), shape.end());
  };
  held_inputs_.assign(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int index = plan_.inputs()[i];
    const PlanValue& v = value(index);
    ops::Slot& s = slot(index);
    Value& given = held_inputs_[i];
    if (!given.is_tensor() || !v.known.type.is_tensor()) {
      const auto kind = ir::type_of(given).kind;
      if (v.known.type.is_known() && kind != v.known.type.kind &&
          given.kind() != Value::Kind::none) {
        throw ShapeMismatch(ErrorCode::bad_input,
                            fmt::format("is a {}, the model takes {}", name_of(given.kind()),
                                        v.known.type.to_string()),
                            fmt::format("input '{}'", v.name));
      }
      s.value = given;
      if (!given.is_tensor()) continue;
    }
    const Tensor& raw = given.tensor();
    if (v.known.type.is_tensor() && v.known.type.element != raw.element_type()) {
      throw ShapeMismatch(ErrorCode::bad_input,
                          fmt::format("holds {}, the model takes {}", name_of(raw.element_type()),
                                      v.known.type.to_string()),
                          fmt::format("input '{}'", v.name));
    }
    if (raw.element_type() != ElementType::string) given = Value(ir::aligned(raw));
    const Tensor& tensor = given.tensor();
    note(tensor.shape());
    s.data = tensor.data();
    s.element = tensor.element_type();
    s.count = tensor.size();
    s.value = v.boxed ? given : Value();
    if (!v.has_rank()) {
      s.dims = tensor.shape().data();
      s.rank = static_cast<int32_t>(tensor.rank());
    }
  }
  for (size_t i = 0; i < captured.size(); ++i) {
    const int index = plan_.captured()[i];
    if (captured[i] == nullptr || value(index).source == PlanValue::Source::constant) continue;
    const ops::Slot& from = *captured[i];
    ops::Slot& s = slot(index);
    s.data = from.data;
    s.element = from.element;
    s.count = from.count;
    s.value = from.value;
    if (!value(index).has_rank()) {
      s.dims = from.dims;
      s.rank = from.rank;
    }
    if (from.element != ElementType::undefined) note(from.shape());
  }
  if (shapes == input_shapes_ && segment_bound_[0]) return true;
  std::fill(sizes_.begin(), sizes_.end(), -1);
  std::fill(segment_bound_.begin(), segment_bound_.end(), 0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (held_inputs_[i].is_tensor()) match(plan_.inputs()[i], held_inputs_[i].tensor().shape());
  }
  for (size_t i = 0; i < captured.size(); ++i) {
    if (captured[i] != nullptr && captured[i]->element != ElementType::undefined)
      match(plan_.captured()[i], captured[i]->shape());
  }
  input_shapes_ = std::move(shapes);
  return false;
}

void Context::evaluate_dims(const Segment& segment) {
  for (const int index : segment.values) {
    const PlanValue& v = value(index);
    if (!v.has_rank() || v.source != PlanValue::Source::step) continue;
    int64_t* out = dims_of(index);
    int64_t count = 1;
    for (size_t d = 0; d < v.known.type.shape->size(); ++d) {
      const ir::Dim& dim = (*v.known.type.shape)[d];
      const auto size = dim.evaluate(sizes_);
      if (!size || *size < 0) {
        const int step = v.made_by;
        fail_at(step < 0 ? fmt::format("value '{}'", v.name)
                         : place(*plan_.steps()[static_cast<size_t>(step)].node),
                ErrorCode::bad_input,
                "these input shapes leave dimension {} of '{}' ({}) without a sound size{}", d,
                v.name, dim.to_string(), size ? fmt::format(": {}", *size) : std::string());
      }
      out[d] = *size;
      if (*size == 0)
        count = 0;
      else if (count != 0 && __builtin_mul_overflow(count, *size, &count)) {
        fail_at(fmt::format("value '{}'", v.name), ErrorCode::bad_input,
                "its number of elements overflows");
      }
    }
    slot(index).count = count;
  }
}

void Context::check_constraints(const Segment& segment) {
  for (const ops::Constraint& c : segment.constraints) {
    if (c.a.is_indefinite() || c.b.is_indefinite()) {
      fail(ErrorCode::unsupported, "{}: the sizes are too large or too intricate to tell",
           c.message);
    }
    const auto a = c.a.evaluate(sizes_), b = c.b.evaluate(sizes_);
    if (!a || !b) continue;  // decided by the run: the step that learns it checks again
    bool holds = true;
    switch (c.kind) {
      case ops::Constraint::Kind::equal: holds = *a == *b; break;
      case ops::Constraint::Kind::at_least: holds = *a >= *b; break;
      case ops::Constraint::Kind::broadcast: holds = *a == *b || *a == 1 || *b == 1; break;
    }
    if (!holds)
      fail(ErrorCode::bad_input, "{}: {} is {}, {} is {}", c.message, c.a.to_string(), *a,
           c.b.to_string(), *b);
  }
}

void Context::lay_out(const Segment& segment, size_t index) {
  ArenaLayout layout;
  struct Block {
    int64_t offset, bytes, exact;
  };
  std::vector<std::vector<Block>> dying(static_cast<size_t>(segment.end - segment.begin));
  std::vector<int> placed;
  for (int s = segment.begin; s < segment.end; ++s) {
    const PlanStep& step = plan_.steps()[static_cast<size_t>(s)];
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      const int v = step.outputs[o];
      if (v < 0 || value(v).root != v || value(v).boxed || value(v).output_storage >= 0) continue;
      const int64_t exact = byte_size(value(v).known.type.element, slot(v).count);
      const int64_t bytes = ArenaLayout::rounded(exact);
      int64_t offset = -1;
      for (const auto& pair : step.in_place) {
        if (pair.output != static_cast<int>(o)) continue;
        const int root = value(step.inputs[static_cast<size_t>(pair.input)]).root;
        auto& ends = dying[static_cast<size_t>(s - segment.begin)];
        const auto same = std::find_if(ends.begin(), ends.end(), [&](const Block& b) {
          return b.offset == offsets_[static_cast<size_t>(root)] && b.exact == exact;
        });
        if (value(root).made_by < segment.begin || same == ends.end()) continue;
        offset = same->offset;  // the output takes the input's block over
        ends.erase(same);
        break;
      }
      if (offset < 0) offset = layout.take(bytes);
      offsets_[static_cast<size_t>(v)] = offset;
      placed.push_back(v);
      const int last = value(v).last_use;
      if (last < segment.end)
        dying[static_cast<size_t>(last - segment.begin)].push_back({offset, bytes, exact});
    }
    for (const Block& block : dying[static_cast<size_t>(s - segment.begin)])
      layout.give(block.offset, block.bytes);
  }
  Bytes& arena = arenas_[index];
  const int64_t needed = layout.end();
  // A burst of large sizes does not keep its memory once sizes are small again.
  if (static_cast<int64_t>(arena.size()) > 4 * needed + (int64_t{16} << 20)) arena = {};
  reserve(arena, needed);
  for (const int v : placed) slot(v).data = arena.data() + offsets_[static_cast<size_t>(v)];
}

void Context::bind_step(const PlanStep& step, eval::Environment& environment) {
  const auto index = static_cast<size_t>(&step - plan_.steps().data());
  ops::BindContext bind(
      pointers_.data() + step_slots_[index].inputs, static_cast<int>(step.inputs.size()),
      pointers_.data() + step_slots_[index].outputs, static_cast<int>(step.outputs.size()),
      state_.mutable_data() + step.state_offset, environment.pool().threads());
  step.step->bind(bind);
  if (step.mode == PlanStep::Mode::planned) {
    reserve(scratch_, bind.scratch());
  } else {
    reserve(late_scratch_, bind.scratch());
  }
}

void Context::bind_segment(size_t index, eval::Environment& environment) {
  const Segment& segment = plan_.segments()[index];
  evaluate_dims(segment);
  check_constraints(segment);
  lay_out(segment, index);
  for (int s = segment.begin; s < segment.end; ++s) {
    const PlanStep& step = plan_.steps()[static_cast<size_t>(s)];
    if (step.mode != PlanStep::Mode::planned || step.step->traits().view_of_input >= 0) continue;
    try {
      bind_step(step, environment);
    } catch (const Error& error) {
      if (!error.location().empty()) throw;
      throw Error(error.code(), error.message(), place(*step.node));
    }
  }
  segment_bound_[index] = 1;
  late_sizes_[index] = sizes_;
}

void Context::allocate_outputs(const Segment& segment, std::span<Value> outputs,
                               eval::Environment& environment) {
  for (size_t i = 0; i < plan_.outputs().size(); ++i) {
    const int index = plan_.outputs()[i];
    const int root = value(index).root;
    if (value(root).output_storage != static_cast<int>(i)) continue;
    if (value(root).made_by < segment.begin || value(root).made_by >= segment.end) continue;
    const int64_t bytes = byte_size(value(root).known.type.element, slot(root).count);
    // The view that is the output may have its dims in a later segment; its bytes are the root's.
    Shape shape(slot(root).shape().begin(), slot(root).shape().end());
    Tensor tensor;
    if (outputs[i].is_tensor() && static_cast<int64_t>(outputs[i].tensor().byte_size()) == bytes &&
        outputs[i].tensor().element_type() == value(root).known.type.element) {
      tensor = outputs[i].tensor();
    } else {
      tensor = Tensor(value(root).known.type.element, std::move(shape));
      environment.charge(bytes);
    }
    slot(root).data = tensor.data();
    outputs[i] = Value(std::move(tensor));
  }
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
    Tensor tensor(value(index).known.type.element, Shape(s.dims, s.dims + s.rank));
    environment.charge(static_cast<int64_t>(tensor.byte_size()));
    s.value = Value(std::move(tensor));
    s.data = s.value.tensor().data();
  }
}

void Context::run_planned(const PlanStep& step, eval::Environment& environment) {
  const ops::StepTraits& traits = step.step->traits();
  if (traits.view_of_input >= 0 && step.outputs[0] >= 0 &&
      value(step.outputs[0]).root != step.outputs[0]) {
    make_view(step);
    return;
  }
  if (!traits.allocates_outputs) allocate_boxed(step, environment);
  const auto index = static_cast<size_t>(&step - plan_.steps().data());
  ops::RunContext run(
      pointers_.data() + step_slots_[index].inputs, static_cast<int>(step.inputs.size()),
      pointers_.data() + step_slots_[index].outputs, static_cast<int>(step.outputs.size()),
      state_.data() + step.state_offset, scratch_.mutable_data(), environment);
  step.step->run(run);
  if (traits.allocates_outputs) check_made_shapes(step);
}

// A step that makes its own outputs must keep to the sizes the plan has counted on.
void Context::check_made_shapes(const PlanStep& step) {
  for (const int index : step.outputs) {
    if (index < 0 || !value(index).known.type.is_tensor()) continue;
    ops::Slot& s = slot(index);
    const PlanValue& v = value(index);
    if (!s.value.is_tensor())
      fail_at(place(*step.node), ErrorCode::run_failed, "made no tensor for output '{}'", v.name);
    if (s.value.tensor().element_type() != v.known.type.element) {
      fail_at(place(*step.node), ErrorCode::run_failed, "output '{}' holds {} instead of {}",
              v.name, name_of(s.value.tensor().element_type()), name_of(v.known.type.element));
    }
    if (!v.has_rank()) continue;
    const Shape& shape = s.value.tensor().shape();
    if (!std::equal(shape.begin(), shape.end(), dims_of(index), dims_of(index) + v.rank())) {
      fail_at(place(*step.node), ErrorCode::run_failed,
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
    ops::Slot& s = slot(index);
    if (!s.value.is_tensor()) continue;
    const Tensor& tensor = s.value.tensor();
    if (v.known.type.is_tensor() && v.known.type.element != ElementType::undefined &&
        tensor.element_type() != v.known.type.element) {
      fail_at(place(*step.node), ErrorCode::run_failed, "output '{}' holds {} instead of {}",
              v.name, name_of(tensor.element_type()), name_of(v.known.type.element));
    }
    if (!v.has_rank()) {
      s.dims = tensor.shape().data();
      s.rank = static_cast<int32_t>(tensor.rank());
      s.element = tensor.element_type();
      s.count = tensor.size();
      continue;
    }
    const auto& expected = *v.known.type.shape;
    bool fits = tensor.shape().size() == expected.size();
    for (size_t d = 0; fits && d < expected.size(); ++d) {
      const int64_t size = tensor.shape()[d];
      if (const ir::Symbol* symbol = expected[d].as_symbol()) {
        int64_t& bound = sizes_[static_cast<size_t>(symbol->id)];
        if (bound < 0) bound = size;
        fits = bound == size;
      } else {
        const auto known = expected[d].evaluate(sizes_);
        fits = known && *known == size;
      }
    }
    if (!fits) {
      fail_at(place(*step.node), ErrorCode::run_failed,
              "output '{}' has shape {}, inference said {}", v.name, to_string(tensor.shape()),
              v.known.type.to_string());
    }
    std::copy(tensor.shape().begin(), tensor.shape().end(), dims_of(index));
    s.dims = dims_of(index);
    s.rank = v.rank();
    s.count = tensor.size();
  }
}

void Context::run_late(const PlanStep& step, eval::Environment& environment) {
  const auto index = static_cast<size_t>(&step - plan_.steps().data());
  const ops::StepTraits& traits = step.step->traits();
  for (const int output : step.outputs) {
    if (output >= 0) slot(output).value = Value();
  }
  if (!traits.allocates_outputs) {
    // The same inference as before the run, now with all sizes and values at hand.
    const infer::Binding binding = infer::bind_node(*step.node);
    ir::SymbolTable symbols;
    std::vector<ops::Constraint> constraints;
    const infer::Findings findings{&symbols, &constraints, {}};
    const size_t own = step.node->inputs.size();
    std::vector<Known> known(own);
    std::vector<const Known*> pointers(own, nullptr);
    ops::RunContext view(pointers_.data() + step_slots_[index].inputs,
                         static_cast<int>(step.inputs.size()),
                         pointers_.data() + step_slots_[index].outputs,
                         static_cast<int>(step.outputs.size()), nullptr, nullptr, environment);
    for (size_t i = 0; i < own; ++i) {
      if (step.inputs[i] < 0) continue;
      const Value given = view.in_value(static_cast<int>(i));
      known[i] = given.is_tensor() ? Known::of(given.tensor()) : Known::of(ir::type_of(given));
      pointers[i] = &known[i];
    }
    const std::vector<Known> made =
        infer::infer_node(*step.node, binding, pointers, findings, nullptr);
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      if (step.outputs[o] < 0) continue;
      const auto shape = made[o].type.concrete_shape();
      if (!shape)
        fail_at(place(*step.node), ErrorCode::internal, "inference left output {} open: {}", o,
                made[o].type.to_string());
      Tensor tensor(made[o].type.element, *shape);
      environment.charge(static_cast<int64_t>(tensor.byte_size()));
      ops::Slot& s = slot(step.outputs[o]);
      s.value = Value(std::move(tensor));
      s.data = s.value.tensor().data();
    }
    learn_sizes(step);
  }
  bind_step(step, environment);
  ops::RunContext run(
      pointers_.data() + step_slots_[index].inputs, static_cast<int>(step.inputs.size()),
      pointers_.data() + step_slots_[index].outputs, static_cast<int>(step.outputs.size()),
      state_.data() + step.state_offset, late_scratch_.mutable_data(), environment);
  step.step->run(run);
  if (traits.allocates_outputs) learn_sizes(step);
}

void Context::run_deferred(const PlanStep& step, eval::Environment& environment) {
  eval::Frame frame;
  std::vector<Value> inputs;
  const size_t own = step.node->inputs.size();
  const auto index = static_cast<size_t>(&step - plan_.steps().data());
  ops::RunContext view(pointers_.data() + step_slots_[index].inputs,
                       static_cast<int>(step.inputs.size()), nullptr, 0, nullptr, nullptr,
                       environment);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    Value given = step.inputs[i] < 0 ? Value() : view.in_value(static_cast<int>(i));
    if (i < own)
      inputs.push_back(given);
    else
      frame.set(step.captured[i - own], std::move(given));
  }
  std::vector<Value> made = eval::run_node(*step.node, inputs, frame, environment);
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

void Context::run_segment(size_t index, std::span<Value> outputs, eval::Environment& environment) {
  const Segment& segment = plan_.segments()[index];
  const bool bound = segment_bound_[index] && (index == 0 || late_sizes_[index] == sizes_);
  if (!bound) bind_segment(index, environment);
  allocate_outputs(segment, outputs, environment);
  const bool watched = environment.cancel != nullptr || environment.deadline.has_value();
  for (int s = segment.begin; s < segment.end; ++s) {
    const PlanStep& step = plan_.steps()[static_cast<size_t>(s)];
    if (watched) environment.check_cancelled();
    try {
      switch (step.mode) {
        case PlanStep::Mode::planned: run_planned(step, environment); break;
        case PlanStep::Mode::late: run_late(step, environment); break;
        case PlanStep::Mode::deferred: run_deferred(step, environment); break;
      }
    } catch (const ShapeMismatch& error) {
      throw Error(error.code(), error.message(),
                  fmt::format("{}, {}", place(*step.node), error.location()));
    } catch (const Error& error) {
      if (!error.location().empty()) throw;
      throw Error(error.code(), error.message(), place(*step.node));
    }
  }
}

Value Context::owned_value(int index) {
  const PlanValue& v = value(index);
  ops::Slot& s = slot(index);
  if (s.value.kind() != Value::Kind::none) {
    if (s.value.is_tensor()) {
      const Shape shape(s.dims, s.dims + s.rank);
      return ops::to_owned(
          s.value.tensor().shape() == shape ? s.value : Value(s.value.tensor().reshaped(shape)));
    }
    return s.value;
  }
  if (!v.known.type.is_tensor()) return {};
  return ops::to_owned(Value(Tensor::view(s.element, Shape(s.dims, s.dims + s.rank), s.data,
                                          static_cast<size_t>(byte_size(s.element, s.count)))));
}

void Context::give_outputs(std::span<Value> outputs) {
  for (size_t i = 0; i < plan_.outputs().size(); ++i) {
    const int index = plan_.outputs()[i];
    const PlanValue& root = value(value(index).root);
    if (root.output_storage == static_cast<int>(i)) {
      const Shape shape(slot(index).dims, slot(index).dims + slot(index).rank);
      if (outputs[i].tensor().shape() != shape)
        outputs[i] = Value(outputs[i].tensor().reshaped(shape));
      continue;
    }
    Value made = owned_value(index);
    if (outputs[i].is_tensor() && made.is_tensor() &&
        outputs[i].tensor().shape() == made.tensor().shape() &&
        outputs[i].tensor().element_type() == made.tensor().element_type() &&
        made.tensor().element_type() != ElementType::string) {
      Tensor target = outputs[i].tensor();  // the caller's buffer
      if (target.byte_size() > 0)
        std::memcpy(target.mutable_data(), made.tensor().data(), target.byte_size());
    } else {
      outputs[i] = std::move(made);
    }
  }
}

// Nothing of a run outlives it in an idle context but its working memory.
void Context::drop_run_values() {
  held_inputs_.clear();
  for (size_t i = 0; i < slots_.size(); ++i) {
    const PlanValue& v = plan_.values()[i];
    if (v.source != PlanValue::Source::constant && slots_[i].value.kind() != Value::Kind::none)
      slots_[i].value = Value();
  }
}

void Context::run(std::span<const Value> inputs, std::span<ops::Slot* const> captured,
                  std::span<Value> outputs, eval::Environment& environment) {
  struct Cleanup {
    Context& context;
    ~Cleanup() { context.drop_run_values(); }
  } cleanup{*this};
  if (!take_inputs(inputs, captured)) segment_bound_[0] = 0;
  // Sizes that the last run decided are open again.
  if (plan_.segments().size() > 1) {
    for (size_t id = 0; id < sizes_.size(); ++id) {
      if (plan_.symbols()[static_cast<int>(id)].decided_by_run) sizes_[id] = -1;
    }
    for (const int index : plan_.inputs()) {
      if (value(index).has_rank())
        match(index, {dims_of(index), static_cast<size_t>(value(index).rank())});
    }
    for (const int index : plan_.captured()) {
      if (value(index).has_rank())
        match(index, {dims_of(index), static_cast<size_t>(value(index).rank())});
    }
  }
  for (size_t s = 0; s < plan_.segments().size(); ++s) run_segment(s, outputs, environment);
  give_outputs(outputs);
}

}  // namespace sardonyx::run
