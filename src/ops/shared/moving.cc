#include "ops/shared/moving.h"

#include <algorithm>
#include <string>

#include "base/checked.h"
#include "ir/tensor.h"

namespace sardonyx::ops {

std::vector<int64_t> integers_of(const Tensor& tensor) {
  std::vector<int64_t> numbers(static_cast<size_t>(tensor.size()));
  const auto* bytes = static_cast<const std::byte*>(tensor.data());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (tensor.element_type() == ElementType::int64) {
      std::memcpy(&numbers[i], bytes + i * sizeof(int64_t), sizeof(int64_t));
    } else {
      int32_t number;
      std::memcpy(&number, bytes + i * sizeof number, sizeof number);
      numbers[i] = number;
    }
  }
  return numbers;
}

namespace {

bool is_index_type(ElementType type) {
  return type == ElementType::int64 || type == ElementType::int32;
}

}  // namespace

std::optional<Dims> values_of(const InferContext& ctx, int i) {
  const auto* elements = ctx.elements(i);
  if (elements != nullptr && !is_floating(ctx.element(i))) return *elements;
  const Tensor* tensor = ctx.constant(i);
  if (tensor == nullptr || !is_index_type(tensor->element_type())) return std::nullopt;
  const std::vector<int64_t> numbers = integers_of(*tensor);
  return Dims(numbers.begin(), numbers.end());
}

std::optional<std::vector<int64_t>> numbers_of(const InferContext& ctx, int i) {
  if (auto numbers = ctx.integers(i)) return numbers;
  const Tensor* tensor = ctx.constant(i);
  if (tensor == nullptr || !is_index_type(tensor->element_type())) return std::nullopt;
  return integers_of(*tensor);
}

std::optional<Shape> known_shape(const InferContext& ctx, int i) {
  const auto* elements = ctx.elements(i);
  if (elements == nullptr) return std::nullopt;
  auto shape = ctx.type(i).concrete_shape();
  if (!shape || checked_count(*shape) != static_cast<int64_t>(elements->size()))
    return std::nullopt;
  return shape;
}

std::optional<Shape> small_shape(std::span<const Dim> shape) {
  Shape numbers;
  numbers.reserve(shape.size());
  for (const Dim& dim : shape) {
    if (!dim.is_constant()) return std::nullopt;
    numbers.push_back(*dim.value());
  }
  const auto count = checked_count(numbers);
  if (!count || *count > max_known_elements) return std::nullopt;
  return numbers;
}

void pass_elements(InferContext& ctx, int i) {
  if (const auto& elements = ctx.known(i).elements) ctx.output(0).elements = elements;
}

void copy_known(const kernels::StridedCopy& plan, std::span<const Dim> x, std::span<Dim> y) {
  int64_t index[kernels::StridedCopy::max_rank] = {};
  for (int64_t n = 0; n < plan.count; ++n) {
    int64_t from = plan.x_offset, to = plan.y_offset;
    for (int32_t d = 0; d < plan.rank; ++d) {
      from += index[d] * plan.x_strides[d];
      to += index[d] * plan.y_strides[d];
    }
    y[static_cast<size_t>(to)] = x[static_cast<size_t>(from)];
    for (int32_t d = plan.rank - 1; d >= 0 && ++index[d] == plan.dims[d]; --d) index[d] = 0;
  }
}

void move_known(InferContext& ctx, int input, const kernels::StridedCopy& plan, int output,
                int64_t count) {
  Dims moved(static_cast<size_t>(count));
  copy_known(plan, *ctx.elements(input), moved);
  ctx.set_elements(output, std::move(moved));
}

void set_rank(InferContext& ctx, ElementType type, std::optional<int64_t> rank) {
  const int64_t most = ctx.is_over_bytes() ? 8 : 64;
  const bool sound = rank && *rank >= 0 && *rank <= most;
  ctx.set(0, sound ? ValueType::tensor(type, ctx.unknown_shape(*rank)) : ValueType::tensor(type));
}

std::optional<int64_t> length_of(const InferContext& ctx, int i) {
  const auto count = ctx.type(i).element_count();
  return count ? count->value() : std::nullopt;
}

Dim product(std::span<const Dim> dims) {
  Dim count(1);
  for (const Dim& dim : dims) count = count * dim;
  return count;
}

Dim agreed(InferContext& ctx, const Dim& a, const Dim& b, std::string_view what) {
  ctx.require_equal(a, b, what);
  if (a.is_constant() || (a.as_symbol() && !a.depends_on_run() && !b.is_constant())) return a;
  return b.is_constant() || a.depends_on_run() ? b : a;
}

std::optional<std::vector<int64_t>> constant_numbers(const PrepareContext& ctx, int i) {
  if (const Tensor* tensor = ctx.constant(i); tensor && is_index_type(tensor->element_type()))
    return integers_of(*tensor);
  const auto& elements = ctx.known(i).elements;
  if (!elements || is_floating(ctx.known(i).type.element)) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim& dim : *elements) {
    if (!dim.is_constant()) return std::nullopt;
    numbers.push_back(*dim.value());
  }
  return numbers;
}

void copy_plain(ElementType type, const void* x, void* y, int64_t n) {
  if (x == y || n == 0) return;
  if (type == ElementType::string) {
    std::copy_n(static_cast<const std::string*>(x), n, static_cast<std::string*>(y));
  } else {
    std::memcpy(y, x, static_cast<size_t>(byte_size(type, n)));
  }
}

}  // namespace sardonyx::ops
