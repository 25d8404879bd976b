// BatchNormalization: inference, and training with running statistics; and what flows back through
// the latter (ops/internal/gradients.h).
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "kernels/convert/cast.h"
#include "kernels/rows/batch_norm_gradient.h"
#include "kernels/rows/normalize.h"
#include "ops/internal/checked.h"
#include "ops/internal/gradients.h"
#include "ops/internal/node.h"
#include "ops/objections.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"

namespace sardonyx::ops {
namespace batch_normalization_unit {
namespace {

void infer(InferContext& ctx) {
  const int made = ctx.attr_int("training_mode", 0) != 0 ? 3 : 1;
  if (ctx.output_count() != made)
    object(ctx, "training_mode {} gives {} output{}; the node names {}",
           ctx.attr_int("training_mode", 0), made, made == 1 ? "" : "s", ctx.output_count());
  ctx.set(0, ctx.type(0));
  const auto& x = ctx.shape(0);
  if (x && x->empty()) ctx.fail("X must have at least a batch dimension");
  const Dim channels = !x ? ctx.unknown() : x->size() > 1 ? (*x)[1] : Dim(1);
  for (int i = 1; i < 5; ++i) {
    const auto& shape = ctx.shape(i);
    if (!shape) continue;
    if (shape->size() != 1)
      ctx.fail("{} must have one dimension; its shape is {}", ctx.input_name(i),
               ir::to_string(*shape));
    if (x)
      ctx.require_equal((*shape)[0], channels,
                        "scale, bias, mean and variance must have one value for each channel");
  }
  for (int i = 1; i < 3; ++i) {
    if (ctx.has_output(i))
      ctx.set(i, ctx.element(i + 2), {x ? channels : ctx.shape(3) ? (*ctx.shape(3))[0] : channels});
  }
}

struct State {
  int64_t n = 0, channels = 1, inner = 1;
  int64_t batch_mean = -1, batch_variance = -1;  // of type float32 or float64
  int64_t old_mean = -1, old_variance = -1;
};

State sizes_of(std::span<const int64_t> x) {
  State s;
  s.n = x[0];
  if (x.size() > 1) s.channels = x[1], s.inner = count_of(x.subspan(2));
  return s;
}

// running = old * momentum + batch * (1 - momentum), in double, rounded once.
template <class T>
void update_running(const RunContext& run, int output, int input, const T* batch, T* old, int64_t n,
                    double momentum) {
  if (!run.has_output(output)) return;
  constexpr ElementType type = element_type_of<T>::value;
  kernels::cast(run.in_type(input), type, run.data(input), old, n, {}, run.pool());
  for (int64_t i = 0; i < n; ++i) {
    old[i] = static_cast<T>(static_cast<double>(old[i]) * momentum +
                            static_cast<double>(batch[i]) * (1 - momentum));
  }
  kernels::cast(type, run.out_type(output), old, run.out_data(output), n, {}, run.pool());
}

template <class T>
void run_training(RunContext& run, const State& s, double epsilon, double momentum) {
  constexpr ElementType type = element_type_of<T>::value;
  const auto at = [&](int64_t offset) { return reinterpret_cast<T*>(scratch_at(run, offset)); };
  T* mean = at(s.batch_mean);
  T* variance = at(s.batch_variance);
  kernels::channel_moments(run.in_type(0), run.data(0), type, mean, variance, s.n, s.channels,
                           s.inner, run.pool());
  kernels::batch_norm(run.in_type(0), run.data(0), run.in_type(1), run.data(1), run.data(2), type,
                      mean, variance, run.out_data(0), s.n, s.channels, s.inner, epsilon,
                      run.pool());
  update_running(run, 1, 3, mean, at(s.old_mean), s.channels, momentum);
  update_running(run, 2, 4, variance, at(s.old_variance), s.channels, momentum);
}

std::unique_ptr<Step> prepare_training(PrepareContext& ctx, double epsilon) {
  const double momentum = ctx.attr_float("momentum", 0.9f);
  return make_step<State>(
      "batch_normalization.training",
      [](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s = sizes_of(bind.in_shape(0));
        for (int64_t* part : {&s.batch_mean, &s.batch_variance, &s.old_mean, &s.old_variance})
          *part = layout.take(s.channels * 8);
        bind.need_scratch(layout.bytes());
      },
      [epsilon, momentum](RunContext& run, const State& s) {
        if (run.in_type(0) == ElementType::float64)
          return run_training<double>(run, s, epsilon, momentum);
        run_training<float>(run, s, epsilon, momentum);
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const double epsilon = ctx.attr_float("epsilon", 1e-5f);
  if (ctx.attr_int("training_mode", 0) != 0) return prepare_training(ctx, epsilon);
  if (ctx.has_output(1) || ctx.has_output(2))
    ctx.fail("outputs running_mean and running_var need training_mode 1");
  auto step = make_step<State>(
      "batch_normalization", [](BindContext& bind, State& s) { s = sizes_of(bind.in_shape(0)); },
      [epsilon](RunContext& run, const State& s) {
        kernels::batch_norm(run.in_type(0), run.data(0), run.in_type(1), run.data(1), run.data(2),
                            run.in_type(3), run.data(3), run.data(4), run.out_data(0), s.n,
                            s.channels, s.inner, epsilon, run.pool());
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

// Parameters for each element of [C, D1 ... Dn] (spatial = 0): the same on a [N, C*D1*...*Dn] view.
void flatten_elements(UpgradeContext& ctx) {
  const std::string x = ctx.node().inputs[0];
  const std::string scale = ctx.node().inputs.at(1);
  const std::string x_shape = ctx.before("Shape", {x}),
                    parameter_shape = ctx.before("Shape", {scale});
  ctx.set_input(0, ctx.before("Flatten", {x}, {int_attribute("axis", 1)}));
  const std::string all = ctx.constant_ints({-1}, "shape");
  for (size_t i = 1; i < 5 && i < ctx.node().inputs.size(); ++i)
    ctx.set_input(i, ctx.before("Reshape", {ctx.node().inputs[i], all}));
  for (size_t i = 0; i < 3; ++i) {
    if (!ctx.has_output(i)) continue;
    std::string result;
    const std::string flat = ctx.detach_output(i, &result);
    ctx.after("Reshape", {flat, i == 0 ? x_shape : parameter_shape}, result,
              {int_attribute("allowzero", 1)});
  }
}

bool trains(const UpgradeContext& ctx) {
  if (ctx.since() >= 7)
    return ctx.has_output(1) || ctx.has_output(2) || ctx.has_output(3) || ctx.has_output(4);
  const bool says_so = ctx.old().has_attribute("is_test");
  if (!says_so && ctx.assume_inference()) return false;
  return ctx.old().attr_int("is_test", 0) == 0;
}

// Outputs 3 and 4 served the gradient. The text does not say whether saved_var is the variance or
// its inverse root: nothing makes it, so that only a model that reads it is refused.
void save_mean(UpgradeContext& ctx) {
  if (!ctx.has_output(3)) return;
  const std::string rows =
      ctx.before("Reshape", {ctx.node().inputs[0], ctx.constant_ints({0, 0, -1}, "shape")});
  ctx.after("ReduceMean", {rows, ctx.constant_ints({0, 2}, "axes")}, ctx.node().outputs[3],
            {int_attribute("keepdims", 0)});
}

void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 14) return;
  const size_t outputs = ctx.node().outputs.size();
  if (outputs != 1 && outputs != 5)
    object(ctx.old(), "version {} has one output or five; the node has {}", ctx.since(), outputs);
  const bool training = trains(ctx);
  const bool by_element = ctx.since() < 9 && ctx.old().attr_int("spatial", 1) == 0;
  if (!by_element) save_mean(ctx);
  for (const char* name : {"consumed_inputs", "is_test", "spatial"}) ctx.remove_attribute(name);
  ctx.node().outputs.resize(training ? 3 : 1);  // those that older versions leave out are absent
  ctx.set_attribute("training_mode", int64_t{training});
  if (by_element) flatten_elements(ctx);
}

// --- What flows back -----------------------------------------------------------------------------

using Gradient = internal::BatchNormalizationGradient;

void infer_gradient(InferContext& ctx) {
  if (ctx.element(Gradient::x) != ctx.element(Gradient::dy))
    ctx.fail("X and dY must have one type; they are {} and {}", ctx.type(Gradient::x).to_string(),
             ctx.type(Gradient::dy).to_string());
  const auto &x = ctx.shape(Gradient::x), &dy = ctx.shape(Gradient::dy);
  for (size_t i = 0; x && dy && x->size() == dy->size() && i < x->size(); ++i)
    ctx.require_equal((*x)[i], (*dy)[i], "dY must have the shape of X");
  if (ctx.has_output(Gradient::dx)) ctx.set(Gradient::dx, ctx.type(Gradient::x));
  for (const int i : {Gradient::dscale, Gradient::db}) {
    if (ctx.has_output(i)) ctx.set(i, ctx.type(Gradient::scale));
  }
}

struct GradientState {
  State sizes;
  ConvertedArguments wide;
};

template <class T>
std::unique_ptr<Step> make_gradient(double epsilon) {
  return make_step<GradientState>(
      "batch_normalization.gradient",
      [](BindContext& bind, GradientState& s) {
        const auto x = bind.in_shape(Gradient::x), scale = bind.in_shape(Gradient::scale),
                   dy = bind.in_shape(Gradient::dy);
        if (x.empty() || !std::ranges::equal(x, dy) || scale.size() != 1 ||
            scale[0] != sizes_of(x).channels) {
          throw Error(ErrorCode::run_failed,
                      fmt::format("X of shape {}, scale of shape {} and dY of shape {} do not fit",
                                  to_string(x), to_string(scale), to_string(dy)));
        }
        s.sizes = sizes_of(x);
        ScratchPlanner layout;
        s.wide.plan(bind, element_type_of<T>::value, layout);
        bind.need_scratch(layout.bytes());
      },
      [epsilon](RunContext& run, const GradientState& s) {
        const State& n = s.sizes;
        kernels::batch_norm_gradient(
            {n.n, n.channels, n.inner, epsilon, s.wide.in<T>(run, Gradient::x),
             s.wide.in<T>(run, Gradient::scale), s.wide.in<T>(run, Gradient::dy),
             s.wide.out<T>(run, Gradient::dx), s.wide.out<T>(run, Gradient::dscale),
             s.wide.out<T>(run, Gradient::db)},
            run.pool());
        for (const int i : {Gradient::dx, Gradient::dscale, Gradient::db}) s.wide.finish<T>(run, i);
      });
}

std::unique_ptr<Step> prepare_gradient(PrepareContext& ctx) {
  const double epsilon = internal::from_node<Gradient>(ctx.node()).epsilon;
  const bool wide = compute_type(ctx.in_element(Gradient::x)) == ElementType::float64;
  auto step = wide ? make_gradient<double>(epsilon) : make_gradient<float>(epsilon);
  step->traits().in_place = {{Gradient::dx, Gradient::dy}};
  return step;
}

constexpr Operator operators[] = {{.name = "BatchNormalization",
                                   .infer = infer,
                                   .prepare = prepare,
                                   .upgrade = upgrade,
                                   .same_since = 14},
                                  {.name = Gradient::name,
                                   .domain = internal::domain,
                                   .infer = internal::infer_checked<Gradient, infer_gradient>,
                                   .prepare = prepare_gradient}};

}  // namespace
}  // namespace batch_normalization_unit

std::span<const Operator> batch_normalization_operators() {
  return batch_normalization_unit::operators;
}

}  // namespace sardonyx::ops
