// LayerNormalization and RMSNormalization; and what flows back through the former
// (ops/internal/gradients.h).
#include <algorithm>

#include "base/checked.h"
#include "kernels/convert/cast.h"
#include "kernels/move/strided.h"
#include "kernels/rows/layer_norm_gradient.h"
#include "kernels/rows/normalize.h"
#include "ops/internal/checked.h"
#include "ops/internal/gradients.h"
#include "ops/internal/node.h"
#include "ops/objections.h"
#include "ops/operator.h"
#include "ops/shared/axis.h"
#include "ops/shared/converted_arguments.h"

namespace sardonyx::ops {
namespace layer_normalization_unit {
namespace {

int64_t read_axis(const InferContext& ctx, const Dims& x) {
  return ctx.normalized_axis(ctx.attr_int("axis", -1), static_cast<int64_t>(x.size()));
}

// Scale and bias must broadcast to X, never X to them.
void check_parameter(InferContext& ctx, int i, const Dims& x) {
  if (!ctx.has_input(i) || !ctx.shape(i)) return;
  const auto& shape = *ctx.shape(i);
  const auto rule = [&] {
    return fmt::format("{} of shape {} must broadcast to X of shape {}", ctx.input_name(i),
                       ir::to_string(shape), ir::to_string(x));
  };
  if (shape.size() > x.size()) ctx.fail("{}", rule());
  for (size_t back = 1; back <= shape.size(); ++back) {
    const Dim& dim = shape[shape.size() - back];
    const Dim& size = x[x.size() - back];
    if (!(dim == 1) && dim.is_constant() && !(dim == size)) ctx.require_equal(dim, size, rule());
  }
  ctx.broadcast(x, shape);
}

void infer_layer(InferContext& ctx) {
  ctx.set(0, ctx.type(0));
  const auto stash = static_cast<ElementType>(ctx.attr_int("stash_type", 1));
  if (!is_floating(stash))
    object(ctx, "stash_type must be an element type of numbers with a fraction; got {}",
           ctx.attr_int("stash_type", 1));
  const auto& x = ctx.shape(0);
  if (!x) {
    for (const int i : {1, 2}) ctx.set(i, ValueType::tensor(stash));
    return;
  }
  const int64_t axis = read_axis(ctx, *x);
  for (const int i : {1, 2}) check_parameter(ctx, i, *x);
  Dims moments = *x;
  for (size_t i = static_cast<size_t>(axis); i < x->size(); ++i) moments[i] = Dim(1);
  for (const int i : {1, 2}) ctx.set(i, stash, moments);
}

void infer_rms(InferContext& ctx) {
  ctx.set(0, ctx.type(0));
  if (ctx.type(0).is_tensor() && ctx.type(1).is_tensor())
    ctx.output(0).type.element = ctx.element(1);
  if (!ctx.shape(0)) return;
  read_axis(ctx, *ctx.shape(0));
  check_parameter(ctx, 1, *ctx.shape(0));
}

// True where the parameter, seen from the right, is `shape` with nothing but ones further left.
bool is_tail(std::span<const int64_t> parameter, std::span<const int64_t> shape) {
  for (size_t back = 1; back <= std::max(parameter.size(), shape.size()); ++back) {
    const int64_t wanted = back <= shape.size() ? shape[shape.size() - back] : 1;
    const int64_t found = back <= parameter.size() ? parameter[parameter.size() - back] : 1;
    if (wanted != found) return false;
  }
  return true;
}

struct State {
  int64_t rows = 1, n = 1;
  kernels::RowParameters repeat;
  int64_t spread[2] = {-1, -1};  // scratch for parameters that do not simply repeat for each row
  kernels::StridedCopy copy[2];
  int64_t moments[2] = {-1, -1};  // scratch for Mean and InvStdDev where their type is a third one
  ConvertedArguments wide;
};

void plan_rows(const BindContext& bind, State& s, int64_t axis, int parameters, ElementType type,
               ScratchPlanner& layout) {
  const auto x = bind.in_shape(0);
  const auto first = static_cast<size_t>(from_front(axis, x.size()));
  s.rows = count_of(x.first(first)), s.n = count_of(x.subspan(first));
  s.repeat = {};
  bool simple = true;
  for (int i = 0; i < parameters; ++i) {
    s.spread[i] = -1;
    if (bind.has_input(i + 1)) simple = simple && is_tail(bind.in_shape(i + 1), x.subspan(first));
  }
  if (simple) return;
  s.repeat = {1, std::max<int64_t>(s.rows, 1)};
  for (int i = 0; i < parameters; ++i) {
    if (!bind.has_input(i + 1)) continue;
    s.copy[i] = kernels::plan_expand(bind.in_shape(i + 1), x);
    s.spread[i] = layout.take(byte_size(type, count_of(x)));
  }
}

const void* parameter(const RunContext& run, const State& s, int i, const void* data,
                      ElementType type) {
  if (data == nullptr || s.spread[i] < 0) return data;
  std::byte* spread = scratch_at(run, s.spread[i]);
  kernels::copy_strided(kernels::cell_of(type), s.copy[i], data, spread, run.pool());
  return spread;
}

std::unique_ptr<Step> prepare_layer(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  const double epsilon = ctx.attr_float("epsilon", 1e-5f);
  auto step = make_step<State>(
      "layer_normalization",
      [type, axis = ctx.attr_int("axis", -1)](BindContext& bind, State& s) {
        ScratchPlanner layout;
        plan_rows(bind, s, axis, 2, type, layout);
        for (int i = 0; i < 2; ++i) {
          const bool third = bind.has_output(i + 1) && bind.out_type(i + 1) != type &&
                             bind.out_type(i + 1) != ElementType::float32;
          s.moments[i] = third ? layout.take(s.rows * 4) : -1;
        }
        bind.need_scratch(layout.bytes());
      },
      [type, epsilon](RunContext& run, const State& s) {
        void* moments[2] = {};
        ElementType moment_type = ElementType::float32;
        for (int i = 0; i < 2; ++i) {
          if (!run.has_output(i + 1)) continue;
          moments[i] = s.moments[i] >= 0 ? scratch_at(run, s.moments[i]) : run.out_data(i + 1);
          if (s.moments[i] < 0) moment_type = run.out_type(i + 1);
        }
        const void* scale = parameter(run, s, 0, run.data(1), type);
        const void* bias = parameter(run, s, 1, run.has_input(2) ? run.data(2) : nullptr, type);
        kernels::layer_norm(type, run.data(0), scale, bias, run.out_data(0), moment_type,
                            moments[0], moments[1], s.rows, s.n, epsilon, run.pool(), s.repeat);
        for (int i = 0; i < 2; ++i) {
          if (s.moments[i] < 0) continue;
          kernels::cast(ElementType::float32, run.out_type(i + 1), moments[i], run.out_data(i + 1),
                        s.rows, {}, run.pool());
        }
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

// X and scale of one type: no conversion at all.
std::unique_ptr<Step> prepare_rms_plain(ElementType type, double epsilon, int64_t axis) {
  auto step = make_step<State>(
      "rms_normalization",
      [type, axis](BindContext& bind, State& s) {
        ScratchPlanner layout;
        plan_rows(bind, s, axis, 1, type, layout);
        bind.need_scratch(layout.bytes());
      },
      [type, epsilon](RunContext& run, const State& s) {
        kernels::rms_norm(type, run.data(0), parameter(run, s, 0, run.data(1), type),
                          run.out_data(0), s.rows, s.n, epsilon, run.pool(), s.repeat);
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

template <class T>
std::unique_ptr<Step> prepare_rms_mixed(double epsilon, int64_t axis) {
  constexpr ElementType type = element_type_of<T>::value;
  return make_step<State>(
      "rms_normalization.mixed",
      [axis](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.wide.plan(bind, type, layout);
        plan_rows(bind, s, axis, 1, type, layout);
        bind.need_scratch(layout.bytes());
      },
      [epsilon](RunContext& run, const State& s) {
        const void* scale = parameter(run, s, 0, s.wide.in<T>(run, 1), type);
        kernels::rms_norm(type, s.wide.in<T>(run, 0), scale, s.wide.out<T>(run, 0), s.rows, s.n,
                          epsilon, run.pool(), s.repeat);
        s.wide.finish<T>(run, 0);
      });
}

std::unique_ptr<Step> prepare_rms(PrepareContext& ctx) {
  const double epsilon = ctx.attr_float("epsilon", 1e-5f);
  const int64_t axis = ctx.attr_int("axis", -1);
  const ElementType x = ctx.in_element(0), scale = ctx.in_element(1);
  if (x == scale) return prepare_rms_plain(x, epsilon, axis);
  if (x == ElementType::float64 || scale == ElementType::float64)
    return prepare_rms_mixed<double>(epsilon, axis);
  return prepare_rms_mixed<float>(epsilon, axis);
}

// --- What flows back -----------------------------------------------------------------------------

using Gradient = internal::LayerNormalizationGradient;

void infer_gradient(InferContext& ctx) {
  const auto node = internal::from_node<Gradient>(ctx.node());
  if (const auto rank = ctx.rank(Gradient::x)) ctx.normalized_axis(node.axis, *rank);
  const auto &x = ctx.shape(Gradient::x), &dy = ctx.shape(Gradient::dy);
  for (size_t i = 0; x && dy && x->size() == dy->size() && i < x->size(); ++i)
    ctx.require_equal((*x)[i], (*dy)[i], "dY must have the shape of X");
  if (x) check_parameter(ctx, Gradient::scale, *x);
  if (ctx.has_output(Gradient::dx)) ctx.set(Gradient::dx, ctx.type(Gradient::x));
  if (ctx.has_output(Gradient::dscale)) ctx.set(Gradient::dscale, ctx.type(Gradient::scale));
}

struct GradientState {
  int64_t rows = 1, n = 1;
  int64_t places = -1;  // scratch: of scales that do not simply repeat for each row
  int64_t scratch = -1;
  ConvertedArguments wide;
};

// Where each element of `shape` finds the one that is broadcast to it.
void write_places(std::span<const int64_t> parameter, std::span<const int64_t> x, size_t first,
                  int64_t* row_at, int64_t* at) {
  std::vector<int64_t> strides(x.size(), 0);
  int64_t stride = 1;
  for (size_t back = 1; back <= parameter.size(); ++back) {
    const int64_t size = parameter[parameter.size() - back];
    if (size != 1) strides[x.size() - back] = stride;
    stride *= size;
  }
  const auto fill = [&](size_t begin, size_t end, int64_t* to) {
    const int64_t count = count_of(x.subspan(begin, end - begin));
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, place = 0;
      for (size_t axis = end; axis-- > begin;)
        place += rest % x[axis] * strides[axis], rest /= x[axis];
      to[i] = place;
    }
  };
  fill(0, first, row_at), fill(first, x.size(), at);
}

template <class T>
std::unique_ptr<Step> make_gradient(const Gradient& node) {
  return make_step<GradientState>(
      "layer_normalization.gradient",
      [axis = node.axis](BindContext& bind, GradientState& s) {
        const auto x = bind.in_shape(Gradient::x), scale = bind.in_shape(Gradient::scale),
                   dy = bind.in_shape(Gradient::dy);
        bool fits = std::ranges::equal(x, dy) && scale.size() <= x.size();
        for (size_t back = 1; fits && back <= scale.size(); ++back) {
          const int64_t size = scale[scale.size() - back];
          fits = size == 1 || size == x[x.size() - back];
        }
        if (!fits) {
          throw Error(ErrorCode::run_failed,
                      fmt::format("X of shape {}, scale of shape {} and dY of shape {} do not fit",
                                  to_string(x), to_string(scale), to_string(dy)));
        }
        const auto first = static_cast<size_t>(from_front(axis, x.size()));
        s.rows = count_of(x.first(first)), s.n = count_of(x.subspan(first));
        ScratchPlanner layout;
        s.wide.plan(bind, element_type_of<T>::value, layout);
        s.scratch =
            layout.take(kernels::layer_norm_gradient_scratch(s.rows, s.n) * int64_t{sizeof(T)});
        s.places = is_tail(scale, x.subspan(first)) ? -1 : layout.take((s.rows + s.n) * 8);
        bind.need_scratch(layout.bytes());
      },
      [axis = node.axis, epsilon = node.epsilon](RunContext& run, const GradientState& s) {
        kernels::LayerNormGradient<T> job{s.rows,
                                          s.n,
                                          epsilon,
                                          s.wide.in<T>(run, Gradient::x),
                                          s.wide.in<T>(run, Gradient::scale),
                                          s.wide.in<T>(run, Gradient::dy),
                                          s.wide.out<T>(run, Gradient::dx),
                                          s.wide.out<T>(run, Gradient::dscale)};
        if (s.places >= 0) {
          auto* places = reinterpret_cast<int64_t*>(scratch_at(run, s.places));
          const auto x = run.in_shape(Gradient::x);
          write_places(run.in_shape(Gradient::scale), x,
                       static_cast<size_t>(from_front(axis, x.size())), places, places + s.rows);
          job.row_at = places, job.at = places + s.rows, job.scales = run.in_size(Gradient::scale);
        }
        kernels::layer_norm_gradient(job, reinterpret_cast<T*>(scratch_at(run, s.scratch)),
                                     run.pool());
        for (const int i : {Gradient::dx, Gradient::dscale}) s.wide.finish<T>(run, i);
      });
}

std::unique_ptr<Step> prepare_gradient(PrepareContext& ctx) {
  const auto node = internal::from_node<Gradient>(ctx.node());
  const bool wide = compute_type(ctx.in_element(Gradient::x)) == ElementType::float64;
  auto step = wide ? make_gradient<double>(node) : make_gradient<float>(node);
  step->traits().in_place = {{Gradient::dx, Gradient::dy}};
  return step;
}

constexpr Operator operators[] = {
    {.name = "LayerNormalization", .infer = infer_layer, .prepare = prepare_layer},
    {.name = "RMSNormalization", .infer = infer_rms, .prepare = prepare_rms},
    {.name = Gradient::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<Gradient, infer_gradient>,
     .prepare = prepare_gradient},
};

}  // namespace
}  // namespace layer_normalization_unit

std::span<const Operator> layer_normalization_operators() {
  return layer_normalization_unit::operators;
}

}  // namespace sardonyx::ops
