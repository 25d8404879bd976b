// Shape and Size: what is known of a tensor's dimensions as a tensor.
#include <algorithm>

#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace shape_unit {
namespace {

struct Part {
  int64_t begin, end;
};

// The dimensions [begin, end) that attributes start and end choose of `rank`.
Part part_of(const NodeView& node, int64_t rank) {
  const auto clamped = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t begin = clamped(node.attr_int("start", 0));
  const int64_t end = clamped(node.attr_int("end", rank));
  return {begin, std::max(begin, end)};
}

void infer_shape(InferContext& ctx) {
  const auto rank = ctx.rank(0);
  if (!rank) {
    ctx.set(0, ElementType::int64, {ctx.unknown()});
    return;
  }
  const auto [begin, end] = part_of(ctx, *rank);
  const auto& shape = *ctx.shape(0);
  ctx.set(0, ElementType::int64, {Dim(end - begin)});
  ctx.set_elements(0, {shape.begin() + begin, shape.begin() + end});
}

std::unique_ptr<Step> prepare_shape(PrepareContext& ctx) {
  const int64_t start = ctx.attr_int("start", 0);
  auto step = make_step("shape.dims", [start](RunContext& run) {
    const auto dims = run.in_shape(0);
    const auto rank = static_cast<int64_t>(dims.size());
    const int64_t begin = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
    std::copy_n(dims.begin() + begin, run.out_size(0), run.out<int64_t>(0));
  });
  step->traits().unread_inputs = {0};
  return step;
}

void infer_size(InferContext& ctx) {
  ctx.set(0, ElementType::int64, {});
  if (const auto count = ctx.type(0).element_count()) ctx.set_elements(0, {*count});
}

std::unique_ptr<Step> prepare_size(PrepareContext&) {
  auto step =
      make_step("size.count", [](RunContext& run) { *run.out<int64_t>(0) = run.in_size(0); });
  step->traits().unread_inputs = {0};
  return step;
}

constexpr Operator operators[] = {
    {.name = "Shape", .infer = infer_shape, .prepare = prepare_shape},
    {.name = "Size", .infer = infer_size, .prepare = prepare_size},
};

}  // namespace
}  // namespace shape_unit

std::span<const Operator> shape_operators() { return shape_unit::operators; }

}  // namespace sardonyx::ops
