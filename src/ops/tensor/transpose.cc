// Transpose: dimensions in another order.
#include <algorithm>

#include "ops/objections.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace transpose_unit {
namespace {

// The permutation for a known rank; attribute perm, or all dimensions reversed.
std::vector<int64_t> permutation(const NodeView& node, int64_t rank) {
  const auto given = node.attr_ints("perm");
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  if (!given) {
    for (int64_t i = 0; i < rank; ++i) perm[static_cast<size_t>(i)] = rank - 1 - i;
    return perm;
  }
  if (static_cast<int64_t>(given->size()) != rank) {
    node.fail("perm must name {} axes, one per dimension of the input; it names {}", rank,
              given->size());
  }
  std::vector<bool> used(static_cast<size_t>(rank), false);
  for (size_t i = 0; i < given->size(); ++i) {
    const int64_t axis = node.normalized_axis((*given)[i], rank, "perm");
    if (used[static_cast<size_t>(axis)])
      node.fail("perm must name each axis once; axis {} occurs twice", axis);
    used[static_cast<size_t>(axis)] = true;
    perm[i] = axis;
  }
  return perm;
}

void infer(InferContext& ctx) {
  const auto& in = ctx.shape(0);
  if (!in) {
    const auto given = ctx.attr_ints("perm");
    ctx.set(0, given ? ValueType::tensor(ctx.element(0),
                                         ctx.unknown_shape(static_cast<int64_t>(given->size())))
                     : ValueType::tensor(ctx.element(0)));
    return;
  }
  const auto perm = permutation(ctx, static_cast<int64_t>(in->size()));
  for (const int64_t axis : ctx.attr_ints("perm").value_or(std::vector<int64_t>())) {
    if (axis < 0) object(ctx, "perm must hold axes in [0, {}]; got {}", in->size() - 1, axis);
  }
  Dims out;
  out.reserve(perm.size());
  for (const int64_t axis : perm) out.push_back((*in)[static_cast<size_t>(axis)]);
  ctx.set(0, ctx.element(0), std::move(out));
  if (const auto shape = known_shape(ctx, 0)) {
    move_known(ctx, 0, kernels::plan_transpose(*shape, perm), 0,
               static_cast<int64_t>(ctx.elements(0)->size()));
  }
}

// True where no dimension that can be other than 1 changes its place among the others.
bool keeps_order(std::span<const Dim> shape, const std::vector<int64_t>& perm) {
  int64_t last = -1;
  for (const int64_t axis : perm) {
    if (shape[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const auto& shape = ctx.in_type(0).shape;
  if (shape && keeps_order(*shape, permutation(ctx, static_cast<int64_t>(shape->size())))) {
    return make_view_step("transpose.view");
  }
  const auto given = ctx.attr_ints("perm");
  return make_copy_step(ctx, "transpose.strided", [given](const BindContext& bind) {
    const auto dims = bind.in_shape(0);
    const auto rank = static_cast<int64_t>(dims.size());
    std::vector<int64_t> perm = given.value_or(std::vector<int64_t>());
    for (int64_t& axis : perm) axis += axis < 0 ? rank : 0;
    for (int64_t i = rank - 1; i >= 0 && !given; --i) perm.push_back(i);
    return kernels::plan_transpose(dims, perm);
  });
}

constexpr Operator operators[] = {{.name = "Transpose", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace transpose_unit

std::span<const Operator> transpose_operators() { return transpose_unit::operators; }

}  // namespace sardonyx::ops
