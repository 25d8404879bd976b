// What the caller gets: memory for outputs before the steps run, values after.
#include <algorithm>
#include <cstring>

#include "ir/origin.h"
#include "run/context.h"
#include "run/output_memory.h"

namespace sardonyx::run {

void Context::allocate_outputs(const Segment& segment, std::span<Value> outputs,
                               eval::Environment& environment) {
  for (size_t i = 0; i < plan_.outputs().size(); ++i) {
    const int index = plan_.outputs()[i];
    const int root = value(index).root;
    if (value(root).output_storage != static_cast<int>(i)) continue;
    if (value(root).made_by < segment.begin || value(root).made_by >= segment.end) continue;
    const int64_t bytes = byte_size(value(root).known.type.element, slot(root).count);
    const auto is_here = [&](const Value& given) {
      return given.is_tensor() && static_cast<int64_t>(given.tensor().byte_size()) == bytes &&
             given.tensor().element_type() == value(root).known.type.element;
    };
    if (!is_here(outputs[i])) {
      // The view that is the output may have its dims in a later segment; its bytes are the root's.
      Shape shape(slot(root).shape().begin(), slot(root).shape().end());
      try {
        const ElementType type = value(root).known.type.element;
        outputs[i] = output_memory_ != nullptr
                         ? Value(output_memory_->make(environment, type, std::move(shape)))
                         : Value(ops::charged_tensor(environment, type, std::move(shape),
                                                     &given_outputs_[i]));
      } catch (const Error& error) {
        throw Error(error.code(), error.message(), ir::place_of(*step(value(root).made_by).node));
      }
    }
    slot(root).data = outputs[i].tensor().data();
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
      const std::span<const int64_t> shape = slot(index).shape();
      if (!std::ranges::equal(outputs[i].tensor().shape(), shape))
        outputs[i] = Value(outputs[i].tensor().reshaped(Shape(shape.begin(), shape.end())));
      continue;
    }
    if (!copy_to(index, outputs[i])) outputs[i] = owned_value(index);
  }
}

// Puts the value where the caller wants it; false where that is nowhere, or for something else.
bool Context::copy_to(int index, const Value& wanted) {
  const ops::Slot& s = slot(index);
  const bool is_tensor = s.value.kind() == Value::Kind::none ? value(index).known.type.is_tensor()
                                                             : s.value.is_tensor();
  if (!wanted.is_tensor() || !is_tensor) return false;
  const Tensor& target = wanted.tensor();
  if (target.element_type() != s.element || s.element == ElementType::string ||
      !std::ranges::equal(target.shape(), s.shape()))
    return false;
  const void* const from = s.value.is_tensor() ? s.value.tensor().data() : s.data;
  if (target.byte_size() > 0 && target.data() != from)
    std::memmove(const_cast<void*>(target.data()), from, target.byte_size());
  return true;
}

}  // namespace sardonyx::run
