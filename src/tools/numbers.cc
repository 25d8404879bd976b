#include "tools/numbers.h"

#include "base/fail.h"
#include "kernels/convert/cast.h"

namespace sardonyx {
namespace {

bool is_complex(ElementType type) {
  return type == ElementType::complex64 || type == ElementType::complex128;
}

}  // namespace

int64_t number_count(const Tensor& tensor) {
  if (tensor.element_type() == ElementType::string) return 0;
  return is_complex(tensor.element_type()) ? 2 * tensor.size() : tensor.size();
}

void read_numbers(const Tensor& tensor, int64_t begin, std::span<double> numbers) {
  ElementType type = tensor.element_type();
  if (type == ElementType::complex64) type = ElementType::float32;
  if (type == ElementType::complex128) type = ElementType::float64;
  const auto* data = static_cast<const std::byte*>(tensor.data()) + byte_size(type, begin);
  kernels::cast_row(type, ElementType::float64, data, numbers.data(),
                    static_cast<int64_t>(numbers.size()));
}

Tensor converted(const Tensor& tensor, ElementType type) {
  if (type == tensor.element_type()) return tensor;
  if (!kernels::supports_cast(tensor.element_type(), type)) {
    fail(ErrorCode::unsupported, "{} can't be made of {}", name_of(type),
         name_of(tensor.element_type()));
  }
  Tensor result(type, tensor.shape());
  kernels::cast_row(tensor.element_type(), type, tensor.data(), result.mutable_data(),
                    tensor.size());
  return result;
}

}  // namespace sardonyx
