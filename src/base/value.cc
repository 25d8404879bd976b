#include "sardonyx/value.h"

#include <atomic>
#include <memory>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/value_kind.h"

namespace sardonyx {
namespace {

int64_t sound_count(const Shape& shape) {
  const auto count = checked_count(shape);
  if (!count)
    fail(ErrorCode::bad_input, "shape {} has no sound number of elements", to_string(shape));
  return *count;
}

}  // namespace

std::string to_string(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

Tensor::Tensor(ElementType type, Shape shape) : type_(type), shape_(std::move(shape)) {
  size_ = sound_count(shape_);
  if (type == ElementType::string) {
    const auto strings = std::make_shared<std::vector<std::string>>();
    try {
      strings->resize(static_cast<size_t>(size_));
    } catch (const std::exception&) {  // too many for memory, or for a vector
      fail(ErrorCode::out_of_memory, "cannot allocate {} strings", size_);
    }
    data_ = strings->data();
    owner_ = strings;
    return;
  }
  if (!is_known(type))
    fail(ErrorCode::bad_input, "a tensor cannot be of element type {}", static_cast<int>(type));
  bytes_ = static_cast<size_t>(sardonyx::byte_size(type, size_));
  Bytes block = Bytes::allocate(bytes_);
  data_ = block.data();
  owner_ = block.owner();
}

Tensor Tensor::view(ElementType type, Shape shape, const void* data, size_t bytes,
                    std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.size_ = sound_count(shape);
  if (!is_known(type) || type == ElementType::string) {
    fail(ErrorCode::bad_input, "a view cannot be of element type {}", name_of(type));
  }
  tensor.type_ = type;
  tensor.bytes_ = static_cast<size_t>(sardonyx::byte_size(type, tensor.size_));
  if (tensor.bytes_ > bytes) {
    fail(ErrorCode::bad_input, "{} elements of {} need {} bytes, the memory given has {}",
         tensor.size_, name_of(type), tensor.bytes_, bytes);
  }
  tensor.shape_ = std::move(shape);
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::reshaped(Shape shape) const {
  if (sound_count(shape) != size_) {
    fail(ErrorCode::bad_input, "{} elements of shape {} cannot take the shape {}", size_,
         to_string(shape_), to_string(shape));
  }
  Tensor tensor = *this;
  tensor.shape_ = std::move(shape);
  return tensor;
}

void Tensor::require(ElementType asked) const {
  if (type_ != asked) {
    fail(ErrorCode::bad_input, "the tensor holds {}, asked for {}", name_of(type_), name_of(asked));
  }
}

std::string_view name_of(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::none: return "nothing";
    case Value::Kind::tensor: return "tensor";
    case Value::Kind::sparse_tensor: return "sparse tensor";
    case Value::Kind::sequence: return "sequence";
    case Value::Kind::map: return "map";
    case Value::Kind::optional: return "optional";
  }
  return "nothing";
}

namespace {
[[noreturn]] void wrong_kind(Value::Kind found, Value::Kind asked) {
  fail(ErrorCode::bad_input, "the value is {}, asked for {}", with_article(found),
       with_article(asked));
}
}  // namespace

const Tensor& Value::tensor() const {
  if (const auto* held = std::get_if<Tensor>(&held_)) return *held;
  wrong_kind(kind(), Kind::tensor);
}
const SparseTensor& Value::sparse_tensor() const {
  if (kind() == Kind::sparse_tensor) return *std::get<2>(held_);
  wrong_kind(kind(), Kind::sparse_tensor);
}
const Sequence& Value::sequence() const {
  if (kind() == Kind::sequence) return *std::get<3>(held_);
  wrong_kind(kind(), Kind::sequence);
}
Sequence Value::take_sequence() {
  if (kind() != Kind::sequence) wrong_kind(kind(), Kind::sequence);
  const std::shared_ptr<Sequence> shared = std::move(std::get<3>(held_));
  held_ = std::monostate();
  if (shared.use_count() != 1) return *shared;
  // Whoever let go of it on another thread has read it before.
  std::atomic_thread_fence(std::memory_order_acquire);
  return std::move(*shared);
}
const Map& Value::map() const {
  if (kind() == Kind::map) return *std::get<4>(held_);
  wrong_kind(kind(), Kind::map);
}
const Optional& Value::optional() const {
  if (kind() == Kind::optional) return *std::get<5>(held_);
  wrong_kind(kind(), Kind::optional);
}

}  // namespace sardonyx
