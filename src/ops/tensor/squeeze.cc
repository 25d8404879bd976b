// Squeeze and Unsqueeze: dimensions of size 1 dropped and inserted.
#include <algorithm>

#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace squeeze_unit {
namespace {

// The axes of input 1 as flags over `rank` dimensions.
std::vector<bool> chosen(const InferContext& ctx, const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<bool> flags(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) {
    const int64_t at = ctx.normalized_axis(axis, rank);
    if (flags[static_cast<size_t>(at)])
      ctx.fail("axes must name each axis once; axis {} occurs twice", at);
    flags[static_cast<size_t>(at)] = true;
  }
  return flags;
}

void infer_squeeze(InferContext& ctx) {
  const ElementType type = ctx.element(0);
  const auto& in = ctx.shape(0);
  ctx.set(0, ValueType::tensor(type));
  pass_elements(ctx);
  Dims out;
  if (!ctx.has_input(1)) {
    if (!in || !std::all_of(in->begin(), in->end(), [](const Dim& dim) {
          return dim.is_constant() || (dim.lower() && *dim.lower() > 1);
        })) {
      return;  // which dimensions are 1 is known when it runs
    }
    std::copy_if(in->begin(), in->end(), std::back_inserter(out),
                 [](const Dim& dim) { return !(dim == 1); });
  } else if (const auto axes = numbers_of(ctx, 1)) {
    if (!in) return;
    const auto flags = chosen(ctx, *axes, static_cast<int64_t>(in->size()));
    for (size_t i = 0; i < in->size(); ++i) {
      if (flags[i] && (*in)[i] == 1) continue;
      if (flags[i]) {
        ctx.require_equal((*in)[i], 1, fmt::format("dimension {} is squeezed and must be 1", i));
      } else {
        out.push_back((*in)[i]);
      }
    }
  } else {
    const auto dropped = length_of(ctx, 1);
    if (!in || !dropped) return;
    const int64_t rank = static_cast<int64_t>(in->size()) - *dropped;
    if (rank < 0) ctx.fail("axes names {} axes; the input has rank {}", *dropped, in->size());
    set_rank(ctx, type, rank);
    return;
  }
  ctx.set(0, type, std::move(out));
}

void infer_unsqueeze(InferContext& ctx) {
  const ElementType type = ctx.element(0);
  const auto& in = ctx.shape(0);
  ctx.set(0, ValueType::tensor(type));
  pass_elements(ctx);
  const auto axes = numbers_of(ctx, 1);
  const auto inserted =
      axes ? std::optional(static_cast<int64_t>(axes->size())) : length_of(ctx, 1);
  if (!in || !inserted) return;
  const int64_t rank = static_cast<int64_t>(in->size()) + *inserted;
  if (!axes) {
    set_rank(ctx, type, rank);
    return;
  }
  const auto flags = chosen(ctx, *axes, rank);
  Dims out;
  out.reserve(flags.size());
  size_t next = 0;
  for (const bool one : flags) out.push_back(one ? Dim(1) : (*in)[next++]);
  ctx.set(0, type, std::move(out));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  auto step = make_view_step(ctx.node().op_type == "Squeeze" ? "squeeze.view" : "unsqueeze.view");
  if (ctx.has_input(1)) step->traits().unread_inputs = {1};
  return step;
}

// Up to version 11 the axes were an attribute.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 13) return;
  if (const auto axes = ctx.old().attr_ints("axes"))
    ctx.set_input(1, ctx.constant_ints(*axes, "axes"));
  ctx.remove_attribute("axes");
}

constexpr Operator operators[] = {
    {.name = "Squeeze",
     .infer = infer_squeeze,
     .prepare = prepare,
     .upgrade = upgrade,
     .same_since = 13},
    {.name = "Unsqueeze",
     .infer = infer_unsqueeze,
     .prepare = prepare,
     .upgrade = upgrade,
     .same_since = 13},
};

}  // namespace
}  // namespace squeeze_unit

std::span<const Operator> squeeze_operators() { return squeeze_unit::operators; }

}  // namespace sardonyx::ops
