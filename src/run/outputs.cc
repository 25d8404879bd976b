// What the caller gets: memory for outputs before the steps run, values after.
#include <cstring>

#include "ir/origin.h"
#include "run/context.h"

namespace sardonyx::run {

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
      try {
        tensor = ops::charged_tensor(environment, value(root).known.type.element, std::move(shape),
                                     &given_outputs_[i]);
      } catch (const Error& error) {
        throw Error(error.code(), error.message(), ir::place_of(*step(value(root).made_by).node));
      }
    }
    slot(root).data = tensor.data();
    outputs[i] = Value(std::move(tensor));
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
    if (outputs[i].is_tensor() && slot(index).value.is_tensor() &&
        outputs[i].tensor().data() == slot(index).value.tensor().data() &&
        outputs[i].tensor().shape() == slot(index).value.tensor().shape())
      continue;  // made where the caller wants it
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

}  // namespace sardonyx::run
