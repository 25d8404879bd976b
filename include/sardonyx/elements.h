// Elements of types that C++ has none for: float16, bfloat16, float8, and those below 8 bits.
//
//   const Tensor halves = Tensor::of<float16>({float16(0.5f), float16(-1)}, {2});
//   for (float16 h : halves.elements<float16>()) sum += float(h);
//   const std::vector<float> numbers = read_as<float>(any_tensor);
//
// Conversions are those of the operator Cast: to the nearest, ties to even; float8 saturates.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "sardonyx/value.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

namespace detail {
float decoded(ElementType type, uint32_t bits);
uint32_t encoded(ElementType type, float value);
void read_all(const Tensor& tensor, std::vector<float>& elements);
void read_all(const Tensor& tensor, std::vector<double>& elements);
void read_all(const Tensor& tensor, std::vector<int64_t>& elements);
}  // namespace detail

// A number of a narrow floating type, as its bits.
template <ElementType type, class Bits>
struct NarrowFloat {
  Bits bits = 0;

  NarrowFloat() = default;
  explicit NarrowFloat(float value) : bits(static_cast<Bits>(detail::encoded(type, value))) {}
  explicit operator float() const { return detail::decoded(type, bits); }
  static NarrowFloat from_bits(Bits bits) {
    NarrowFloat made;
    made.bits = bits;
    return made;
  }
  // Of numbers: NaN is not equal to itself, -0 is 0.
  friend bool operator==(NarrowFloat a, NarrowFloat b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }
};

using float16 = NarrowFloat<ElementType::float16, uint16_t>;
using bfloat16 = NarrowFloat<ElementType::bfloat16, uint16_t>;
using float8e4m3fn = NarrowFloat<ElementType::float8e4m3fn, uint8_t>;
using float8e4m3fnuz = NarrowFloat<ElementType::float8e4m3fnuz, uint8_t>;
using float8e5m2 = NarrowFloat<ElementType::float8e5m2, uint8_t>;
using float8e5m2fnuz = NarrowFloat<ElementType::float8e5m2fnuz, uint8_t>;
using float8e8m0 = NarrowFloat<ElementType::float8e8m0, uint8_t>;  // powers of two

// Such floats are elements of tensors of their type.
template <ElementType type, class Bits>
struct element_type_of<NarrowFloat<type, Bits>> {
  static constexpr auto value = type;
};
template <>
struct element_type_of<std::complex<float>> {
  static constexpr auto value = ElementType::complex64;
};
template <>
struct element_type_of<std::complex<double>> {
  static constexpr auto value = ElementType::complex128;
};

// Element `index`, in row-major order, of any type of numbers, those of 2, 4 and 6 bits too;
// booleans are 0 and 1. Throws Error (bad_input) for an index outside the tensor, and for strings
// and complex numbers. Large integers are rounded.
float element_as_float(const Tensor& tensor, int64_t index);
// The same of integers and booleans, exactly (uint64 beyond int64 wraps). Throws Error (bad_input)
// for other types.
int64_t element_as_int(const Tensor& tensor, int64_t index);

// All elements in row-major order; T is float, double or int64_t, which takes integers and booleans
// only. Throws as above.
template <class T>
std::vector<T> read_as(const Tensor& tensor) {
  std::vector<T> elements;
  detail::read_all(tensor, elements);
  return elements;
}

// A tensor of any type of numbers from floats. Integers are cut towards zero. Throws Error
// (bad_input) for other types, and where the number of elements is not the shape's.
Tensor tensor_from(ElementType type, std::span<const float> elements, Shape shape);
// The same from integers, exactly where the type holds them; others wrap.
Tensor tensor_from(ElementType type, std::span<const int64_t> elements, Shape shape);

}  // namespace sardonyx

#pragma GCC visibility pop
