// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include "kernels/rows/loss.h"

#include "base/checked.h"
#include "kernels/rows/softmax.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace loss_unit {
namespace {

using kernels::LossReduction;
using kernels::LossShape;

LossShape read_options(const NodeView& node) {
  LossShape shape;
  const std::string reduction = node.attr_string("reduction", "mean");
  if (reduction == "none")
    shape.reduction = LossReduction::none;
  else if (reduction == "sum")
    shape.reduction = LossReduction::sum;
  else if (reduction != "mean")
    node.fail("reduction must be none, sum or mean; got '{}'", reduction);
  shape.has_ignored = node.has_attribute("ignore_index");
  if (shape.has_ignored) shape.ignored = node.attr_int("ignore_index");
  return shape;
}

void infer(InferContext& ctx) {
  const LossShape options = read_options(ctx);
  const auto& x = ctx.shape(0);
  const auto& labels = ctx.shape(1);
  ctx.set(1, ctx.type(0));  // log_prob
  if (x && x->size() < 2)
    ctx.fail("the scores must have a batch and a class dimension; their shape is {}",
             ir::to_string(*x));
  if (x && labels) {
    if (labels->size() + 1 != x->size())
      ctx.fail("labels must have the scores' shape without the classes; got {} for {}",
               ir::to_string(*labels), ir::to_string(*x));
    ctx.require_equal((*labels)[0], (*x)[0], "labels must have the scores' batch size");
    for (size_t i = 1; i < labels->size(); ++i)
      ctx.require_equal((*labels)[i], (*x)[i + 1],
                        "labels must have the scores' shape without the classes");
  }
  if (x && ctx.has_input(2)) {
    if (const auto count = ctx.type(2).element_count())
      ctx.require_equal(*count, (*x)[1], "there must be one weight for each class");
  }
  if (options.reduction != LossReduction::none) return ctx.set(0, ctx.element(0), Dims());
  if (labels) return ctx.set(0, ctx.element(0), *labels);
  if (!x) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  Dims y = *x;
  y.erase(y.begin() + 1);
  ctx.set(0, ctx.element(0), std::move(y));
}

struct State {
  LossShape shape;
  ConvertedArguments wide;
  int64_t log_prob = 0;  // scratch where nobody wants it
};

template <class T, bool softmax>
std::unique_ptr<Step> make_loss(const LossShape& options) {
  constexpr ElementType compute = element_type_of<T>::value;
  return make_step<State>(
      softmax ? "softmax_cross_entropy" : "likelihood_loss",
      [options](BindContext& bind, State& s) {
        const auto x = bind.in_shape(0);
        ScratchPlanner layout;
        s.shape = options;
        s.shape.n = x[0], s.shape.classes = x[1], s.shape.inner = count_of(x.subspan(2));
        if (bind.in_size(1) != s.shape.n * s.shape.inner ||
            (bind.has_input(2) && bind.in_size(2) != x[1])) {
          throw Error(ErrorCode::run_failed,
                      fmt::format("labels of shape {} or the weights do not fit scores of shape {}",
                                  to_string(bind.in_shape(1)), to_string(x)));
        }
        s.wide.plan_in(bind, 0, compute, layout);
        s.wide.plan_in(bind, 2, compute, layout);
        for (int i = 0; i < bind.output_count(); ++i) s.wide.plan_out(bind, i, compute, layout);
        if (softmax && !bind.has_output(1))
          s.log_prob = layout.take(byte_size(compute, bind.in_size(0)));
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const State& s) {
        const T* x = s.wide.in<T>(run, 0);
        if constexpr (softmax) {
          T* log_prob = run.has_output(1) ? s.wide.out<T>(run, 1)
                                          : reinterpret_cast<T*>(scratch_at(run, s.log_prob));
          kernels::log_softmax(compute, x, log_prob, s.shape.n, s.shape.classes, s.shape.inner,
                               run.pool());
          x = log_prob;
        }
        if (run.has_output(0)) {
          kernels::likelihood_loss(s.shape, x, run.data(1), run.in_type(1) == ElementType::int64,
                                   s.wide.in<T>(run, 2), s.wide.out<T>(run, 0));
        }
        for (int i = 0; i < run.output_count(); ++i) s.wide.finish<T>(run, i);
      });
}

template <bool softmax>
std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const LossShape options = read_options(ctx);
  const ElementType type = ctx.in_element(0);
  if (type == ElementType::float64) return make_loss<double, softmax>(options);
  if (!computes_in_float(type)) ctx.fail(ErrorCode::unsupported, "no loss of {}", name_of(type));
  return make_loss<float, softmax>(options);
}

constexpr Operator operators[] = {
    {.name = "NegativeLogLikelihoodLoss", .infer = infer, .prepare = prepare<false>},
    {.name = "SoftmaxCrossEntropyLoss", .infer = infer, .prepare = prepare<true>},
};

}  // namespace
}  // namespace loss_unit

std::span<const Operator> loss_operators() { return loss_unit::operators; }

}  // namespace sardonyx::ops
