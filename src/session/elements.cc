#include "sardonyx/elements.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fail.h"
#include "kernels/convert/cast.h"

namespace sardonyx {
namespace {

void require_numbers(ElementType type, ElementType other) {
  if (!is_known(type) || !kernels::supports_cast(type, other))
    fail(ErrorCode::bad_input, "elements of type {} are no numbers that {} can hold", name_of(type),
         name_of(other));
}

void require_integers(ElementType type) {
  if (!is_integer(type) && type != ElementType::boolean)
    fail(ErrorCode::bad_input, "elements of type {} are no integers; read them as float",
         name_of(type));
}

// Elements below 8 bits are read in the smallest number that fills whole bytes.
int64_t elements_together(int bits) { return bits >= 8 ? 1 : bits == 6 ? 4 : 8 / bits; }

template <class T>
T element(const Tensor& tensor, int64_t index) {
  constexpr ElementType to = element_type_of<T>::value;
  require_numbers(tensor.element_type(), to);
  if (index < 0 || index >= tensor.size())
    fail(ErrorCode::bad_input, "there is no element {} of {}", index, tensor.size());
  const int bits = bit_width(tensor.element_type());
  const int64_t together = elements_together(bits), first = index / together * together;
  const auto* from =
      static_cast<const std::byte*>(tensor.data()) + first / together * (together * bits / 8);
  std::array<T, 4> made{};
  kernels::cast_row(tensor.element_type(), to, from, made.data(),
                    std::min(together, tensor.size() - first));
  return made[static_cast<size_t>(index - first)];
}

template <class T>
std::vector<T> all_elements(const Tensor& tensor) {
  constexpr ElementType to = element_type_of<T>::value;
  require_numbers(tensor.element_type(), to);
  std::vector<T> made(static_cast<size_t>(tensor.size()));
  if (!made.empty())
    kernels::cast_row(tensor.element_type(), to, tensor.data(), made.data(), tensor.size());
  return made;
}

template <class T>
Tensor converted(ElementType type, std::span<const T> elements, Shape shape) {
  constexpr ElementType from = element_type_of<T>::value;
  require_numbers(type, from);
  if (!kernels::supports_cast(from, type))
    fail(ErrorCode::bad_input, "there are no elements of type {} from {}", name_of(type),
         name_of(from));
  Tensor made(type, std::move(shape));
  if (static_cast<int64_t>(elements.size()) != made.size())
    fail(ErrorCode::bad_input, "{} elements do not fill the shape {}", elements.size(),
         to_string(made.shape()));
  if (made.size() > 0)
    kernels::cast_row(from, type, elements.data(), made.mutable_data(), made.size());
  return made;
}

}  // namespace

float detail::decoded(ElementType type, uint32_t bits) {
  float value = 0;
  kernels::cast_row(type, ElementType::float32, &bits, &value, 1);
  return value;
}

uint32_t detail::encoded(ElementType type, float value) {
  uint32_t bits = 0;
  kernels::cast_row(ElementType::float32, type, &value, &bits, 1);
  return bits;
}

float element_as_float(const Tensor& tensor, int64_t index) {
  return element<float>(tensor, index);
}

int64_t element_as_int(const Tensor& tensor, int64_t index) {
  require_integers(tensor.element_type());
  return element<int64_t>(tensor, index);
}

void detail::read_all(const Tensor& tensor, std::vector<float>& elements) {
  elements = all_elements<float>(tensor);
}
void detail::read_all(const Tensor& tensor, std::vector<double>& elements) {
  elements = all_elements<double>(tensor);
}
void detail::read_all(const Tensor& tensor, std::vector<int64_t>& elements) {
  require_integers(tensor.element_type());
  elements = all_elements<int64_t>(tensor);
}

Tensor tensor_from(ElementType type, std::span<const float> elements, Shape shape) {
  return converted(type, elements, std::move(shape));
}
Tensor tensor_from(ElementType type, std::span<const int64_t> elements, Shape shape) {
  return converted(type, elements, std::move(shape));
}

}  // namespace sardonyx
