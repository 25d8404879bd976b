// What flows into and out of a model: tensors, and the standard's other kinds of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sardonyx/element_type.h"
#include "sardonyx/error.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

using Shape = std::vector<int64_t>;

// "[2,3,224,224]"
std::string to_string(std::span<const int64_t> shape);

template <class T>
struct element_type_of;  // defined for the C++ types that stand for one element
template <>
struct element_type_of<float> {
  static constexpr auto value = ElementType::float32;
};
template <>
struct element_type_of<double> {
  static constexpr auto value = ElementType::float64;
};
template <>
struct element_type_of<int8_t> {
  static constexpr auto value = ElementType::int8;
};
template <>
struct element_type_of<int16_t> {
  static constexpr auto value = ElementType::int16;
};
template <>
struct element_type_of<int32_t> {
  static constexpr auto value = ElementType::int32;
};
template <>
struct element_type_of<int64_t> {
  static constexpr auto value = ElementType::int64;
};
template <>
struct element_type_of<uint8_t> {
  static constexpr auto value = ElementType::uint8;
};
template <>
struct element_type_of<uint16_t> {
  static constexpr auto value = ElementType::uint16;
};
template <>
struct element_type_of<uint32_t> {
  static constexpr auto value = ElementType::uint32;
};
template <>
struct element_type_of<uint64_t> {
  static constexpr auto value = ElementType::uint64;
};
template <>
struct element_type_of<bool> {
  static constexpr auto value = ElementType::boolean;
};
template <>
struct element_type_of<std::string> {
  static constexpr auto value = ElementType::string;
};

// A dense tensor, row-major. Cheap to copy: copies share the elements. Treat the elements as
// immutable once a tensor is shared; `mutable_*` is for whoever just made it. Element types below
// 8 bits are packed, first element in the lowest bits. Safe to read from many threads.
class Tensor {
 public:
  Tensor() = default;  // no tensor: element_type() is undefined
  // Uninitialised elements (strings: empty), aligned to 64 bytes. Throws Error for a shape that
  // is negative, overflows, or cannot be allocated.
  Tensor(ElementType type, Shape shape);

  template <class T>
  static Tensor of(std::span<const T> elements, Shape shape);  // copies; throws Error (bad_input)
  template <class T>
  static Tensor of(std::initializer_list<T> elements, Shape shape) {
    return of(std::span<const T>(elements.begin(), elements.size()), std::move(shape));
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({value}, {});
  }

  // A view of memory that somebody else owns: `owner` (may be null) is kept alive by the tensor
  // and its copies; without one the caller keeps the memory valid. Not for strings. Throws Error
  // (bad_input) where `bytes` is smaller than type and shape need.
  static Tensor view(ElementType type, Shape shape, const void* data, size_t bytes,
                     std::shared_ptr<const void> owner = nullptr);

  ElementType element_type() const { return type_; }
  bool empty() const { return type_ == ElementType::undefined; }
  const Shape& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  int64_t size() const { return size_; }  // elements
  size_t byte_size() const { return bytes_; }

  const void* data() const { return data_; }  // the first element
  void* mutable_data() { return const_cast<void*>(data_); }

  // The elements as T; throws Error (bad_input) where T is not this tensor's element type.
  template <class T>
  std::span<const T> elements() const {
    require(element_type_of<T>::value);
    return {static_cast<const T*>(data_), static_cast<size_t>(size_)};
  }
  template <class T>
  std::span<T> mutable_elements() {
    require(element_type_of<T>::value);
    return {static_cast<T*>(mutable_data()), static_cast<size_t>(size_)};
  }

  // The same elements under another shape of the same count; throws Error otherwise.
  Tensor reshaped(Shape shape) const;
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  void require(ElementType asked) const;

  ElementType type_ = ElementType::undefined;
  Shape shape_;
  int64_t size_ = 0;
  size_t bytes_ = 0;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

template <class T>
Tensor Tensor::of(std::span<const T> elements, Shape shape) {  // as declared above
  Tensor tensor(element_type_of<T>::value, std::move(shape));
  if (static_cast<int64_t>(elements.size()) != tensor.size()) {
    throw Error(ErrorCode::bad_input, "the number of elements does not fit the shape");
  }
  std::copy(elements.begin(), elements.end(), tensor.mutable_elements<T>().begin());
  return tensor;
}

// A sparse tensor in coordinate form: values [nnz], indices int64 [nnz] (linear) or [nnz, rank].
struct SparseTensor {
  Tensor values;
  Tensor indices;
  Shape shape;
};

class Value;

struct Sequence {  // values of one type, in order
  std::vector<Value> items;
};

// `keys` is a 1-D tensor of any type that the standard allows for keys: integers or strings.
struct Map {
  Tensor keys;
  std::vector<Value> values;  // values[i] belongs to keys[i]
};

// An optional that may hold a tensor or a sequence.
struct Optional {
  std::unique_ptr<Value> held;  // null: none
};

// One value of any kind. Cheap to copy: copies share the contents, which are immutable.
class Value {
 public:
  enum class Kind { none, tensor, sparse_tensor, sequence, map, optional };

  Value() = default;
  Value(Tensor tensor) : held_(std::move(tensor)) {}  // NOLINT: a tensor is a value
  Value(SparseTensor sparse)
      : held_(std::make_shared<const SparseTensor>(std::move(sparse))) {}               // NOLINT
  Value(Sequence sequence) : held_(std::make_shared<Sequence>(std::move(sequence))) {}  // NOLINT
  Value(Map map) : held_(std::make_shared<const Map>(std::move(map))) {}                // NOLINT
  Value(Optional optional)
      : held_(std::make_shared<const Optional>(std::move(optional))) {}  // NOLINT

  Kind kind() const { return static_cast<Kind>(held_.index()); }
  bool is_tensor() const { return kind() == Kind::tensor; }  // an array, not sparse

  // Each throws Error (bad_input) where the value is of another kind.
  const Tensor& tensor() const;
  const SparseTensor& sparse_tensor() const;
  const Sequence& sequence() const;
  const Map& map() const;
  const Optional& optional() const;

  // The items of a sequence: the value gives them away where nothing else shares them, else they
  // are copied, each of which shares its elements with the copy. The value is none afterwards.
  // Throws Error (bad_input) where it is no sequence.
  Sequence take_sequence();

 private:
  std::variant<std::monostate, Tensor, std::shared_ptr<const SparseTensor>,
               std::shared_ptr<Sequence>, std::shared_ptr<const Map>,
               std::shared_ptr<const Optional>>
      held_;
};

std::string_view name_of(Value::Kind kind);  // "sequence"

}  // namespace sardonyx

#pragma GCC visibility pop
