// NonMaxSuppression.
#include "kernels/move/non_max_suppression.h"
#include "base/counted.h"

#include <algorithm>
#include <cstring>

#include "ops/operator.h"
#include "ops/shared/element_counts.h"

namespace sardonyx::ops {
namespace non_max_suppression_unit {
namespace {

void infer(InferContext& ctx) {
  require_one(ctx, 2);
  require_one(ctx, 3);
  require_one(ctx, 4);
  const auto& boxes = ctx.shape(0);
  const auto& scores = ctx.shape(1);
  for (int i = 0; i < 2; ++i) {
    if (ctx.shape(i) && *ctx.rank(i) != 3)
      ctx.fail("{} must have three dimensions; its shape is {}", ctx.input_name(i),
               ir::to_string(*ctx.shape(i)));
  }
  for (int i = 2; i < 5; ++i) {
    if (const auto count = ctx.type(i).element_count())
      ctx.require_equal(*count, Dim(1), "limits and thresholds must be one number each");
  }
  std::optional<Dim> upper;
  if (boxes) ctx.require_equal((*boxes)[2], Dim(4), "a box must have four numbers");
  if (boxes && scores) {
    ctx.require_equal((*boxes)[0], (*scores)[0],
                      "boxes and scores must have the same number of batches");
    ctx.require_equal((*boxes)[1], (*scores)[2],
                      "boxes and scores must have the same number of boxes");
  }
  if (scores) {
    upper = (*scores)[0] * (*scores)[1] * (*scores)[2];
    const Dims* most = ctx.elements(2);
    if (most && most->size() == 1)
      upper = (*scores)[0] * (*scores)[1] * max(min(most->front(), (*scores)[2]), 0);
  }
  ctx.set(0, ElementType::int64, {ctx.unknown(upper), Dim(3)});
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const bool centers = ctx.attr_int("center_point_box", 0) != 0;
  return make_allocating_step("non_max_suppression", [centers](RunContext& run) {
    kernels::SuppressionOptions options;
    options.center_point_box = centers;
    if (run.has_input(2)) options.max_per_class = std::max<int64_t>(0, *run.in<int64_t>(2));
    if (run.has_input(3)) options.iou_threshold = *run.in<float>(3);
    options.has_score_threshold = run.has_input(4);
    if (run.has_input(4)) options.score_threshold = *run.in<float>(4);
    const auto scores = run.in_shape(1);
    const CountedVector<int64_t> kept = kernels::non_max_suppression(
        options, scores[0], scores[1], scores[2], run.in<float>(0), run.in<float>(1));
    void* y = run.allocate_output(0, {static_cast<int64_t>(kept.size()) / 3, 3});
    std::copy(kept.begin(), kept.end(), static_cast<int64_t*>(y));
  });
}

constexpr Operator operators[] = {
    {.name = "NonMaxSuppression", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace non_max_suppression_unit

std::span<const Operator> non_max_suppression_operators() {
  return non_max_suppression_unit::operators;
}

}  // namespace sardonyx::ops
