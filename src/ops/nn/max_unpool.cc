// MaxUnpool.
#include <cstring>

#include "base/checked.h"
#include "kernels/move/strided.h"
#include "kernels/pool/pool.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/element_counts.h"
#include "ops/shared/window.h"

namespace sardonyx::ops {
namespace max_unpool_unit {
namespace {

// What the pool took its input to be: the attributes' word, whatever output_shape asks.
Dim pooled_from(const Window& window, size_t axis, const Dim& in) {
  return (in - 1) * Dim(window.stride(axis)) - Dim(window.pad_begin(axis)) -
         Dim(window.pad_end(axis)) + Dim(window.kernel[axis]);
}

void infer(InferContext& ctx) {
  const Window window = read_window(ctx, WindowKind::pool);
  const auto& x = ctx.shape(0);
  if (!x) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  if (x->size() < 3)
    ctx.fail("X must have a batch, a channel and at least one spatial dimension; its shape is {}",
             ir::to_string(*x));
  if (window.kernel.empty())
    ctx.fail("attribute 'kernel_shape' is required and absent; add it to the node");
  check_window_rank(ctx, window, *ctx.rank(0) - 2);
  const auto& indices = ctx.shape(1);
  if (indices) {
    if (indices->size() != x->size())
      ctx.fail("I must have the shape of X; got {} and {}", ir::to_string(*indices),
               ir::to_string(*x));
    for (size_t i = 0; i < x->size(); ++i)
      ctx.require_equal((*indices)[i], (*x)[i], "I must have the shape of X");
  }
  Dims y{(*x)[0], (*x)[1]};
  for (size_t i = 0; i + 2 < x->size(); ++i)
    y.push_back(max(pooled_from(window, i, (*x)[i + 2]), 0));
  if (ctx.has_input(2)) {
    want_rank(ctx, 2, 1);
    const Dims* asked = ctx.elements(2);
    if (asked && asked->size() != x->size())
      ctx.fail("output_shape must have one entry for each of the {} dimensions of X; got {}",
               x->size(), asked->size());
    y = asked ? *asked : ctx.unknown_shape(*ctx.rank(0));
    for (const Dim& dim : y) {
      if (const auto number = dim.value(); number && *number < 0)
        ctx.fail("output_shape must not be negative; got {}", *number);
    }
  }
  ctx.set(0, ctx.element(0), std::move(y));
}

struct State {
  bool direct = true;  // the indices count in the output itself
  int64_t size = 0;    // elements of what they count in
  int64_t scratch = 0;
  kernels::StridedCopy copy;
};

void bind_unpool(BindContext& bind, State& s, const Window& window, ElementType type) {
  const auto x = bind.in_shape(0), y = bind.out_shape(0);
  std::vector<int64_t> from(x.begin(), x.end());
  for (size_t i = 2; i < x.size(); ++i) {
    const auto size = checked_mul(x[i] - 1, window.stride(i - 2));
    from[i] = std::max<int64_t>(0, size.value_or(-1) - window.pad_begin(i - 2) -
                                       window.pad_end(i - 2) + window.kernel[i - 2]);
  }
  const auto count = checked_count(from);
  if (!count)
    throw Error(ErrorCode::run_failed,
                fmt::format("an unpooled shape of {} is too large", to_string(from)));
  s.size = *count;
  s.direct = std::equal(from.begin(), from.end(), y.begin(), y.end());
  if (s.direct) return;
  for (size_t i = 0; i < from.size(); ++i) {
    if (y[i] < from[i])
      throw Error(ErrorCode::run_failed,
                  fmt::format("output_shape {} is smaller than the unpooled {}", to_string(y),
                              to_string(from)));
  }
  ScratchPlanner layout;
  s.scratch = layout.take(byte_size(type, s.size));
  bind.need_scratch(layout.bytes());
  const std::vector<int64_t> zeros(from.size(), 0), ones(from.size(), 1);
  s.copy = kernels::plan_insert(from, zeros, ones, y);
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  auto step = make_step<State>(
      "max_unpool",
      [window = read_window(ctx, WindowKind::pool), type](BindContext& bind, State& s) {
        bind_unpool(bind, s, window, type);
      },
      [type](RunContext& run, const State& s) {
        void* to = s.direct ? run.out_data(0) : scratch_at(run, s.scratch);
        kernels::max_unpool(type, run.data(0), run.in<int64_t>(1), run.in_size(0), to, s.size,
                            run.pool());
        if (s.direct) return;
        std::memset(run.out_data(0), 0, static_cast<size_t>(byte_size(type, run.out_size(0))));
        kernels::copy_strided(kernels::cell_of(type), s.copy, to, run.out_data(0), run.pool());
      });
  if (ctx.has_input(2)) step->traits().unread_inputs = {2};
  return step;
}

constexpr Operator operators[] = {{.name = "MaxUnpool", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace max_unpool_unit

std::span<const Operator> max_unpool_operators() { return max_unpool_unit::operators; }

}  // namespace sardonyx::ops
