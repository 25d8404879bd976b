// CausalConvWithState.
#include "kernels/conv/causal.h"

#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/shared_sizes.h"

namespace sardonyx::ops {
namespace causal_conv_unit {
namespace {

using kernels::CausalConvParams;

enum Input { input, weight, bias, past_state };

bool wants_silu(const NodeView& node) {
  const std::string activation = node.attr_string("activation", "none");
  if (activation == "none") return false;
  if (activation == "silu" || activation == "swish") return true;
  node.fail("activation must be none, silu or swish; got '{}'", activation);
}

void require_rank(const InferContext& ctx, int i, size_t rank, std::string_view layout) {
  if (ctx.shape(i) && ctx.shape(i)->size() != rank)
    ctx.fail("{} must be {}; its shape is {}", ctx.input_name(i), layout,
             ir::to_string(*ctx.shape(i)));
}

void infer(InferContext& ctx) {
  wants_silu(ctx);
  require_rank(ctx, input, 3, "[batch, channels, length]");
  require_rank(ctx, weight, 3, "[channels, 1, taps]");
  require_rank(ctx, bias, 1, "[channels]");
  require_rank(ctx, past_state, 3, "[batch, channels, taps - 1]");
  const auto batch = first_size({size_of(ctx, input, 0), size_of(ctx, past_state, 0)});
  const auto channels = first_size({size_of(ctx, input, 1), size_of(ctx, weight, 0),
                                    size_of(ctx, bias, 0), size_of(ctx, past_state, 1)});
  const auto taps = size_of(ctx, weight, 2);
  const auto kept =
      taps ? std::optional(*taps - Dim(1)) : first_size({size_of(ctx, past_state, 2)});
  require_shared(ctx, size_of(ctx, weight, 0), channels,
                 "weight must have one kernel for each channel of input");
  require_shared(ctx, size_of(ctx, weight, 1), Dim(1),
                 "the convolution is depthwise: weight must be [channels, 1, taps]");
  if (taps) ctx.require_at_least(*taps, Dim(1), "weight must have at least one tap");
  require_shared(ctx, size_of(ctx, bias, 0), channels, "bias must have one value for each channel");
  const std::optional<Dim> state[] = {batch, channels, kept};
  Dims made;
  for (size_t i = 0; i < 3; ++i) {
    require_shared(ctx, size_of(ctx, past_state, i), state[i],
                   "past_state must be [batch, channels, taps - 1]");
    made.push_back(size_or_unknown(ctx, state[i]));
  }
  ctx.set(0, ctx.shape(input)
                 ? ctx.type(input)
                 : ValueType::tensor(ctx.element(input), {made[0], made[1], ctx.unknown()}));
  ctx.set(1, ctx.element(input), made);
}

struct State {
  CausalConvParams shape;
  ConvertedArguments wide;
};

template <class T>
std::unique_ptr<Step> make_conv(bool silu) {
  auto step = make_step<State>(
      "causal_conv",
      [silu](BindContext& bind, State& s) {
        const auto x = bind.in_shape(input);
        s.shape = {x[0], x[1], x[2], bind.in_shape(weight)[2], silu};
        ScratchPlanner layout;
        s.wide.plan(bind, element_type_of<T>::value, layout);
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const State& s) {
        kernels::causal_conv<T>(s.shape, s.wide.in<T>(run, input), s.wide.in<T>(run, weight),
                                s.wide.in<T>(run, bias), s.wide.in<T>(run, past_state),
                                s.wide.out<T>(run, 0), s.wide.out<T>(run, 1), run.pool());
        for (const int i : {0, 1}) s.wide.finish<T>(run, i);
      });
  step->traits().in_place = {{1, past_state}};
  return step;
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const bool silu = wants_silu(ctx);
  return ctx.in_element(input) == ElementType::float64 ? make_conv<double>(silu)
                                                       : make_conv<float>(silu);
}

constexpr Operator operators[] = {
    {.name = "CausalConvWithState", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace causal_conv_unit

std::span<const Operator> causal_conv_operators() { return causal_conv_unit::operators; }

}  // namespace sardonyx::ops
