#include "ops/step.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"

namespace sardonyx::ops {

Value RunContext::in_value(int i) const {
  const Slot& slot = *inputs_[i];
  if (slot.element == ElementType::undefined && !slot.value.is_tensor()) return slot.value;
  if (slot.value.kind() != Value::Kind::none) {
    // A tensor slot may see its value under another shape than the value's own.
    if (!slot.value.is_tensor()) return slot.value;
    const Tensor& tensor = slot.value.tensor();
    const bool same =
        std::equal(tensor.shape().begin(), tensor.shape().end(), slot.dims, slot.dims + slot.rank);
    return same ? slot.value : Value(tensor.reshaped({slot.dims, slot.dims + slot.rank}));
  }
  return Tensor::view(slot.element, {slot.dims, slot.dims + slot.rank}, slot.data,
                      static_cast<size_t>(byte_size(slot.element, slot.count)));
}

Sequence RunContext::take_sequence(int i) const {
  Value& value = inputs_[i]->value;
  const bool granted =
      in_place_ != nullptr &&
      std::ranges::any_of(*in_place_, [&](const InPlace& p) { return p.input == i; });
  return granted ? value.take_sequence() : value.sequence();
}

void RunContext::set_output(int i, Value value) {
  if (value.is_tensor() && value.tensor().owner()) {
    const void* data = value.tensor().data();
    // Steps with many outputs would compare each with all inputs.
    const bool shared = value.tensor().owner().use_count() > 1 &&
                        std::any_of(inputs_, inputs_ + input_count_, [&](const Slot* input) {
                          return input != nullptr && input->data == data;
                        });
    if (!shared) environment_.charge(static_cast<int64_t>(value.tensor().byte_size()));
  }
  hold_output(i, std::move(value));
}

void RunContext::hold_output(int i, Value value) {
  Slot& slot = *outputs_[i];
  slot.value = std::move(value);
  if (slot.value.is_tensor()) {
    const Tensor& tensor = slot.value.tensor();
    slot.data = tensor.data();
    slot.dims = tensor.shape().data();
    slot.rank = static_cast<int32_t>(tensor.rank());
    slot.element = tensor.element_type();
    slot.count = tensor.size();
  }
}

void* RunContext::allocate_output(int i, Shape shape) {
  hold_output(i, Value(charged_tensor(environment_, outputs_[i]->element, std::move(shape),
                                      outputs_[i]->blocks)));
  return const_cast<void*>(outputs_[i]->data);
}

Value to_owned(const Value& value) {
  if (!value.is_tensor()) return value;
  const Tensor& tensor = value.tensor();
  if (tensor.owner() || tensor.size() == 0) return value;
  Tensor copy(tensor.element_type(), tensor.shape());
  std::memcpy(copy.mutable_data(), tensor.data(), tensor.byte_size());
  return copy;
}

std::unique_ptr<Step> make_view_step(std::string kernel, int input) {
  auto step = make_step(std::move(kernel), [](RunContext& run) {
    // Only reached where the executor could not make the output a view.
    const Slot& in = *run.input_slots()[0];
    if (in.element == ElementType::string) {
      std::copy_n(run.in<std::string>(0), in.count, run.out<std::string>(0));
    } else if (in.count > 0) {
      std::memcpy(run.out_data(0), in.data, static_cast<size_t>(byte_size(in.element, in.count)));
    }
  });
  step->traits().view_of_input = input;
  return step;
}

}  // namespace sardonyx::ops
