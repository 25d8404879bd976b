// Det.
#include "base/checked.h"
#include "kernels/signal/determinant.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace det_unit {
namespace {

void infer(InferContext& ctx) {
  const auto& x = ctx.shape(0);
  if (!x) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  if (x->size() < 2) ctx.fail("X must be matrices; its shape is {}", ir::to_string(*x));
  ctx.require_equal((*x)[x->size() - 2], x->back(), "the matrices must be square");
  ctx.set(0, ctx.element(0), Dims(x->begin(), x->end() - 2));
}

struct State {
  ConvertedArguments wide;
  int64_t matrices = 0, n = 0, scratch = 0;
};

template <class T>
std::unique_ptr<Step> make_det() {
  constexpr ElementType compute = element_type_of<T>::value;
  return make_step<State>(
      "det",
      [](BindContext& bind, State& s) {
        const auto x = bind.in_shape(0);
        ScratchPlanner layout;
        s.wide.plan(bind, compute, layout);
        s.n = x.back(), s.matrices = count_of(x.first(x.size() - 2));
        s.scratch = layout.take(kernels::determinant_scratch_bytes(s.n, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const State& s) {
        kernels::determinant(s.wide.in<T>(run, 0), s.matrices, s.n, s.wide.out<T>(run, 0),
                             scratch_at(run, s.scratch), run.pool());
        s.wide.finish<T>(run, 0);
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (type == ElementType::float64) return make_det<double>();
  if (!computes_in_float(type))
    ctx.fail(ErrorCode::unsupported, "no determinant of {}", name_of(type));
  return make_det<float>();
}

constexpr Operator operators[] = {{.name = "Det", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace det_unit

std::span<const Operator> det_operators() { return det_unit::operators; }

}  // namespace sardonyx::ops
