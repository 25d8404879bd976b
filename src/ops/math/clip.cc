// Clip: between two bounds that may be absent.
#include <limits>

#include "kernels/elementwise/unary.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace clip_unit {
namespace {

void infer(InferContext& ctx) {
  for (int i = 1; i <= 2; ++i) {
    const auto rank = ctx.rank(i);
    if (rank && *rank > 1)
      ctx.fail("{} must be a scalar; it has rank {}", ctx.input_name(i), *rank);
  }
  ctx.set(0, ctx.type(0));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (!kernels::supports(kernels::UnaryOp::clamp, type)) {
    ctx.fail(ErrorCode::unsupported, "has no kernel for {}", name_of(type));
  }
  for (int i = 1; i <= 2; ++i) {
    if (ctx.has_input(i) && ctx.in_element(i) != type) {
      ctx.fail("{} must have the data's element type {}; it has {}", ctx.input_name(i),
               name_of(type), name_of(ctx.in_element(i)));
    }
  }
  auto step = make_step("clip", [type](RunContext& run) {
    const auto bound = [&](int i) -> const void* {
      return run.has_input(i) && run.in_size(i) > 0 ? run.data(i) : nullptr;
    };
    kernels::clip(type, run.data(0), run.out_data(0), run.in_size(0), bound(1), bound(2),
                  run.pool());
  });
  step->traits().in_place = {{0, 0}};
  return step;
}

// Up to version 10 the bounds are attributes; the default bounds are no bounds.
void upgrade(UpgradeContext& ctx) {
  ctx.remove_attribute("consumed_inputs");
  if (ctx.since() >= 11) return;
  constexpr float largest = std::numeric_limits<float>::max();
  const auto bound = [&](std::string_view name, size_t input, float no_bound) {
    const bool given = ctx.old().has_attribute(name);
    const float value = ctx.old().attr_float(name, no_bound);
    ctx.remove_attribute(name);
    if (given && value != no_bound) ctx.set_input(input, ctx.scalar_like(value, 0, name));
  };
  bound("min", 1, -largest);
  bound("max", 2, largest);
}

constexpr Operator operators[] = {
    {.name = "Clip", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 11}};

}  // namespace
}  // namespace clip_unit

std::span<const Operator> clip_operators() { return clip_unit::operators; }

}  // namespace sardonyx::ops
