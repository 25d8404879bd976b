#include "run/context.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "base/checked.h"
#include "base/fail.h"
#include "ir/origin.h"
#include "ops/step_memory.h"
#include "run/observer.h"

namespace sardonyx::run {

namespace {

// Apart, so that runs of small models do not pay for it.
[[gnu::noinline]] void let_go_of_sequences(std::span<Value> given) {
  for (Value& one : given) {
    if (one.kind() == Value::Kind::sequence) one = Value();
  }
}

}  // namespace

Context::Context(const Plan& plan, int threads)
    : plan_(plan),
      threads_(threads),
      slots_(plan.values().size()),
      dims_(static_cast<size_t>(plan.dims_count()), 0),
      sizes_(static_cast<size_t>(plan.symbols().size()), -1),
      segment_bound_(plan.segments().size(), 0),
      learned_(sizes_.size(), -1),
      changed_at_(sizes_.size(), 0),
      bound_at_(plan.segments().size(), 0),
      counts_(plan.values().size(), 0),
      arenas_(plan.segments().size()),
      offsets_(plan.values().size(), -1),
      given_outputs_(plan.outputs().size()),
      state_(Bytes::allocate(static_cast<size_t>(plan.state_bytes()))) {
  for (const int output : plan.outputs())
    ranked_outputs_ &= plan.values()[static_cast<size_t>(output)].has_rank();
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
    if (v.source == PlanValue::Source::step && v.boxed && v.known.type.is_tensor())
      s.blocks = &boxed_blocks_.emplace_back();
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

int64_t Context::working_bytes() const {
  int64_t bytes = static_cast<int64_t>(scratch_.size() + late_scratch_.size() + state_.size());
  for (const Bytes& arena : arenas_) bytes += static_cast<int64_t>(arena.size());
  return bytes;
}

int64_t Context::arena_bytes() const {
  int64_t bytes = working_bytes();
  for (const RecycledBlocks& given : given_outputs_)
    bytes += static_cast<int64_t>(given.waiting_bytes());
  for (const RecycledBlocks& blocks : boxed_blocks_)
    bytes += static_cast<int64_t>(blocks.waiting_bytes());
  return bytes;
}

bool Context::run_segment(size_t index, std::span<Value> outputs, eval::Environment& environment) {
  const Segment& segment = plan_.segments()[index];
  const bool bound = segment_bound_[index] && (index == 0 || bound_at_[index] >= newest_change_);
  if (!bound) bind_segment(index, environment);
  allocate_outputs(segment, outputs, environment);
  if (environment.observer == nullptr) {
    run_steps<false>(segment, environment);
  } else {
    run_steps<true>(segment, environment);
  }
  return !bound;
}

template <bool observed>
void Context::run_steps(const Segment& segment, eval::Environment& environment) {
  const bool watched = environment.is_watched();
  for (int s = segment.begin; s < segment.end; ++s) {
    const PlanStep& step = this->step(s);
    if (watched) environment.check_cancelled();
    if constexpr (observed) environment.observer->begin_step(s);
    try {
      switch (step.mode) {
        case PlanStep::Mode::planned: run_planned(s, environment); break;
        case PlanStep::Mode::data_dependent: run_data_dependent(s, environment); break;
        case PlanStep::Mode::interpreted: run_interpreted(s, environment); break;
      }
    } catch (const ShapeMismatch& error) {
      throw Error(error.code(), error.message(),
                  fmt::format("{}, {}", ir::place_of(*step.node), error.location()));
    } catch (const Error& error) {
      if (!error.location().empty()) throw;
      throw reason_of(s, error, environment);
    } catch (const std::bad_alloc&) {
      ops::fail_for_memory(*step.node);
    } catch (const std::length_error&) {
      ops::fail_for_memory(*step.node);
    }
    if constexpr (observed) environment.observer->end_step(s, context_of(s, scratch_, environment));
  }
}

// Nothing of a run outlives it in an idle context but its working memory.
void Context::drop_run_values() {
  if (!held_inputs_.empty()) held_inputs_.clear();
  run_outputs_ = {};
  output_memory_ = nullptr;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const PlanValue& v = plan_.values()[i];
    if (v.source != PlanValue::Source::constant && slots_[i].value.kind() != Value::Kind::none)
      slots_[i].value = Value();
  }
}

bool Context::run(std::span<const Value> inputs, std::span<ops::Slot* const> captured,
                  std::span<Value> outputs, eval::Environment& environment, OutputMemory* memory,
                  std::span<Value> given) {
  struct Cleanup {
    Context& context;
    Observer* observer;
    ~Cleanup() {
      if (observer != nullptr) observer->end_plan();
      context.drop_run_values();
    }
  } cleanup{*this, nullptr};
  environment.charge(working_bytes());
  run_outputs_ = outputs;
  output_memory_ = memory;
  newest_change_ = 0;
  if (!take_inputs(inputs, captured, !given.empty())) segment_bound_[0] = 0;
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
  if (!given.empty()) let_go_of_sequences(given);
  if (environment.observer != nullptr) {
    environment.observer->begin_plan(plan_);
    cleanup.observer = environment.observer;
  }
  bool anew = !ranked_outputs_;
  for (size_t s = 0; s < plan_.segments().size(); ++s) anew |= run_segment(s, outputs, environment);
  give_outputs(outputs);
  return anew;
}

}  // namespace sardonyx::run
