// Memory of the caller's, with strides where it has them, and how it becomes a tensor.
//
//   std::vector<float> pixels = …;
//   const Tensor image = tensor_of(TensorRef::of<float>(pixels, {1, 3, 224, 224}));   // no copy
//
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sardonyx/value.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

namespace detail {

template <class Pointer>
struct TensorMemory {
  ElementType element_type = ElementType::undefined;
  Shape shape;
  Pointer data = nullptr;  // of the element at [0,0,…]
  size_t bytes = 0;        // of memory from `data` on
  // Elements from one index of each dimension to the next; 0 and negative ones too. Empty: dense,
  // row-major.
  std::vector<int64_t> strides = {};
  size_t bytes_before = 0;  // of memory before `data`, for negative strides
  // Keeps the memory alive; null: the caller does.
  std::shared_ptr<const void> owner = nullptr;
};

}  // namespace detail

// Memory to be read. What uses it does so for as long as it says; strings have no such form.
struct TensorRef : detail::TensorMemory<const void*> {
  // The elements of a dense tensor. Throws nothing: what reads it checks the shape.
  template <class T>
  static TensorRef of(std::span<const T> elements, Shape shape) {
    return {{element_type_of<T>::value, std::move(shape), elements.data(), elements.size_bytes()}};
  }
};

// Memory that may be written to. Only dense memory can be an output.
struct MutableTensorRef : detail::TensorMemory<void*> {
  template <class T>
  static MutableTensorRef of(std::span<T> elements, Shape shape) {
    return {{element_type_of<T>::value, std::move(shape), elements.data(), elements.size_bytes()}};
  }
  operator TensorRef() const {  // NOLINT: what may be written may be read
    return {{element_type, shape, data, bytes, strides, bytes_before, owner}};
  }
};

// Whether the elements lie one after the other, row-major. Dimensions of one element, and tensors
// without elements, may have any strides.
bool is_dense(const TensorRef& memory);

// A tensor of the memory: a view where it is dense, so that the memory must stay as long as the
// tensor and its copies unless it has an owner; a dense copy otherwise. Throws Error (bad_input)
// where shape and strides reach beyond the memory, strides are not as many as dimensions, or the
// type is string; (unsupported) for elements below 8 bits that are not dense.
Tensor tensor_of(const TensorRef& memory);
// Always a copy.
Tensor copy_of(const TensorRef& memory);

// The tensor's elements for reading; they stay as long as the tensor does.
TensorRef ref_of(const Tensor& tensor);
// The same for writing. Where something else holds the elements too, the tensor gets a copy of them
// first: what others see does not change. Memory without an owner counts as somebody else's. (A
// Tensor's own mutable_data() writes for all that share it: it is for who has just made it.)
MutableTensorRef writable(Tensor& tensor);

// A tensor of strings. Throws Error (bad_input) where their number is not that of the shape.
Tensor strings_of(std::span<const std::string_view> texts, Shape shape);

}  // namespace sardonyx

#pragma GCC visibility pop
