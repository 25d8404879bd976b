// com.microsoft: SparseToDenseMatMul, whose first matrix is a sparse tensor.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/checked.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_sparse_products_unit {
namespace {

struct Settings {
  bool transposed_a = false, transposed_b = false;
  float alpha = 1;
};

void infer(InferContext& ctx) {
  const bool transposed_a = ctx.attr_int("transA", 0) != 0,
             transposed_b = ctx.attr_int("transB", 0) != 0;
  for (const int i : {0, 1}) {
    if (ctx.shape(i) && ctx.shape(i)->size() != 2)
      ctx.fail(ErrorCode::unsupported, "{} with other than two dimensions; its shape is {}",
               ctx.input_name(i), ir::to_string(*ctx.shape(i)));
  }
  // Sizes that a sparse tensor names are not those of a run: nothing binds them.
  const auto size = [&](int i, size_t axis) {
    const Dim* given = ctx.shape(i) ? &(*ctx.shape(i))[axis] : nullptr;
    return given && (i == 1 || given->value()) ? *given : ctx.unknown();
  };
  const Dim inner = size(0, transposed_a ? 0 : 1);
  if (inner.value() && ctx.shape(1))
    ctx.require_equal(inner, size(1, transposed_b ? 1 : 0),
                      "the inner dimensions of A and B must agree");
  ctx.set(0, ctx.element(1), {size(0, transposed_a ? 1 : 0), size(1, transposed_b ? 0 : 1)});
}

// Row and column of element i.
std::pair<int64_t, int64_t> place_of(const SparseTensor& a, int64_t i) {
  const auto indices = a.indices.elements<int64_t>();
  int64_t row = 0, column = 0;
  if (a.indices.rank() == 1) {
    const int64_t at = indices[static_cast<size_t>(i)];
    if (at >= 0 && a.shape[1] > 0) row = at / a.shape[1], column = at % a.shape[1];
    if (at < 0) row = -1;
  } else {
    row = indices[static_cast<size_t>(2 * i)], column = indices[static_cast<size_t>(2 * i + 1)];
  }
  if (row < 0 || row >= a.shape[0] || column < 0 || column >= a.shape[1])
    throw Error(ErrorCode::run_failed,
                fmt::format("element {} of A is in row {}, column {}; the shape is {}", i, row,
                            column, to_string(a.shape)));
  return {row, column};
}

void check(const SparseTensor& a, ElementType type) {
  const int64_t count = a.values.size();
  if (a.shape.size() != 2 || a.values.element_type() != type)
    throw Error(ErrorCode::run_failed,
                fmt::format("A must have two dimensions and the type {}; it has the shape {} and "
                            "the type {}",
                            name_of(type), to_string(a.shape), name_of(a.values.element_type())));
  const bool linear = a.indices.rank() == 1 && a.indices.size() == count;
  const bool pairs =
      a.indices.rank() == 2 && a.indices.shape()[0] == count && a.indices.shape()[1] == 2;
  if (a.indices.element_type() != ElementType::int64 || (!linear && !pairs))
    throw Error(ErrorCode::run_failed,
                fmt::format("the indices of the {} elements of A must be int64[{}] or int64[{},2], "
                            "and are {}{}",
                            count, count, count, name_of(a.indices.element_type()),
                            to_string(a.indices.shape())));
}

// What the products are computed in: integers wrap around.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

// alpha times an element; of integers the whole part, within the type.
template <class T>
T scaled(float alpha, T value) {
  if (alpha == 1) return value;
  if constexpr (std::is_integral_v<T>) {
    const double product = static_cast<double>(alpha) * static_cast<double>(value);
    using Limits = std::numeric_limits<T>;
    if (std::isnan(product)) return 0;
    if (product <= static_cast<double>(Limits::min())) return Limits::min();
    return product >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<T>(product);
  } else {
    return static_cast<T>(alpha * value);
  }
}

template <class T>
void multiply(RunContext& run, const Settings& settings) {
  const Value value = run.in_value(0);
  const SparseTensor& a = value.sparse_tensor();
  check(a, run.in_type(1));
  const auto b = run.in_shape(1);
  const int64_t rows = a.shape[settings.transposed_a ? 1 : 0],
                inner = a.shape[settings.transposed_a ? 0 : 1];
  if (b.size() != 2 || b[settings.transposed_b ? 1 : 0] != inner)
    throw Error(ErrorCode::run_failed,
                fmt::format("the inner dimensions of A and B must agree; the shapes are {} and {}",
                            to_string(a.shape), to_string(b)));
  const int64_t columns = b[settings.transposed_b ? 0 : 1];
  T* y = static_cast<T*>(run.allocate_output(0, {rows, columns}));
  std::fill_n(y, rows * columns, T(0));
  const auto values = a.values.elements<T>();
  const int64_t row_step = settings.transposed_b ? 1 : columns,
                column_step = settings.transposed_b ? inner : 1;
  for (size_t i = 0; i < values.size(); ++i) {
    auto [row, k] = place_of(a, static_cast<int64_t>(i));
    if (settings.transposed_a) std::swap(row, k);
    const auto factor = static_cast<Wrapping<T>>(scaled(settings.alpha, values[i]));
    const T* from = run.in<T>(1) + k * row_step;
    T* to = y + row * columns;
    for (int64_t j = 0; j < columns; ++j)
      to[j] = static_cast<T>(static_cast<Wrapping<T>>(to[j]) +
                             factor * static_cast<Wrapping<T>>(from[j * column_step]));
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Settings settings{ctx.attr_int("transA", 0) != 0, ctx.attr_int("transB", 0) != 0,
                          ctx.attr_float("alpha", 1)};
  const ElementType type = ctx.in_element(1);
  const auto step = [&](auto like) {
    using T = decltype(like);
    return make_allocating_step("sparse_product",
                                [settings](RunContext& run) { multiply<T>(run, settings); });
  };
  switch (type) {
    case ElementType::float32: return step(float());
    case ElementType::float64: return step(double());
    case ElementType::int32: return step(int32_t());
    case ElementType::int64: return step(int64_t());
    case ElementType::uint32: return step(uint32_t());
    case ElementType::uint64: return step(uint64_t());
    default: ctx.fail(ErrorCode::unsupported, "no product of {}", name_of(type));
  }
}

constexpr Operator operators[] = {
    {.name = "SparseToDenseMatMul", .domain = "com.microsoft", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace contrib_sparse_products_unit

std::span<const Operator> contrib_sparse_products_operators() {
  return contrib_sparse_products_unit::operators;
}

}  // namespace sardonyx::ops
