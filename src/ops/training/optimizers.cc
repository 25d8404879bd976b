// Momentum, Adagrad and Adam of ai.onnx.preview.training: inputs R (rate), T (step number), then
// for all parameters X, for all gradients G, and for all of each running average. The internal
// AdamW of one parameter.
#include <cmath>

#include "kernels/elementwise/optimizer.h"
#include "ops/internal/checked.h"
#include "ops/internal/node.h"
#include "ops/internal/optimizers.h"
#include "ops/objections.h"
#include "ops/operator.h"
#include "ops/shared/element_counts.h"

namespace sardonyx::ops {
namespace optimizers_unit {
namespace {

using kernels::OptimizerData;

constexpr std::string_view domain = "ai.onnx.preview.training";

// How many tensors each parameter brings (X, G and the averages), and gives (X and the averages).
struct Layout {
  int in, out;
  int count;  // parameters
  int input(int group, int i) const { return 2 + group * count + i; }
  int output(int group, int i) const { return group * count + i; }
};

Layout layout_of(const NodeView& node, int averages) {
  const int in = 2 + averages, out = 1 + averages;
  const int rest = node.input_count() - 2;
  if (rest < in || rest % in != 0) {
    node.fail("after R and T there must be {} inputs for each parameter; there are {} in all", in,
              std::max(rest, 0));
  }
  const Layout layout{in, out, rest / in};
  if (node.output_count() > out * layout.count)
    node.fail("{} parameters give {} outputs; the node names {}", layout.count, out * layout.count,
              node.output_count());
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) node.fail("{} is absent; all inputs are needed", node.input_name(i));
  }
  return layout;
}

void infer_with(InferContext& ctx, int averages) {
  require_one(ctx, 0);
  require_one(ctx, 1);
  const Layout layout = layout_of(ctx, averages);
  if (ctx.output_count() != layout.out * layout.count)
    object(ctx, "{} parameters give {} outputs; the node names {}", layout.count,
           layout.out * layout.count, ctx.output_count());
  for (const int i : {0, 1}) {
    if (const auto count = ctx.type(i).element_count())
      ctx.require_equal(*count, Dim(1), "R and T must be one number each");
  }
  for (int i = 0; i < layout.count; ++i) {
    ValueType x = ctx.type(layout.input(0, i));
    for (int group = 1; group < layout.in && x.is_tensor() && !x.shape; ++group)
      x.shape = ctx.shape(layout.input(group, i));
    for (int group = 1; group < layout.in; ++group) {
      const int at = layout.input(group, i);
      const ValueType& other = ctx.type(at);
      if (!x.is_known() || !other.is_known()) continue;
      if (x.element != other.element ||
          (x.shape && other.shape && x.shape->size() != other.shape->size())) {
        ctx.fail("{} must have the type of its parameter, {}; it is {}", ctx.input_name(at),
                 x.to_string(), other.to_string());
      }
      if (!x.shape || !other.shape) continue;
      for (size_t d = 0; d < x.shape->size(); ++d)
        ctx.require_equal((*other.shape)[d], (*x.shape)[d],
                          "gradients and averages must have the shape of their parameter");
    }
    for (int group = 0; group < layout.out; ++group) {
      const int at = layout.output(group, i);
      if (at < ctx.output_count()) ctx.set(at, x);
    }
  }
}

void infer_two(InferContext& ctx) { infer_with(ctx, 2); }
void infer_one(InferContext& ctx) { infer_with(ctx, 1); }

double rate_of(const RunContext& run) {
  return run.in_type(0) == ElementType::float64 ? *run.in<double>(0) : *run.in<float>(0);
}

template <class T>
T* place_of(const RunContext& run, int i) {
  return run.has_output(i) ? run.out<T>(i) : nullptr;
}

// Where one parameter's tensors are.
template <class T>
OptimizerData<T> data_of(const RunContext& run, const Layout& layout, int i, bool has_v,
                         bool has_h) {
  OptimizerData<T> data;
  data.x = run.in<T>(layout.input(0, i)), data.g = run.in<T>(layout.input(1, i));
  data.new_x = place_of<T>(run, layout.output(0, i));
  if (has_v) {
    data.v = run.in<T>(layout.input(2, i));
    data.new_v = place_of<T>(run, layout.output(1, i));
  }
  if (has_h) {
    const int group = has_v ? 3 : 2;
    data.h = run.in<T>(layout.input(group, i));
    data.new_h = place_of<T>(run, layout.output(group - 1, i));
  }
  return data;
}

// `rule_of(rate, step number)` gives the rule of a run.
template <class RuleOf>
std::unique_ptr<Step> make_optimizer(PrepareContext& ctx, std::string kernel, bool has_v,
                                     bool has_h, RuleOf rule_of) {
  const Layout layout = layout_of(ctx, int{has_v} + int{has_h});
  auto step = make_step(std::move(kernel), [=](RunContext& run) {
    const auto rule = rule_of(rate_of(run), *run.in<int64_t>(1));
    for (int i = 0; i < layout.count; ++i) {
      const int64_t n = run.in_size(layout.input(0, i));
      if (run.in_type(layout.input(0, i)) == ElementType::float64)
        kernels::optimize(rule, data_of<double>(run, layout, i, has_v, has_h), n, run.pool());
      else
        kernels::optimize(rule, data_of<float>(run, layout, i, has_v, has_h), n, run.pool());
    }
  });
  for (int i = 0; i < layout.count; ++i) {
    for (int group = 0; group < layout.out; ++group) {
      const int output = layout.output(group, i);
      const int input = layout.input(group == 0 ? 0 : group + 1, i);
      if (output < ctx.output_count()) step->traits().in_place.push_back({output, input});
    }
  }
  return step;
}

std::unique_ptr<Step> prepare_momentum(PrepareContext& ctx) {
  kernels::MomentumRule rule;
  const std::string mode = ctx.attr_string("mode");
  if (mode != "standard" && mode != "nesterov")
    ctx.fail("mode must be standard or nesterov; got '{}'", mode);
  rule.nesterov = mode == "nesterov";
  rule.norm = ctx.attr_float("norm_coefficient"), rule.alpha = ctx.attr_float("alpha");
  const double beta = ctx.attr_float("beta");
  return make_optimizer(ctx, "momentum", true, false, [=](double rate, int64_t t) {
    auto now = rule;
    now.rate = rate, now.beta = t > 0 ? beta : 1.0;
    return now;
  });
}

std::unique_ptr<Step> prepare_adagrad(PrepareContext& ctx) {
  kernels::AdagradRule rule;
  rule.norm = ctx.attr_float("norm_coefficient", 0),
  rule.epsilon = ctx.attr_float("epsilon", 1e-6f);
  const double decay = ctx.attr_float("decay_factor", 0);
  return make_optimizer(ctx, "adagrad", false, true, [=](double rate, int64_t t) {
    auto now = rule;
    now.rate = rate / (1 + static_cast<double>(t) * decay);
    return now;
  });
}

std::unique_ptr<Step> prepare_adam(PrepareContext& ctx) {
  kernels::AdamRule rule;
  rule.norm = ctx.attr_float("norm_coefficient", 0);
  rule.norm_post = ctx.attr_float("norm_coefficient_post", 0);
  rule.alpha = ctx.attr_float("alpha", 0.9f), rule.beta = ctx.attr_float("beta", 0.999f);
  rule.epsilon = ctx.attr_float("epsilon", 1e-6f);
  return make_optimizer(ctx, "adam", true, true, [=](double rate, int64_t t) {
    auto now = rule;
    const auto step = static_cast<double>(t);
    now.rate =
        t > 0 ? rate * std::sqrt(1 - std::pow(rule.beta, step)) / (1 - std::pow(rule.alpha, step))
              : rate;
    return now;
  });
}

// --- The internal AdamW

using internal::AdamW;

void infer_adamw(InferContext& ctx) {
  internal::from_node<AdamW>(ctx.node());
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.type(i).is_known() && ctx.element(i) != ctx.element(AdamW::rate))
      ctx.fail(ErrorCode::internal, "{} must not be of {}", ctx.input_name(i),
               name_of(ctx.element(i)));
  }
  for (const int i : {AdamW::rate, AdamW::share, AdamW::spread}) require_one(ctx, i);
  for (const int i : {AdamW::g, AdamW::v, AdamW::h})
    if (ctx.shape(AdamW::x)) internal::require_shape(ctx, i, *ctx.shape(AdamW::x));
  ctx.set(0, ctx.type(AdamW::x)), ctx.set(1, ctx.type(AdamW::v)), ctx.set(2, ctx.type(AdamW::h));
}

template <class T>
void run_adamw(const AdamW& op, RunContext& run) {
  const auto scalar = [&](int i) {
    return run.has_input(i) ? static_cast<double>(*run.in<T>(i)) : 1.0;
  };
  kernels::AdamWRule rule;
  rule.rate = scalar(AdamW::rate);
  rule.share = scalar(AdamW::share), rule.spread = scalar(AdamW::spread);
  rule.alpha = op.alpha, rule.alpha_rest = op.alpha_rest;
  rule.beta = op.beta, rule.beta_rest = op.beta_rest;
  rule.epsilon = op.epsilon, rule.decay = op.decay;
  kernels::OptimizerData<T> data;
  data.x = run.in<T>(AdamW::x), data.g = run.in<T>(AdamW::g);
  data.v = run.in<T>(AdamW::v), data.h = run.in<T>(AdamW::h);
  data.new_x = place_of<T>(run, 0), data.new_v = place_of<T>(run, 1);
  data.new_h = place_of<T>(run, 2);
  kernels::optimize(rule, data, run.in_size(AdamW::x), run.pool());
}

std::unique_ptr<Step> prepare_adamw(PrepareContext& ctx) {
  const auto op = internal::from_node<AdamW>(ctx.node());
  auto step = make_step("adamw", [=](RunContext& run) {
    if (run.in_type(AdamW::x) == ElementType::float64)
      run_adamw<double>(op, run);
    else
      run_adamw<float>(op, run);
  });
  step->traits().in_place = {{0, AdamW::x}, {1, AdamW::v}, {2, AdamW::h}};
  return step;
}

constexpr Operator operators[] = {
    {.name = "Momentum", .domain = domain, .infer = infer_one, .prepare = prepare_momentum},
    {.name = "Adagrad", .domain = domain, .infer = infer_one, .prepare = prepare_adagrad},
    {.name = "Adam", .domain = domain, .infer = infer_two, .prepare = prepare_adam},
    {.name = AdamW::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<AdamW, infer_adamw>,
     .prepare = prepare_adamw},
};

}  // namespace
}  // namespace optimizers_unit

std::span<const Operator> optimizers_operators() { return optimizers_unit::operators; }

}  // namespace sardonyx::ops
