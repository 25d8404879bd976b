// com.microsoft: GroupNorm and SkipGroupNorm, which diffusion models that were optimised for GPUs
// hold.
#include "ops/contrib/body.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_group_normalizations_unit {
namespace {

// What is added to an image of rank 4: a tensor of its rank, [N, C], or [C].
std::string beside(Body& body, size_t input, bool last) {
  const int64_t rank = body.rank(input);
  if (rank == 4 || (last && rank == 1)) return body.input(input);
  if (rank == 2)
    return body.unsqueeze(body.input(input),
                          last ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{2, 3});
  if (rank == 1) return body.unsqueeze(body.input(input), {1, 2});
  body.context().fail(ErrorCode::invalid_model, "{} must have rank 4 or 2; it has {}",
                      body.node().input_name(static_cast<int>(input)), rank);
}

// In float32, whatever comes in.
std::string normalized(Body& body, const std::string& x, bool last) {
  const UpgradeContext& ctx = body.context();
  const int64_t activation = ctx.old().attr_int("activation");
  if (activation != 0 && activation != 1)
    ctx.fail(ErrorCode::invalid_model, "activation must be 0 (none) or 1 (SiLU); got {}",
             activation);
  const auto wide = [&](const std::string& value) {
    return body.cast(value, ElementType::float32);
  };
  std::string y = wide(last ? body.transpose(x, {0, 3, 1, 2}) : x);
  y = body.op("GroupNormalization", {y, wide(body.input(1)), wide(body.input(2))},
              {int_attribute("num_groups", ctx.old().attr_int("groups")),
               float_attribute("epsilon", ctx.old().attr_float("epsilon", 1e-5f))});
  if (activation == 1) y = body.op("Swish", {y});
  return last ? body.transpose(y, {0, 2, 3, 1}) : y;
}

void group_norm(UpgradeContext& ctx, bool skip) {
  Body body(ctx);
  if (body.rank(0) != 4)
    ctx.fail(ErrorCode::invalid_model, "{} must have rank 4; it has {}", ctx.old().input_name(0),
             body.rank(0));
  const bool last = ctx.old().attr_int("channels_last", 1) != 0;
  std::string x = body.input(0);
  if (skip) {
    x = body.op("Add", {x, beside(body, 3, last)});
    if (body.has(4)) x = body.op("Add", {x, beside(body, 4, last)});
    body.give(1, "Identity", {x});
  }
  body.give(0, "CastLike", {normalized(body, x, last), body.input(0)});
}
void plain(UpgradeContext& ctx) { group_norm(ctx, false); }
void with_skip(UpgradeContext& ctx) { group_norm(ctx, true); }

constexpr Operator operators[] = {
    {.name = "GroupNorm", .domain = "com.microsoft", .upgrade = plain},
    {.name = "SkipGroupNorm", .domain = "com.microsoft", .upgrade = with_skip},
};

}  // namespace
}  // namespace contrib_group_normalizations_unit

std::span<const Operator> contrib_group_normalizations_operators() {
  return contrib_group_normalizations_unit::operators;
}

}  // namespace sardonyx::ops
