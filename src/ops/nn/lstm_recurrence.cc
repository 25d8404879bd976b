// The recurrence of an LSTM and what flows back through it (ops/internal/gradients.h).
#include "kernels/recurrent/lstm_recurrence.h"

#include "ops/internal/checked.h"
#include "ops/internal/gradients.h"
#include "ops/internal/node.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace lstm_recurrence_unit {
namespace {

using Forward = internal::LSTMRecurrence;
using Backward = internal::LSTMRecurrenceGradient;
using internal::require_shape;
using kernels::LstmRecurrenceShape;

struct Sizes {
  Dim steps, batch, hidden;
};
// Of the values [steps, batch, 4 * hidden] at `gates` and [4 * hidden, hidden] at `r`.
Sizes sizes_of(InferContext& ctx, int gates, int r) {
  const auto &sums = ctx.shape(gates), &weights = ctx.shape(r);
  if (sums && sums->size() != 3)
    ctx.fail("the gates must have three dimensions; their shape is {}", ir::to_string(*sums));
  if (weights && weights->size() != 2)
    ctx.fail("R must have two dimensions; its shape is {}", ir::to_string(*weights));
  const Dim hidden = weights ? (*weights)[1] : ctx.unknown();
  const Sizes sizes{sums ? (*sums)[0] : ctx.unknown(), sums ? (*sums)[1] : ctx.unknown(), hidden};
  require_shape(ctx, gates, {sizes.steps, sizes.batch, Dim(4) * hidden});
  require_shape(ctx, r, {Dim(4) * hidden, hidden});
  return sizes;
}

void infer_forward(InferContext& ctx) {
  const Sizes s = sizes_of(ctx, Forward::sums, Forward::r);
  const Dims state{s.batch, s.hidden};
  require_shape(ctx, Forward::initial_h, state);
  require_shape(ctx, Forward::initial_c, state);
  require_shape(ctx, Forward::lengths, {s.batch});
  const ElementType type = ctx.element(Forward::sums);
  for (const int i : {Forward::y, Forward::cells})
    if (ctx.has_output(i)) ctx.set(i, type, {s.steps, s.batch, s.hidden});
  for (const int i : {Forward::y_h, Forward::y_c})
    if (ctx.has_output(i)) ctx.set(i, type, state);
  ctx.set(Forward::gates, type, {s.steps, s.batch, Dim(4) * s.hidden});
}

void infer_backward(InferContext& ctx) {
  const Sizes s = sizes_of(ctx, Backward::gates, Backward::r);
  const Dims state{s.batch, s.hidden}, states{s.steps, s.batch, s.hidden},
      gates{s.steps, s.batch, Dim(4) * s.hidden};
  require_shape(ctx, Backward::cells, states);
  require_shape(ctx, Backward::initial_c, state);
  require_shape(ctx, Backward::lengths, {s.batch});
  require_shape(ctx, Backward::dy, states);
  require_shape(ctx, Backward::dy_h, state);
  require_shape(ctx, Backward::dy_c, state);
  require_shape(ctx, Backward::dgates, gates);
  require_shape(ctx, Backward::dcells, states);
  const ElementType type = ctx.element(Backward::gates);
  ctx.set(Backward::dsums, type, gates);
  for (const int i : {Backward::dinitial_h, Backward::dinitial_c})
    if (ctx.has_output(i)) ctx.set(i, type, state);
}

struct State {
  LstmRecurrenceShape shape;
  ConvertedArguments wide;
  int64_t scratch = 0;
};

// `lengths` is not of the kernel's type, and its size is the batch.
void plan(const BindContext& bind, State& s, ElementType compute, int lengths,
          ScratchPlanner& layout) {
  for (int i = 0; i < bind.input_count(); ++i)
    if (i != lengths) s.wide.plan_in(bind, i, compute, layout);
  for (int i = 0; i < bind.output_count(); ++i) s.wide.plan_out(bind, i, compute, layout);
}

LstmRecurrenceShape shape_of(const BindContext& bind, int gates, int r, bool reverse) {
  const auto sums = bind.in_shape(gates), weights = bind.in_shape(r);
  if (sums.size() != 3 || weights.size() != 2 || weights[0] != 4 * weights[1] ||
      sums[2] != weights[0]) {
    throw Error(ErrorCode::run_failed, fmt::format("gates of shape {} and R of shape {} do not fit",
                                                   to_string(sums), to_string(weights)));
  }
  return {sums[0], sums[1], weights[1], reverse};
}

// What a rank or a size that inference left open may have turned out to be.
void require_sizes(const BindContext& bind, std::initializer_list<int> inputs, int64_t size) {
  for (const int i : inputs) {
    if (!bind.has_input(i) || bind.in_size(i) == size) continue;
    throw Error(ErrorCode::run_failed,
                fmt::format("input {} has shape {}; it must have {} elements", i,
                            to_string(bind.in_shape(i)), size));
  }
}

const int64_t* lengths_of(const RunContext& run, int i) {
  return run.has_input(i) ? run.in<int64_t>(i) : nullptr;
}

template <class T>
std::unique_ptr<Step> make_forward(bool reverse) {
  return make_step<State>(
      "lstm_recurrence",
      [reverse](BindContext& bind, State& s) {
        s.shape = shape_of(bind, Forward::sums, Forward::r, reverse);
        require_sizes(bind, {Forward::initial_h, Forward::initial_c},
                      s.shape.batch * s.shape.hidden);
        require_sizes(bind, {Forward::lengths}, s.shape.batch);
        ScratchPlanner layout;
        plan(bind, s, element_type_of<T>::value, Forward::lengths, layout);
        s.scratch = layout.take(kernels::lstm_recurrence_scratch_bytes<T>(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const State& s) {
        kernels::LstmRecurrence<T> job;
        job.sums = s.wide.in<T>(run, Forward::sums), job.r = s.wide.in<T>(run, Forward::r);
        job.h = s.wide.in<T>(run, Forward::initial_h),
        job.c = s.wide.in<T>(run, Forward::initial_c);
        job.lengths = lengths_of(run, Forward::lengths);
        job.y = s.wide.out<T>(run, Forward::y);
        job.y_h = s.wide.out<T>(run, Forward::y_h), job.y_c = s.wide.out<T>(run, Forward::y_c);
        job.gates = s.wide.out<T>(run, Forward::gates);
        job.cells = s.wide.out<T>(run, Forward::cells);
        kernels::lstm_recurrence(s.shape, job, scratch_at(run, s.scratch), run.pool());
        for (int i = 0; i <= Forward::cells; ++i) s.wide.finish<T>(run, i);
      });
}

template <class T>
std::unique_ptr<Step> make_backward(bool reverse) {
  return make_step<State>(
      "lstm_recurrence.gradient",
      [reverse](BindContext& bind, State& s) {
        s.shape = shape_of(bind, Backward::gates, Backward::r, reverse);
        const int64_t state = s.shape.batch * s.shape.hidden;
        require_sizes(bind, {Backward::initial_c, Backward::dy_h, Backward::dy_c}, state);
        require_sizes(bind, {Backward::cells, Backward::dy, Backward::dcells},
                      s.shape.steps * state);
        require_sizes(bind, {Backward::dgates}, 4 * s.shape.steps * state);
        require_sizes(bind, {Backward::lengths}, s.shape.batch);
        ScratchPlanner layout;
        plan(bind, s, element_type_of<T>::value, Backward::lengths, layout);
        s.scratch = layout.take(
            kernels::lstm_recurrence_gradient_scratch_bytes<T>(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const State& s) {
        kernels::LstmRecurrenceGradient<T> job;
        const auto in = [&](int i) { return s.wide.in<T>(run, i); };
        job.r = in(Backward::r), job.gates = in(Backward::gates), job.cells = in(Backward::cells);
        job.c = in(Backward::initial_c), job.lengths = lengths_of(run, Backward::lengths);
        job.y = in(Backward::dy), job.y_h = in(Backward::dy_h), job.y_c = in(Backward::dy_c);
        job.of_gates = in(Backward::dgates), job.of_cells = in(Backward::dcells);
        job.sums = s.wide.out<T>(run, Backward::dsums);
        job.h = s.wide.out<T>(run, Backward::dinitial_h);
        job.c_initial = s.wide.out<T>(run, Backward::dinitial_c);
        kernels::lstm_recurrence_gradient(s.shape, job, scratch_at(run, s.scratch), run.pool());
        for (int i = 0; i <= Backward::dinitial_c; ++i) s.wide.finish<T>(run, i);
      });
}

void require_float(PrepareContext& ctx, ElementType type) {
  if (!computes_in_float(type) && type != ElementType::float64)
    ctx.fail(ErrorCode::unsupported, "no recurrent layer of {}", name_of(type));
}

std::unique_ptr<Step> prepare_forward(PrepareContext& ctx) {
  const bool reverse = internal::from_node<Forward>(ctx.node()).reverse;
  const ElementType type = ctx.in_element(Forward::sums);
  require_float(ctx, type);
  auto step =
      type == ElementType::float64 ? make_forward<double>(reverse) : make_forward<float>(reverse);
  step->traits().in_place = {{Forward::gates, Forward::sums}};
  return step;
}

std::unique_ptr<Step> prepare_backward(PrepareContext& ctx) {
  const bool reverse = internal::from_node<Backward>(ctx.node()).reverse;
  const ElementType type = ctx.in_element(Backward::gates);
  require_float(ctx, type);
  auto step =
      type == ElementType::float64 ? make_backward<double>(reverse) : make_backward<float>(reverse);
  step->traits().in_place = {{Backward::dsums, Backward::gates}};
  return step;
}

constexpr Operator operators[] = {{.name = Forward::name,
                                   .domain = internal::domain,
                                   .infer = internal::infer_checked<Forward, infer_forward>,
                                   .prepare = prepare_forward},
                                  {.name = Backward::name,
                                   .domain = internal::domain,
                                   .infer = internal::infer_checked<Backward, infer_backward>,
                                   .prepare = prepare_backward}};

}  // namespace
}  // namespace lstm_recurrence_unit

std::span<const Operator> lstm_recurrence_operators() { return lstm_recurrence_unit::operators; }

}  // namespace sardonyx::ops
