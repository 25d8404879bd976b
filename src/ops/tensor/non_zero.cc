// NonZero and Compress: elements chosen by their values, or by a condition.
#include <algorithm>

#include "base/checked.h"
#include "kernels/move/arrange.h"
#include "ops/objections.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace non_zero_unit {
namespace {

// The indices of a known small input's elements that are not zero.
bool known_indices(InferContext& ctx) {
  const auto shape = known_shape(ctx, 0);
  const auto values = ctx.integers(0);
  if (!shape || !values) return false;
  std::vector<int64_t> found;
  for (size_t i = 0; i < values->size(); ++i) {
    if ((*values)[i] != 0) found.push_back(static_cast<int64_t>(i));
  }
  const auto count = static_cast<int64_t>(found.size()), rank = static_cast<int64_t>(shape->size());
  ctx.set(0, ElementType::int64, {Dim(rank), Dim(count)});
  if (rank * count > max_known_elements) return true;
  Dims indices(static_cast<size_t>(rank * count), Dim(0));
  for (size_t j = 0; j < found.size(); ++j) {
    int64_t rest = found[j];
    for (size_t d = shape->size(); d-- > 0; rest /= (*shape)[d])
      indices[d * found.size() + j] = Dim(rest % (*shape)[d]);
  }
  ctx.set_elements(0, std::move(indices));
  return true;
}

// A scalar has no dimension to give an index in: [0, 1] or [0, 0], as the standard says.
void infer_non_zero(InferContext& ctx) {
  if (known_indices(ctx)) return;
  const auto rank = ctx.rank(0);
  const auto count = ctx.type(0).element_count();
  ctx.set(0, ElementType::int64, {rank ? Dim(*rank) : ctx.unknown(), ctx.unknown(count)});
}

std::unique_ptr<Step> prepare_non_zero(PrepareContext& ctx) {
  return make_allocating_step("non_zero", [type = ctx.in_element(0)](RunContext& run) {
    const int64_t found = kernels::count_nonzero(type, run.data(0), run.in_size(0));
    const auto shape = run.in_shape(0);
    auto* y =
        static_cast<int64_t*>(run.allocate_output(0, {static_cast<int64_t>(shape.size()), found}));
    if (!shape.empty()) kernels::nonzero(type, shape, run.data(0), found, y);
  });
}

// How many of the condition's elements are true, where they are known.
std::optional<int64_t> known_true(const InferContext& ctx) {
  if (const Tensor* condition = ctx.constant(1);
      condition && condition->element_type() == ElementType::boolean) {
    const auto* flags = static_cast<const uint8_t*>(condition->data());
    return condition->size() - std::count(flags, flags + condition->size(), uint8_t{0});
  }
  const auto values = ctx.integers(1);
  return values ? std::optional(static_cast<int64_t>(values->size()) -
                                std::count(values->begin(), values->end(), 0))
                : std::nullopt;
}

void infer_compress(InferContext& ctx) {
  const ElementType type = ctx.element(0);
  const auto& in = ctx.shape(0);
  const auto kept = known_true(ctx);
  if (in && in->empty()) object(ctx, "the input must have at least one dimension; it is a scalar");
  if (const auto rank = ctx.rank(1); rank && *rank != 1)
    ctx.fail("condition must have rank 1; it has {}", *rank);
  if (!ctx.has_attribute("axis")) {
    const auto count = ctx.type(0).element_count();
    ctx.set(0, type, {kept ? Dim(*kept) : ctx.unknown(count)});
    return;
  }
  if (!in) {
    ctx.set(0, ValueType::tensor(type));
    return;
  }
  const auto axis = static_cast<size_t>(
      ctx.normalized_axis(ctx.attr_int("axis"), static_cast<int64_t>(in->size())));
  Dims out = *in;
  out[axis] = kept ? Dim(*kept) : ctx.unknown(out[axis]);
  ctx.set(0, type, std::move(out));
}

void run_compress(RunContext& run, kernels::Cell cell, std::optional<int64_t> given_axis) {
  const auto shape = run.in_shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  Shape out{run.in_size(0)};
  int64_t outer = 1, dim = run.in_size(0), inner = 1;
  size_t axis = 0;
  if (given_axis) {
    axis = static_cast<size_t>(*given_axis < 0 ? *given_axis + rank : *given_axis);
    outer = count_of(shape.first(axis)), dim = shape[axis],
    inner = count_of(shape.subspan(axis + 1));
    out.assign(shape.begin(), shape.end());
  }
  const auto* flags = run.in<uint8_t>(1);
  const int64_t length = run.in_size(1);
  for (int64_t i = dim; i < length; ++i) {
    if (flags[i] != 0)
      throw Error(
          ErrorCode::run_failed,
          fmt::format("Compress: condition is true at {}, beyond the {} slices there are", i, dim));
  }
  const int64_t used = std::min(dim, length);
  out[axis] = used - std::count(flags, flags + used, uint8_t{0});
  void* y = run.allocate_output(0, std::move(out));
  kernels::compress(cell, outer, dim, inner, run.in<bool>(1), used, run.data(0), y, run.pool());
}

std::unique_ptr<Step> prepare_compress(PrepareContext& ctx) {
  const auto axis = ctx.has_attribute("axis") ? std::optional(ctx.attr_int("axis")) : std::nullopt;
  return make_allocating_step("compress", [cell = kernels::cell_of(ctx.in_element(0)), axis](
                                              RunContext& run) { run_compress(run, cell, axis); });
}

constexpr Operator operators[] = {
    {.name = "NonZero", .infer = infer_non_zero, .prepare = prepare_non_zero},
    {.name = "Compress", .infer = infer_compress, .prepare = prepare_compress},
};

}  // namespace
}  // namespace non_zero_unit

std::span<const Operator> non_zero_operators() { return non_zero_unit::operators; }

}  // namespace sardonyx::ops
