#include "run/output_memory.h"

#include <cstdint>
#include <cstring>

#include "base/checked.h"
#include "base/fail.h"

namespace sardonyx::run {
namespace {

constexpr size_t alignment = 64;

// Memory of the allocator's, which it gets back when nobody holds it any more.
std::shared_ptr<void> allocated(const std::shared_ptr<Allocator>& allocator, size_t bytes) {
  void* const memory = allocator->allocate(bytes, alignment);
  if (memory == nullptr)
    fail(ErrorCode::out_of_memory, "the allocator has no {} bytes for an output", bytes);
  std::shared_ptr<void> owned(memory,
                              [allocator, bytes](void* at) { allocator->release(at, bytes); });
  if (reinterpret_cast<uintptr_t>(memory) % alignment != 0)
    fail(ErrorCode::bad_input, "the allocator's memory lies at no multiple of {} bytes", alignment);
  return owned;
}

}  // namespace

Tensor OutputMemory::make(ops::RunEnvironment& environment, ElementType type, Shape shape) {
  const auto count = checked_count(shape);
  if (!count || *count == 0 || !is_known(type) || type == ElementType::string)
    return ops::charged_tensor(environment, type, std::move(shape));
  const int64_t bytes = byte_size(type, *count);
  environment.charge(bytes);
  const std::shared_ptr<void> memory = allocated(allocator_, static_cast<size_t>(bytes));
  made_.push_back(memory.get());
  return Tensor::view(type, std::move(shape), memory.get(), static_cast<size_t>(bytes), memory);
}

void OutputMemory::bring(ops::RunEnvironment& environment, std::span<Value> outputs,
                         std::span<const void* const> before) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_tensor()) continue;
    const Tensor& tensor = outputs[i].tensor();
    const bool is_there =
        tensor.data() == before[i] || std::ranges::count(made_, tensor.data()) > 0;
    if (is_there || tensor.byte_size() == 0 || tensor.element_type() == ElementType::string)
      continue;
    Tensor moved = make(environment, tensor.element_type(), tensor.shape());
    std::memcpy(moved.mutable_data(), tensor.data(), tensor.byte_size());
    outputs[i] = Value(std::move(moved));
  }
}

}  // namespace sardonyx::run
