// The internal InterleavedConcat.
#include <algorithm>
#include <array>

#include "kernels/conv/interleaved_concat.h"
#include "ops/internal/checked.h"
#include "ops/internal/images.h"
#include "ops/internal/node.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace interleaved_concat_unit {
namespace {

using internal::InterleavedConcat;

void infer(InferContext& ctx) {
  std::optional<Dims> y;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) ctx.fail("{} is absent; all images are needed", ctx.input_name(i));
    internal::require_rank(ctx, i, 1);
    const auto& x = ctx.shape(i);
    if (!x) return ctx.set(0, ValueType::tensor(ctx.element(0)));
    if (!y) {
      y = *x;
      continue;
    }
    if (x->size() != y->size()) ctx.fail("images must have as many dimensions");
    for (size_t k = 0; k + 1 < x->size(); ++k)
      ctx.require_equal((*x)[k], (*y)[k], "images must agree in all but their channels");
    y->back() = y->back() + x->back();
  }
  ctx.set(0, ctx.element(0), std::move(*y));
}

struct State {
  int64_t pixels = 0;
};

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  constexpr size_t most = InterleavedConcat::max_images;
  const auto [groups, relu] = internal::from_node<InterleavedConcat>(ctx.node());
  if (!kernels::can_interleave(groups) || ctx.input_count() > static_cast<int>(most) ||
      ctx.in_element(0) != ElementType::float32)
    ctx.fail(ErrorCode::unsupported, "images cannot be joined and interleaved out so");
  return make_step<State>(
      "concat.interleaved",
      [groups = groups](BindContext& bind, State& s) {
        const auto y = bind.out_shape(0);
        if (y.back() % groups != 0)
          throw Error(ErrorCode::run_failed, "channels cannot be interleaved out evenly");
        s.pixels = y.back() == 0 ? 0 : bind.out_size(0) / y.back();
        bind.need_scratch(kernels::interleaved_concat_floats(y.back(), bind.threads()) *
                          static_cast<int64_t>(sizeof(float)));
      },
      [groups = groups, relu = relu](RunContext& run, const State& s) {
        std::array<kernels::JoinedImage, most> images;
        const auto count = static_cast<size_t>(run.input_count());
        for (size_t i = 0; i < count; ++i) {
          const auto at = static_cast<int>(i);
          images[i] = {run.in<float>(at), run.in_shape(at).back()};
        }
        kernels::interleaved_concat(std::span(images).first(count), s.pixels, groups, relu,
                                    run.out<float>(0), static_cast<float*>(run.scratch()),
                                    run.pool());
      });
}

constexpr Operator operators[] = {
    {.name = InterleavedConcat::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<InterleavedConcat, infer>,
     .prepare = prepare},
};

}  // namespace
}  // namespace interleaved_concat_unit

std::span<const Operator> interleaved_concat_operators() {
  return interleaved_concat_unit::operators;
}

}  // namespace sardonyx::ops
