// MatMul, and its internal form.
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "ops/internal/checked.h"
#include "ops/internal/products.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/matmul_shape.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace matmul_unit {
namespace {

using internal::MatMul;

void infer(InferContext& ctx) {
  const MatMul op = internal::matmul_of(ctx);
  auto shape = matmul_output(ctx, MatMul::a, MatMul::b, {op.perm_a, op.perm_b});
  if (!shape) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  if (ctx.has_input(MatMul::bias)) {
    const auto count = ctx.type(MatMul::bias).element_count();
    const Dim columns = *ctx.rank(MatMul::b) > 1 ? shape->back() : Dim(1);
    if (count)
      ctx.require_equal(*count, columns, "the bias must have one value for each column of B");
  }
  if (ctx.has_input(MatMul::residual)) internal::require_shape(ctx, MatMul::residual, *shape);
  ctx.set(0, ctx.element(0), std::move(*shape));
}

struct State {
  MatMulPlan plan;
  ConvertedArguments wide;
  int64_t scratch = 0;
};

kernels::Epilogue at_run(const RunContext& run, const State& s, kernels::Epilogue epilogue) {
  if (run.has_input(MatMul::bias)) {
    epilogue.bias = s.wide.in<float>(run, MatMul::bias);
    epilogue.bias_axis = kernels::BiasAxis::column;
  }
  if (run.has_input(MatMul::residual)) {
    epilogue.residual = s.wide.in<float>(run, MatMul::residual);
    epilogue.residual_stride = s.plan.N;
  }
  return epilogue;
}

std::unique_ptr<Step> prepare_packed(PrepareContext& ctx) {
  const Tensor& b = *ctx.constant(MatMul::b);
  const int64_t rank = b.rank(), K = b.shape()[static_cast<size_t>(rank == 1 ? 0 : rank - 2)],
                N = rank == 1 ? 1 : b.shape().back();
  const auto packed = pack_matrix(ctx, MatMul::b, K, N, false);
  const ElementType type = packed_type(b.element_type());
  const kernels::Epilogue epilogue = internal::matmul_of(ctx).epilogue();
  auto step = make_step<State>(
      "matmul.packed",
      [type](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.plan = plan_matmul(bind.in_shape(MatMul::a), bind.in_shape(MatMul::b));
        for (const int i : {MatMul::a, MatMul::bias, MatMul::residual})
          s.wide.plan_in(bind, i, ElementType::float32, layout);
        s.wide.plan_out(bind, 0, ElementType::float32, layout);
        const MatMulPlan& p = s.plan;
        s.scratch = layout.take(
            kernels::gemm_packed_b_scratch_bytes(p.M, p.N, p.K, p.lda, bind.threads(), type));
        bind.need_scratch(layout.bytes());
      },
      [packed, type, epilogue](RunContext& run, const State& s) {
        const MatMulPlan& p = s.plan;
        kernels::gemm_packed_b(p.M, p.N, p.K, s.wide.in<float>(run, MatMul::a), p.lda,
                               {packed->get(run.pool()).data(), type}, s.wide.out<float>(run, 0),
                               p.N, at_run(run, s, epilogue), scratch_at(run, s.scratch),
                               run.pool());
        s.wide.finish<float>(run, 0);
      });
  step->traits().unread_inputs = {MatMul::b};
  return step;
}

std::unique_ptr<Step> prepare_float(PrepareContext& ctx) {
  const MatMul op = internal::matmul_of(ctx);
  return make_step<State>(
      "matmul.batched",
      [perm_a = op.perm_a, perm_b = op.perm_b](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.plan = plan_matmul(bind.in_shape(MatMul::a), bind.in_shape(MatMul::b), {perm_a, perm_b});
        s.wide.plan(bind, ElementType::float32, layout);
        const MatMulPlan& p = s.plan;
        s.scratch = layout.take(kernels::batched_gemm_scratch_bytes(
            p.batch, p.M, p.N, p.K, p.a(nullptr), p.b(nullptr), bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [epilogue = op.epilogue()](RunContext& run, const State& s) {
        const MatMulPlan& p = s.plan;
        kernels::batched_gemm(p.batch, p.M, p.N, p.K, p.a(s.wide.in<float>(run, MatMul::a)),
                              p.b(s.wide.in<float>(run, MatMul::b)), s.wide.out<float>(run, 0), p.N,
                              at_run(run, s, epilogue), scratch_at(run, s.scratch), run.pool());
        s.wide.finish<float>(run, 0);
      });
}

std::unique_ptr<Step> prepare_any(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (!kernels::supports_matmul_any(type) || ctx.has_input(MatMul::bias) ||
      ctx.has_input(MatMul::residual) || internal::matmul_of(ctx) != MatMul()) {
    ctx.fail(ErrorCode::unsupported, "no product of {} matrices", name_of(type));
  }
  return make_step<MatMulPlan>(
      "matmul.any",
      [](BindContext& bind, MatMulPlan& plan) {
        plan = plan_matmul(bind.in_shape(MatMul::a), bind.in_shape(MatMul::b));
      },
      [type](RunContext& run, const MatMulPlan& p) {
        kernels::matmul_any(type, p.batch, p.M, p.N, p.K, {run.data(MatMul::a), p.lda, 1},
                            {run.data(MatMul::b), p.ldb, 1}, run.out_data(0), p.N, run.pool());
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  if (!computes_in_float(ctx.in_element(MatMul::a))) return prepare_any(ctx);
  const MatMul op = internal::matmul_of(ctx);
  const bool transposes = !op.perm_a.empty() || !op.perm_b.empty();
  const Tensor* b = ctx.constant(MatMul::b);
  bool one_matrix = b != nullptr && b->size() > 0 && !transposes;
  for (int64_t i = 0; one_matrix && i + 2 < b->rank(); ++i)
    one_matrix = b->shape()[static_cast<size_t>(i)] == 1;
  // A batch rank that B adds to the output's leaves the strides of A as they are: ones only.
  if (one_matrix && b->rank() > 2 && !ctx.in_rank(MatMul::a)) one_matrix = false;
  if (one_matrix && b->rank() > 2 && *ctx.in_rank(MatMul::a) < b->rank()) one_matrix = false;
  auto step = one_matrix ? prepare_packed(ctx) : prepare_float(ctx);
  if (!one_matrix) {
    ctx.refuse("matmul.packed", b == nullptr ? "B is not constant"
                                : transposes ? "an operand is transposed"
                                             : "B is a batch of matrices");
  }
  if (ctx.has_input(MatMul::residual) && ctx.in_element(MatMul::a) == ElementType::float32)
    step->traits().in_place = {{0, MatMul::residual}};
  return step;
}

constexpr Operator operators[] = {
    {.name = MatMul::name, .infer = infer, .prepare = prepare},
    {.name = MatMul::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<MatMul, infer>,
     .prepare = prepare},
};

}  // namespace
}  // namespace matmul_unit

std::span<const Operator> matmul_operators() { return matmul_unit::operators; }

}  // namespace sardonyx::ops
