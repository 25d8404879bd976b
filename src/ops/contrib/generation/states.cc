#include "ops/contrib/generation/states.h"

#include <cstring>
#include <numeric>

#include "base/checked.h"
#include "base/fail.h"
#include "base/value_kind.h"
#include "ops/shared/memory.h"

namespace sardonyx::ops::generation {

Tensor pick_rows(const RunEnvironment& environment, const Tensor& tensor, size_t axis,
                 std::span<const int32_t> rows) {
  Shape shape = tensor.shape();
  const int64_t before = shape[axis];
  bool same = before == static_cast<int64_t>(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= before)
      fail(ErrorCode::run_failed, "row {} of {} does not exist", rows[i], before);
    same &= rows[i] == static_cast<int32_t>(i);
  }
  if (same) return tensor;
  shape[axis] = static_cast<int64_t>(rows.size());
  const auto count = checked_count(shape);
  if (!count) fail(ErrorCode::out_of_memory, "a state of {} is too large", to_string(shape));
  environment.require(memory_of(tensor.element_type(), *count));
  const int64_t outer = count_of(std::span(shape).first(axis));
  const int64_t inner = count_of(std::span(shape).subspan(axis + 1));
  const auto bytes = static_cast<size_t>(byte_size(tensor.element_type(), inner));
  Tensor picked(tensor.element_type(), shape);
  if (bytes == 0) return picked;
  auto* to = static_cast<std::byte*>(picked.mutable_data());
  const auto* from = static_cast<const std::byte*>(tensor.data());
  for (int64_t o = 0; o < outer; ++o, from += static_cast<size_t>(before) * bytes) {
    for (const int32_t row : rows) {
      std::memcpy(to, from + static_cast<size_t>(row) * bytes, bytes);
      to += bytes;
    }
  }
  return picked;
}

Tensor repeat_rows(const RunEnvironment& environment, const Tensor& tensor, size_t axis,
                   int64_t each) {
  if (each == 1) return tensor;
  std::vector<int32_t> rows(static_cast<size_t>(tensor.shape()[axis] * each));
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<int32_t>(static_cast<int64_t>(i) / each);
  return pick_rows(environment, tensor, axis, rows);
}

void require_shape(const Value& value, ElementType type, std::span<const int64_t> shape,
                   std::string_view name) {
  if (!value.is_tensor())
    fail(ErrorCode::run_failed, "'{}' must be a tensor; the graph gives {}", name,
         with_article(value.kind()));
  const Tensor& tensor = value.tensor();
  bool fits = tensor.element_type() == type && tensor.shape().size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d)
    fits = shape[d] < 0 || tensor.shape()[d] == shape[d];
  if (!fits) {
    fail(ErrorCode::run_failed, "'{}' must be {} of shape {} (-1: any); the graph gives {} of {}",
         name, name_of(type), to_string(shape), name_of(tensor.element_type()),
         to_string(tensor.shape()));
  }
}

}  // namespace sardonyx::ops::generation
