#include "sardonyx/binding.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/fail.h"
#include "base/moved_from.h"
#include "base/similar.h"
#include "ir/tensor.h"
#include "session/running.h"

namespace sardonyx {
namespace {

size_t place_among(const std::vector<ValueDescription>& values, std::string_view name,
                   const char* what) {
  const auto found = std::ranges::find(values, name, &ValueDescription::name);
  if (found != values.end()) return static_cast<size_t>(found - values.begin());
  std::vector<std::string_view> known;
  for (const ValueDescription& value : values) known.push_back(value.name);
  const std::string_view meant = closest(name, known);
  fail_at(fmt::format("{} '{}'", what, name), ErrorCode::bad_input,
          "the model has no {} of this name{}", what,
          meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

std::string text_of(const Value& value) {
  if (!value.is_tensor()) return std::string(name_of(value.kind()));
  return fmt::format("{}{}", name_of(value.tensor().element_type()),
                     to_string(value.tensor().shape()));
}

bool fits(const Value& made, const Tensor& wanted) {
  return made.is_tensor() && made.tensor().element_type() == wanted.element_type() &&
         made.tensor().shape() == wanted.shape();
}

bool is_same_memory(const Value& made, const Tensor& wanted) {
  return fits(made, wanted) && made.tensor().data() == wanted.data();
}

}  // namespace

struct Binding::Implementation {
  std::shared_ptr<const Session::Implementation> session;
  std::vector<Value> inputs, outputs;
  struct Target {
    Tensor memory;             // of the caller's; empty: the run allocates
    bool is_ours = false;      // what the output holds was made by a run, for nobody but this
    bool is_an_input = false;  // an input lies there, so that it is written to when the run is over
  };
  std::vector<Target> targets;  // of the outputs
  bool is_checked = true;       // that no memory is bound twice

  const std::vector<ValueDescription>& output_descriptions() const { return outputs_of(*session); }
  std::string place(size_t output) const {
    return fmt::format("output '{}'", output_descriptions()[output].name);
  }
  void look_for_overlaps();
  void begin_output(size_t i);
  void end_output(size_t i);
  void end_memory(size_t i);
};

void Binding::Implementation::look_for_overlaps() {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].memory.empty()) continue;
    const Tensor& memory = targets[i].memory;
    targets[i].is_an_input =
        std::ranges::any_of(inputs, [&](const Value& input) { return ir::overlap(memory, input); });
    for (size_t k = 0; k < i; ++k) {
      if (!targets[k].memory.empty() && ir::overlap(memory, targets[k].memory))
        fail_at(place(i), ErrorCode::bad_input, "is bound to memory of {}", place(k));
    }
  }
}

// What others hold must not change. That it is let go on another thread is seen together with what
// that thread did before: taking part in the count orders the two.
void Binding::Implementation::begin_output(size_t i) {
  const Target& target = targets[i];
  if (target.is_an_input) {
    outputs[i] = Value();
    return;
  }
  if (!target.memory.empty()) {
    if (!is_same_memory(outputs[i], target.memory)) outputs[i] = target.memory;
    return;
  }
  if (outputs[i].kind() == Value::Kind::none) return;
  bool is_free = target.is_ours;
  if (is_free) {
    const std::shared_ptr<const void>& owner = outputs[i].tensor().owner();
    { const std::shared_ptr<const void> counted = owner; }
    is_free = owner.use_count() == 1;
  }
  if (!is_free) outputs[i] = Value();
}

// A value that the run has just made, and that neither an input nor a constant shares its memory
// with, nobody else holds.
void Binding::Implementation::end_output(size_t i) {
  Target& target = targets[i];
  if (target.memory.empty()) {
    target.is_ours = outputs[i].is_tensor() && outputs[i].tensor().owner().use_count() == 1 &&
                     outputs[i].tensor().element_type() != ElementType::string;
    return;
  }
  if (is_same_memory(outputs[i], target.memory)) return;
  if (target.is_an_input && fits(outputs[i], target.memory)) return;
  const std::string made = text_of(outputs[i]);
  fail_at(place(i), ErrorCode::bad_input, "is {}, and is bound to memory for {}", made,
          text_of(target.memory));
}

// Writes an output to its place, which is an input's. What other outputs have there they keep.
void Binding::Implementation::end_memory(size_t i) {
  if (!targets[i].is_an_input) return;
  const Tensor& memory = targets[i].memory;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (k != i && ir::overlap(memory, outputs[k])) outputs[k] = ir::apart_from(memory, outputs[k]);
  }
  const Tensor& made = outputs[i].tensor();
  if (made.byte_size() > 0)
    std::memmove(const_cast<void*>(memory.data()), made.data(), made.byte_size());
  outputs[i] = memory;
}

Binding::Binding(const Session& session) : implementation_(std::make_unique<Implementation>()) {
  implementation_->inputs.resize(session.inputs().size());
  implementation_->session = session.implementation_;
  implementation_->outputs.resize(session.outputs().size());
  implementation_->targets.resize(session.outputs().size());
}

Binding::~Binding() = default;
Binding::Binding(Binding&&) noexcept = default;
Binding& Binding::operator=(Binding&&) noexcept = default;

void Binding::bind_input(std::string_view name, Value value) {
  Implementation& b = behind(implementation_, "binding");
  b.inputs[place_among(inputs_of(*b.session), name, "input")] = std::move(value);
  b.is_checked = false;
}

void Binding::bind_input(std::string_view name, const TensorRef& memory) {
  bind_input(name, Value(tensor_of(memory)));
}

void Binding::unbind_input(std::string_view name) { bind_input(name, Value()); }

void Binding::bind_output(std::string_view name, const MutableTensorRef& memory) {
  Implementation& b = behind(implementation_, "binding");
  const size_t at = place_among(b.output_descriptions(), name, "output");
  if (!is_dense(memory))
    fail_at(b.place(at), ErrorCode::bad_input,
            "is bound to memory with strides {}; an output is written dense, row-major",
            to_string(memory.strides));
  Tensor wanted = tensor_of(memory);
  const auto address = reinterpret_cast<uintptr_t>(wanted.data());
  const auto width = static_cast<uintptr_t>(std::clamp(bit_width(wanted.element_type()) / 8, 1, 8));
  if (wanted.size() > 0 && address % width != 0)
    fail_at(b.place(at), ErrorCode::bad_input,
            "is bound to memory at an address that is no multiple of {}, as {} needs", width,
            name_of(wanted.element_type()));
  b.targets[at] = {std::move(wanted), false};
  b.outputs[at] = Value();
  b.is_checked = false;
}

void Binding::bind_output(std::string_view name) {
  Implementation& b = behind(implementation_, "binding");
  const size_t at = place_among(b.output_descriptions(), name, "output");
  b.targets[at] = {};
  b.outputs[at] = Value();
}

void Binding::run(const RunOptions& options) {
  Implementation& b = behind(implementation_, "binding");
  if (!b.is_checked) b.look_for_overlaps();
  b.is_checked = true;
  for (size_t i = 0; i < b.outputs.size(); ++i) b.begin_output(i);
  try {
    run_session(*b.session, b.inputs, b.outputs, options);
    for (size_t i = 0; i < b.outputs.size(); ++i) b.end_output(i);
    for (size_t i = 0; i < b.outputs.size(); ++i) b.end_memory(i);
  } catch (...) {
    for (Value& output : b.outputs) output = Value();
    throw;
  }
}

std::span<const Value> Binding::outputs() const {
  return behind(implementation_, "binding").outputs;
}

const Value& Binding::output(std::string_view name) const {
  const Implementation& b = behind(implementation_, "binding");
  return b.outputs[place_among(b.output_descriptions(), name, "output")];
}

}  // namespace sardonyx
