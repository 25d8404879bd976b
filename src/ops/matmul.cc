// MatMul, and its fused form (domain "sardonyx"): inputs A, B, bias [N]?, residual like Y?.
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "ops/families/converted_arguments.h"
#include "ops/families/matmul_shape.h"
#include "ops/families/product.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

void infer(InferContext& ctx) {
  auto shape = matmul_output(ctx, 0, 1);
  if (!shape) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  if (ctx.has_input(2)) {
    const auto count = ctx.type(2).element_count();
    const Dim columns = *ctx.rank(1) > 1 ? ctx.shape(1)->back() : Dim(1);
    if (count)
      ctx.require_equal(*count, columns, "the bias must have one value for each column of B");
  }
  ctx.set(0, ctx.element(0), std::move(*shape));
}

struct State {
  MatMulPlan plan;
  ConvertedArguments wide;
  int64_t scratch = 0;
};

kernels::Epilogue at_run(const RunContext& run, const State& s, kernels::Epilogue epilogue) {
  if (run.has_input(2)) {
    epilogue.bias = s.wide.in<float>(run, 2);
    epilogue.bias_axis = kernels::BiasAxis::column;
  }
  if (run.has_input(3)) {
    epilogue.residual = s.wide.in<float>(run, 3);
    epilogue.residual_stride = s.plan.N;
  }
  return epilogue;
}

std::unique_ptr<Step> prepare_packed(PrepareContext& ctx) {
  const Tensor& b = *ctx.constant(1);
  const int64_t rank = b.rank(), K = b.shape()[static_cast<size_t>(rank == 1 ? 0 : rank - 2)],
                N = rank == 1 ? 1 : b.shape().back();
  const auto packed = pack_matrix(ctx, 1, K, N, false);
  const ElementType type = packed_type(b.element_type());
  const kernels::Epilogue epilogue = read_epilogue(ctx);
  auto step = make_step<State>(
      "matmul.packed",
      [type](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.plan = plan_matmul(bind.in_shape(0), bind.in_shape(1));
        s.wide.plan_in(bind, 0, ElementType::float32, layout);
        s.wide.plan_in(bind, 2, ElementType::float32, layout);
        s.wide.plan_in(bind, 3, ElementType::float32, layout);
        s.wide.plan_out(bind, 0, ElementType::float32, layout);
        const MatMulPlan& p = s.plan;
        s.scratch = layout.take(
            kernels::gemm_packed_b_scratch_bytes(p.M, p.N, p.K, p.lda, bind.threads(), type));
        bind.need_scratch(layout.bytes());
      },
      [packed, type, epilogue](RunContext& run, const State& s) {
        const MatMulPlan& p = s.plan;
        kernels::gemm_packed_b(p.M, p.N, p.K, s.wide.in<float>(run, 0), p.lda,
                               {packed->get(run.pool()).data(), type}, s.wide.out<float>(run, 0),
                               p.N, at_run(run, s, epilogue), scratch_at(run, s.scratch),
                               run.pool());
        s.wide.finish<float>(run, 0);
      });
  step->traits().unread_inputs = {1};
  return step;
}

std::unique_ptr<Step> prepare_float(PrepareContext& ctx) {
  const kernels::Epilogue epilogue = read_epilogue(ctx);
  return make_step<State>(
      "matmul.batched",
      [](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.plan = plan_matmul(bind.in_shape(0), bind.in_shape(1));
        s.wide.plan(bind, ElementType::float32, layout);
        const MatMulPlan& p = s.plan;
        s.scratch = layout.take(kernels::batched_gemm_scratch_bytes(
            p.batch, p.M, p.N, p.K, {nullptr, p.lda, 1}, {nullptr, p.ldb, 1}, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [epilogue](RunContext& run, const State& s) {
        const MatMulPlan& p = s.plan;
        kernels::batched_gemm(p.batch, p.M, p.N, p.K, {s.wide.in<float>(run, 0), p.lda, 1},
                              {s.wide.in<float>(run, 1), p.ldb, 1}, s.wide.out<float>(run, 0), p.N,
                              at_run(run, s, epilogue), scratch_at(run, s.scratch), run.pool());
        s.wide.finish<float>(run, 0);
      });
}

std::unique_ptr<Step> prepare_any(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (!kernels::supports_matmul_any(type) || ctx.has_input(2) || ctx.has_input(3)) {
    ctx.fail(ErrorCode::unsupported, "no product of {} matrices", name_of(type));
  }
  return make_step<MatMulPlan>(
      "matmul.any",
      [](BindContext& bind, MatMulPlan& plan) {
        plan = plan_matmul(bind.in_shape(0), bind.in_shape(1));
      },
      [type](RunContext& run, const MatMulPlan& p) {
        kernels::matmul_any(type, p.batch, p.M, p.N, p.K, {run.data(0), p.lda, 1},
                            {run.data(1), p.ldb, 1}, run.out_data(0), p.N, run.pool());
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  if (!computes_in_float(ctx.in_element(0))) return prepare_any(ctx);
  const Tensor* b = ctx.constant(1);
  bool one_matrix = b != nullptr && b->size() > 0;
  for (int64_t i = 0; one_matrix && i + 2 < b->rank(); ++i)
    one_matrix = b->shape()[static_cast<size_t>(i)] == 1;
  // A batch rank that B adds to the output's leaves the strides of A as they are: ones only.
  if (one_matrix && b->rank() > 2 && !ctx.in_rank(0)) one_matrix = false;
  if (one_matrix && b->rank() > 2 && *ctx.in_rank(0) < b->rank()) one_matrix = false;
  auto step = one_matrix ? prepare_packed(ctx) : prepare_float(ctx);
  if (!one_matrix)
    ctx.refuse("matmul.packed", b ? "B is a batch of matrices" : "B is not constant");
  if (ctx.has_input(3) && ctx.in_element(0) == ElementType::float32)
    step->traits().in_place = {{0, 3}};
  return step;
}

constexpr Operator operators[] = {
    {.name = "MatMul", .infer = infer, .prepare = prepare},
    {.name = "MatMul", .domain = "sardonyx", .infer = infer, .prepare = prepare},
};

}  // namespace

std::span<const Operator> matmul_operators() { return operators; }

}  // namespace sardonyx::ops
