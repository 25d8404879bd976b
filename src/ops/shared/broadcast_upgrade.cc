#include "ops/shared/broadcast_upgrade.h"

namespace sardonyx::ops {

void upgrade_broadcast(UpgradeContext& ctx) {
  ctx.remove_attribute("consumed_inputs");
  if (ctx.since() >= 7) return;
  const bool broadcasts = ctx.old().attr_int("broadcast", 0) != 0;
  const bool has_axis = ctx.old().has_attribute("axis");
  const int64_t axis = ctx.old().attr_int("axis", -1);
  ctx.remove_attribute("broadcast");
  ctx.remove_attribute("axis");
  const auto rank_a = ctx.rank(0), rank_b = ctx.rank(1);
  if (!rank_b) ctx.shape_like(0, 0);
  if (broadcasts && rank_a && rank_b && *rank_b > *rank_a) {
    ctx.fail(ErrorCode::invalid_model,
             "up to opset 6 the second input must not have more dimensions than the first; got {} "
             "and {}",
             *rank_b, *rank_a);
  }
  if (!broadcasts || !has_axis || axis == -1) return;  // aligned to the last dimensions, as today
  if (axis < -1)
    ctx.fail(ErrorCode::invalid_model, "axis must be -1 or a dimension of the first input; got {}",
             axis);
  if (rank_a && rank_b) {
    const int64_t trailing = *rank_a - axis - *rank_b;
    if (trailing < 0) {
      ctx.fail(ErrorCode::invalid_model,
               "axis {} leaves no room for {} dimensions in an input of {}", axis, *rank_b,
               *rank_a);
    }
    if (trailing == 0) return;
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < trailing; ++i) axes.push_back(*rank_b + i);
    ctx.set_input(1, ctx.before("Unsqueeze", {ctx.node().inputs[1], ctx.constant_ints(axes)}));
    return;
  }
  // Ranks are known when the model runs: B takes the shape [its own…, 1…] of rank(A) - axis sizes.
  const std::string b = ctx.node().inputs[1];
  const std::string shape_b = ctx.before("Shape", {b});
  const std::string a_rank = ctx.before("Size", {ctx.before("Shape", {ctx.node().inputs[0]})});
  const std::string b_rank = ctx.before("Size", {shape_b});
  const std::string after_axis =
      ctx.before("Sub", {a_rank, ctx.constant(Tensor::scalar<int64_t>(axis))});
  const std::string trailing = ctx.before("Sub", {after_axis, b_rank});
  const std::string length = ctx.before("Unsqueeze", {trailing, ctx.constant_ints({0})});
  const std::string ones = ctx.before("ConstantOfShape", {length},
                                      {tensor_attribute("value", Tensor::of<int64_t>({1}, {1}))});
  const std::string shape = ctx.before("Concat", {shape_b, ones}, {int_attribute("axis", 0)});
  ctx.set_input(1, ctx.before("Reshape", {b, shape}, {int_attribute("allowzero", 1)}));
}

}  // namespace sardonyx::ops
