// ReverseSequence: the first elements of each sequence in reverse order.
#include "base/checked.h"
#include "kernels/move/arrange.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace reverse_sequence_unit {
namespace {

int batch_axis_of(const NodeView& node) {
  const int64_t batch = node.attr_int("batch_axis"), time = node.attr_int("time_axis");
  if (batch < 0 || batch > 1 || time != 1 - batch) {
    node.fail("batch_axis and time_axis must be 0 and 1 in either order; got {} and {}", batch,
              time);
  }
  return static_cast<int>(batch);
}

void infer(InferContext& ctx) {
  const int batch = batch_axis_of(ctx);
  const auto &in = ctx.shape(0), &lengths = ctx.shape(1);
  if (in && in->size() < 2) ctx.fail("the input must have rank 2 or more; it has {}", in->size());
  if (lengths && lengths->size() != 1)
    ctx.fail("sequence_lens must have rank 1; it has {}", lengths->size());
  if (in && lengths)
    ctx.require_equal((*in)[static_cast<size_t>(batch)], lengths->front(),
                      "sequence_lens must have one element per sequence");
  ctx.set(0, ctx.type(0));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  return make_step(
      "reverse_sequence",
      [batch = batch_axis_of(ctx), cell = kernels::cell_of(ctx.in_element(0))](RunContext& run) {
        const auto shape = run.in_shape(0);
        kernels::reverse_sequence(cell, shape[0], shape[1], count_of(shape.subspan(2)), batch,
                                  run.in<int64_t>(1), run.data(0), run.out_data(0), run.pool());
      });
}

constexpr Operator operators[] = {{.name = "ReverseSequence", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace reverse_sequence_unit

std::span<const Operator> reverse_sequence_operators() { return reverse_sequence_unit::operators; }

}  // namespace sardonyx::ops
