// Expand and Tile: a tensor repeated.
#include <algorithm>

#include "ops/shared/element_counts.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace expand_unit {
namespace {

void infer_expand(InferContext& ctx) {
  want_rank(ctx, 1, 1);
  const ElementType type = ctx.element(0);
  const auto& in = ctx.shape(0);
  const auto asked = values_of(ctx, 1);
  if (!in || !asked) {
    const auto length = length_of(ctx, 1);
    const auto rank =
        in && length ? std::optional(std::max<int64_t>(static_cast<int64_t>(in->size()), *length))
                     : std::nullopt;
    set_rank(ctx, type, rank);
    return;
  }
  for (const Dim& size : *asked) {
    if (size.is_constant() && *size.value() < 0)
      ctx.fail("a size in shape must not be negative; got {}", size.to_string());
  }
  const Dims out = ctx.broadcast(*in, *asked);
  ctx.set(0, type, out);
  const auto shape = known_shape(ctx, 0), result = small_shape(out);
  if (shape && result)
    move_known(ctx, 0, kernels::plan_expand(*shape, *result), 0, *product(out).value());
}

std::unique_ptr<Step> prepare_expand(PrepareContext& ctx) {
  const auto &in = ctx.in_type(0).shape, &out = ctx.out_type(0).shape;
  if (in && out && *in == *out) {
    auto step = make_view_step("expand.view");
    step->traits().unread_inputs = {1};
    return step;
  }
  return make_copy_step(ctx, "expand.strided", [](const BindContext& bind) {
    return kernels::plan_expand(bind.in_shape(0), bind.out_shape(0));
  });
}

void infer_tile(InferContext& ctx) {
  want_rank(ctx, 1, 1);
  const ElementType type = ctx.element(0);
  const auto& in = ctx.shape(0);
  const auto repeats = values_of(ctx, 1);
  if (!in || !repeats) {
    if (in) require_elements(ctx, 1, in->size());
    const auto length = length_of(ctx, 1);
    set_rank(ctx, type, in ? std::optional(static_cast<int64_t>(in->size())) : length);
    return;
  }
  if (repeats->size() != in->size())
    ctx.fail("repeats must have {} elements, one per dimension; it has {}", in->size(),
             repeats->size());
  Dims out;
  for (size_t i = 0; i < in->size(); ++i) {
    ctx.require_at_least((*repeats)[i], 0, "a number in repeats");
    out.push_back((*in)[i] * (*repeats)[i]);
  }
  ctx.set(0, type, out);
  const auto shape = known_shape(ctx, 0);
  const auto times = numbers_of(ctx, 1);
  if (shape && times && small_shape(out))
    move_known(ctx, 0, kernels::plan_tile(*shape, *times), 0, *product(out).value());
}

// The kernel walks an output dimension of one repetition as the input does; an empty input
// dimension leaves the number of repetitions open, and nothing to copy.
std::unique_ptr<Step> prepare_tile(PrepareContext& ctx) {
  return make_copy_step(ctx, "tile.strided", [](const BindContext& bind) {
    const auto in = bind.in_shape(0), out = bind.out_shape(0);
    std::vector<int64_t> repeats;
    for (size_t i = 0; i < in.size(); ++i) repeats.push_back(in[i] == 0 ? 1 : out[i] / in[i]);
    return kernels::plan_tile(in, repeats);
  });
}

// Version 1: tiles and axis, scalars of the data's type. All repeats are 1 but one.
void upgrade_tile(UpgradeContext& ctx) {
  if (ctx.since() >= 6) return;
  const auto int64 = int_attribute("to", static_cast<int64_t>(ElementType::int64));
  const std::string one = ctx.constant_ints({1}, "one");
  const auto as_row = [&](size_t input) {
    const std::string number = ctx.before("Cast", {ctx.node().inputs.at(input)}, {int64});
    return ctx.before("Reshape", {number, one});
  };
  if (!ctx.has_input(1) || !ctx.has_input(2))
    ctx.fail(ErrorCode::invalid_model, "version 1 of Tile needs the inputs tiles and axis");
  const std::string tiles = as_row(1), axis = as_row(2);
  const std::string rank = ctx.before("Shape", {ctx.before("Shape", {ctx.node().inputs[0]})});
  const std::string ones = ctx.before("ConstantOfShape", {rank},
                                      {tensor_attribute("value", Tensor::of<int64_t>({1}, {1}))});
  ctx.set_input(1, ctx.before("ScatterElements", {ones, axis, tiles}));
  ctx.node().inputs.resize(2);
}

constexpr Operator operators[] = {
    {.name = "Expand", .infer = infer_expand, .prepare = prepare_expand},
    {.name = "Tile",
     .infer = infer_tile,
     .prepare = prepare_tile,
     .upgrade = upgrade_tile,
     .same_since = 6},
};

}  // namespace
}  // namespace expand_unit

std::span<const Operator> expand_operators() { return expand_unit::operators; }

}  // namespace sardonyx::ops
