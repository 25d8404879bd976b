// ScatterElements, ScatterND and the deprecated Scatter: elements written at indices.
#include <algorithm>

#include "kernels/move/gather.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace scatter_unit {
namespace {

using kernels::Indices;
using kernels::ScatterReduction;

ScatterReduction reduction_of(const NodeView& node) {
  const std::string name = node.attr_string("reduction", "none");
  if (name == "none") return ScatterReduction::none;
  if (name == "add") return ScatterReduction::add;
  if (name == "mul") return ScatterReduction::mul;
  if (name == "max") return ScatterReduction::max;
  if (name == "min") return ScatterReduction::min;
  node.fail("reduction must be none, add, mul, max or min; got '{}'", name);
}

// Complex numbers have no order.
bool takes_reduction(ElementType type, ScatterReduction reduction) {
  const bool is_complex = type == ElementType::complex64 || type == ElementType::complex128;
  const bool orders = reduction == ScatterReduction::max || reduction == ScatterReduction::min;
  return type != ElementType::string && !(is_complex && orders);
}

void check_type(const PrepareContext& ctx, ScatterReduction reduction) {
  if (reduction != ScatterReduction::none && !takes_reduction(ctx.in_element(0), reduction)) {
    ctx.fail(ErrorCode::unsupported, "no reduction of {} elements", name_of(ctx.in_element(0)));
  }
}

// The elements of a one-dimensional scatter in a shape computation (the old Tile's repeats).
void pass_scattered(InferContext& ctx) {
  const auto shape = known_shape(ctx, 0);
  const auto indices = numbers_of(ctx, 1);
  const auto* updates = ctx.elements(2);
  if (!shape || shape->size() != 1 || !indices || !updates ||
      reduction_of(ctx) != ScatterReduction::none)
    return;
  if (indices->size() != updates->size()) return;
  Dims elements = *ctx.elements(0);
  const int64_t size = (*shape)[0];
  for (size_t i = 0; i < indices->size(); ++i) {
    const int64_t index = (*indices)[i];
    if (index < -size || index >= size)
      ctx.fail("index must be in [{}, {}]; got {}", -size, size - 1, index);
    elements[static_cast<size_t>(index < 0 ? index + size : index)] = (*updates)[i];
  }
  ctx.set_elements(0, std::move(elements));
}

void infer_scatter_elements(InferContext& ctx) {
  ctx.set(0, ctx.type(0));
  reduction_of(ctx);
  const auto &data = ctx.shape(0), &indices = ctx.shape(1), &updates = ctx.shape(2);
  if (!data) return;
  const auto rank = static_cast<int64_t>(data->size());
  const int64_t axis = ctx.normalized_axis(ctx.attr_int("axis"), rank);
  for (const auto* other : {&indices, &updates}) {
    if (*other && (*other)->size() != data->size()) {
      ctx.fail("indices and updates must have the data's rank, {}; found {}", rank,
               (*other)->size());
    }
  }
  for (int64_t d = 0; indices && d < rank; ++d) {
    const auto at = static_cast<size_t>(d);
    if (updates)
      ctx.require_equal((*indices)[at], (*updates)[at],
                        fmt::format("indices and updates must have one shape; dimension {}", d));
    if (d != axis)
      ctx.require_at_least((*data)[at], (*indices)[at],
                           fmt::format("indices must not exceed the data in dimension {}", d));
  }
  pass_scattered(ctx);
}

std::unique_ptr<Step> prepare_scatter_elements(PrepareContext& ctx) {
  const ScatterReduction reduction = reduction_of(ctx);
  const int64_t given_axis = ctx.attr_int("axis");
  const ElementType type = ctx.in_element(0);
  check_type(ctx, reduction);
  auto step = make_step("scatter_elements", [=](RunContext& run) {
    const auto shape = run.in_shape(0);
    copy_plain(type, run.data(0), run.out_data(0), run.in_size(0));
    kernels::scatter_elements(
        type, reduction, shape,
        given_axis < 0 ? given_axis + static_cast<int64_t>(shape.size()) : given_axis,
        run.in_shape(1), Indices(run.in_type(1), run.data(1), run.in_size(1)), run.data(2),
        run.out_data(0), run.pool());
  });
  step->traits().in_place = {{0, 0}};
  return step;
}

void infer_scatter_nd(InferContext& ctx) {
  ctx.set(0, ctx.type(0));
  reduction_of(ctx);
  const auto &data = ctx.shape(0), &indices = ctx.shape(1), &updates = ctx.shape(2);
  if (!data || !indices) return;
  if (data->empty() || indices->empty())
    ctx.fail("data and indices must have rank 1 or more; they have {} and {}", data->size(),
             indices->size());
  const auto depth = indices->back().value();
  if (!depth) return;
  if (*depth < 0 || *depth > static_cast<int64_t>(data->size())) {
    ctx.fail("the last dimension of indices must be at most the data's rank, {}; got {}",
             data->size(), *depth);
  }
  Dims expected(indices->begin(), indices->end() - 1);
  expected.insert(expected.end(), data->begin() + *depth, data->end());
  if (!updates) return;
  if (updates->size() != expected.size()) {
    ctx.fail("updates must have shape {}; found {}", ir::to_string(expected),
             ir::to_string(*updates));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    ctx.require_equal(
        (*updates)[i], expected[i],
        fmt::format("updates must have shape {}; dimension {}", ir::to_string(expected), i));
  }
}

// Inference can't hold updates against indices whose depth only the run knows.
void check_updates(const RunContext& run) {
  const auto data = run.in_shape(0), indices = run.in_shape(1), updates = run.in_shape(2);
  if (data.empty() || indices.empty() || indices.back() > static_cast<int64_t>(data.size()))
    throw Error(ErrorCode::run_failed,
                fmt::format("the last dimension of indices must be at most the data's rank, {}; "
                            "the shape of indices is {}",
                            data.size(), to_string(indices)));
  Shape expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + indices.back(), data.end());
  if (std::ranges::equal(expected, updates)) return;
  throw Error(ErrorCode::run_failed, fmt::format("updates must have shape {}; found {}",
                                                 to_string(expected), to_string(updates)));
}

std::unique_ptr<Step> prepare_scatter_nd(PrepareContext& ctx) {
  const ScatterReduction reduction = reduction_of(ctx);
  const ElementType type = ctx.in_element(0);
  check_type(ctx, reduction);
  auto step = make_step("scatter_nd", [=](RunContext& run) {
    check_updates(run);
    copy_plain(type, run.data(0), run.out_data(0), run.in_size(0));
    kernels::scatter_nd(type, reduction, run.in_shape(0), run.in_shape(1),
                        Indices(run.in_type(1), run.data(1), run.in_size(1)), run.data(2),
                        run.out_data(0), run.pool());
  });
  step->traits().in_place = {{0, 0}};
  return step;
}

// Scatter was renamed; files name it at any version.
void upgrade_scatter(UpgradeContext& ctx) { ctx.node().op_type = "ScatterElements"; }

constexpr Operator operators[] = {
    {.name = "Scatter",
     .infer = infer_scatter_elements,
     .prepare = prepare_scatter_elements,
     .upgrade = upgrade_scatter},
    {.name = "ScatterElements",
     .infer = infer_scatter_elements,
     .prepare = prepare_scatter_elements},
    {.name = "ScatterND", .infer = infer_scatter_nd, .prepare = prepare_scatter_nd},
};

}  // namespace
}  // namespace scatter_unit

std::span<const Operator> scatter_operators() { return scatter_unit::operators; }

}  // namespace sardonyx::ops
