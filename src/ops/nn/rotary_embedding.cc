// RotaryEmbedding.
#include "kernels/attention/rotary.h"

#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace rotary_embedding_unit {
namespace {

void check_caches(InferContext& ctx, const Dim& batch, const Dim& length, const Dim& half) {
  const bool positions = ctx.has_input(3);
  for (int i = 1; i < 3; ++i) {
    if (!ctx.shape(i)) continue;
    const Dims& cache = *ctx.shape(i);
    if (cache.size() != (positions ? 2u : 3u)) {
      ctx.fail("{} must have {} dimensions {} position_ids; its shape is {}", ctx.input_name(i),
               positions ? 2 : 3, positions ? "with" : "without", ir::to_string(cache));
    }
    ctx.require_equal(
        cache.back(), half,
        "the last dimension of cos_cache and sin_cache must be half the rotated size");
    if (positions) continue;
    ctx.require_equal(cache[0], batch, "cos_cache and sin_cache must have the batch size of X");
    ctx.require_equal(cache[1], length, "cos_cache and sin_cache must have the length of X");
  }
  if (ctx.shape(1) && ctx.shape(2))
    ctx.require_equal((*ctx.shape(1))[0], (*ctx.shape(2))[0],
                      "cos_cache and sin_cache must have the same shape");
  if (positions && ctx.shape(3)) {
    const Dims& ids = *ctx.shape(3);
    if (ids.size() != 2)
      ctx.fail("position_ids must have two dimensions; its shape is {}", ir::to_string(ids));
    ctx.require_equal(ids[0], batch, "position_ids must have the batch size of X");
    ctx.require_equal(ids[1], length, "position_ids must have the length of X");
  }
}

void infer(InferContext& ctx) {
  ctx.set(0, ctx.type(0));
  if (!ctx.shape(0)) return;
  const Dims& x = *ctx.shape(0);
  if (x.size() != 3 && x.size() != 4)
    ctx.fail("X must have three or four dimensions; its shape is {}", ir::to_string(x));
  const int64_t heads = ctx.attr_int("num_heads", 0),
                rotated = ctx.attr_int("rotary_embedding_dim", 0);
  if (x.size() == 3 && heads < 1)
    ctx.fail("attribute 'num_heads' must be at least 1 where X has three dimensions");
  if (rotated < 0 || rotated % 2 != 0)
    ctx.fail("rotary_embedding_dim must be even and not negative; got {}", rotated);
  const Dim size = x.size() == 4 ? x[3] : floor_div(x[2], Dim(heads));
  if (x.size() == 3 && x[2].is_constant() && *x[2].value() % heads != 0)
    ctx.fail("the last dimension of X, {}, must be divisible by num_heads {}", *x[2].value(),
             heads);
  if (rotated > 0)
    ctx.require_at_least(size, Dim(rotated), "rotary_embedding_dim must be at most the head size");
  check_caches(ctx, x[0], x.size() == 4 ? x[2] : x[1],
               floor_div(rotated > 0 ? Dim(rotated) : size, Dim(2)));
}

struct State {
  kernels::RotaryShape shape;
  ConvertedArguments wide;
};

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const int64_t heads = ctx.attr_int("num_heads", 0),
                rotated = ctx.attr_int("rotary_embedding_dim", 0);
  const bool interleaved = ctx.attr_int("interleaved", 0) != 0;
  if (!computes_in_float(ctx.in_element(0)))
    ctx.fail(ErrorCode::unsupported, "no rotary embedding of {}", name_of(ctx.in_element(0)));
  auto step = make_step<State>(
      "rotary_embedding",
      [=](BindContext& bind, State& s) {
        const auto x = bind.in_shape(0), cache = bind.in_shape(1);
        kernels::RotaryShape& r = s.shape;
        const bool four = x.size() == 4;
        r.batch = x[0], r.heads = four ? x[1] : heads, r.length = four ? x[2] : x[1],
        r.head_size = four ? x[3] : x[2] / heads;
        r.head_stride = four ? r.length * r.head_size : r.head_size;
        r.row_stride = four ? r.head_size : r.heads * r.head_size;
        r.rotated = rotated > 0 ? rotated : r.head_size;
        r.cache_rows = bind.has_input(3) ? cache[0] : 0;
        r.interleaved = interleaved;
        ScratchPlanner layout;
        for (int i = 0; i < 3; ++i) s.wide.plan_in(bind, i, ElementType::float32, layout);
        s.wide.plan_out(bind, 0, ElementType::float32, layout);
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const State& s) {
        const int64_t* positions = run.has_input(3) ? run.in<int64_t>(3) : nullptr;
        kernels::rotary_embedding(s.shape, s.wide.in<float>(run, 0), s.wide.in<float>(run, 1),
                                  s.wide.in<float>(run, 2), positions, s.wide.out<float>(run, 0),
                                  run.pool());
        s.wide.finish<float>(run, 0);
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

constexpr Operator operators[] = {{.name = "RotaryEmbedding", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace rotary_embedding_unit

std::span<const Operator> rotary_embedding_operators() { return rotary_embedding_unit::operators; }

}  // namespace sardonyx::ops
