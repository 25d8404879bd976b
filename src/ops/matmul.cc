// MatMul, and its fused form (domain "sardonyx"): inputs A, B, bias [N]?, residual like Y?.
#include <algorithm>
#include <array>

#include "base/checked.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "ops/families/product.h"
#include "ops/families/wide.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

using kernels::GemmBatch;

void infer(InferContext& ctx) {
  const auto& a = ctx.shape(0);
  const auto& b = ctx.shape(1);
  if (!a || !b) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  if (a->empty() || b->empty()) {
    ctx.fail("A and B must have at least one dimension; got {} and {}", ir::to_string(*a), ir::to_string(*b));
  }
  const size_t m = a->size() < 2 ? 0 : a->size() - 2, n = b->size() < 2 ? 0 : b->size() - 2;
  ctx.require_equal(a->back(), b->size() == 1 ? b->front() : (*b)[n],
                    "the inner dimensions of A and B must agree");
  std::vector<Dim> shape = ctx.broadcast(std::span(*a).first(m), std::span(*b).first(n));
  if (a->size() > 1) shape.push_back((*a)[m]);
  if (b->size() > 1) shape.push_back(b->back());
  if (ctx.has_input(2)) {
    const auto count = ctx.type(2).element_count();
    if (count) ctx.require_equal(*count, b->size() > 1 ? b->back() : Dim(1), "the bias must have one value for each column of B");
  }
  ctx.set(0, ctx.element(0), std::move(shape));
}

// One product, or a batch of them, after the dimensions that allow it have been merged.
struct Plan {
  int64_t M = 1, N = 1, K = 1;
  int64_t lda = 0, ldb = 0;
  GemmBatch batch;
};

void add_batch_dim(GemmBatch& batch, int64_t size, int64_t a, int64_t b, int64_t c) {
  if (size == 1) return;
  if (batch.rank > 0) {  // an outer dimension that walks on where this one ends
    const int i = batch.rank - 1;
    const bool together = batch.a_stride[i] == a * size && batch.b_stride[i] == b * size && batch.c_stride[i] == c * size;
    if (together) {
      batch.size[i] *= size;
      batch.a_stride[i] = a, batch.b_stride[i] = b, batch.c_stride[i] = c;
      return;
    }
  }
  if (batch.rank == GemmBatch::max_rank) {
    throw Error(ErrorCode::unsupported, "MatMul: more than 8 batch dimensions that broadcast differently");
  }
  const int i = batch.rank++;
  batch.size[i] = size, batch.a_stride[i] = a, batch.b_stride[i] = b, batch.c_stride[i] = c;
}

Plan plan_product(std::span<const int64_t> a, std::span<const int64_t> b) {
  Plan plan;
  plan.M = a.size() > 1 ? a[a.size() - 2] : 1;
  plan.K = a.back();
  plan.N = b.size() > 1 ? b.back() : 1;
  plan.lda = plan.K, plan.ldb = plan.N;
  const size_t a_batch = a.size() > 2 ? a.size() - 2 : 0, b_batch = b.size() > 2 ? b.size() - 2 : 0;
  if (count_of(b.first(b_batch)) == 1 && a_batch >= b_batch) {  // one B for all: the rows of A are one matrix
    plan.M *= count_of(a.first(a_batch));
    return plan;
  }
  const size_t rank = std::max(a_batch, b_batch);
  std::array<int64_t, 64> size{}, a_step{}, b_step{};
  if (rank > size.size()) throw Error(ErrorCode::unsupported, "MatMul: more than 64 batch dimensions");
  int64_t a_next = plan.M * plan.K, b_next = plan.K * plan.N;
  for (size_t back = 1; back <= rank; ++back) {
    const size_t i = rank - back;
    const int64_t x = back <= a_batch ? a[a_batch - back] : 1, y = back <= b_batch ? b[b_batch - back] : 1;
    size[i] = x == 1 ? y : x;
    a_step[i] = x == 1 ? 0 : a_next, b_step[i] = y == 1 ? 0 : b_next;
    a_next *= x, b_next *= y;
  }
  std::array<int64_t, 64> c_step{};
  int64_t c_next = plan.M * plan.N;
  for (size_t i = rank; i-- > 0;) c_step[i] = c_next, c_next *= size[i];
  for (size_t i = 0; i < rank; ++i) add_batch_dim(plan.batch, size[i], a_step[i], b_step[i], c_step[i]);
  return plan;
}

struct State {
  Plan plan;
  WideArguments wide;
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
  const int64_t rank = b.rank(), K = b.shape()[static_cast<size_t>(rank == 1 ? 0 : rank - 2)], N = rank == 1 ? 1 : b.shape().back();
  const auto packed = ctx.packed<Tensor>(1, fmt::format("gemm {}x{} {}", K, N, name_of(b.element_type())), [&] {
    const Tensor values = float_constant(ctx, 1);
    auto made = std::make_shared<Tensor>(ElementType::uint8, Shape{kernels::packed_b_size(K, N)});
    kernels::pack_b(static_cast<const float*>(values.data()), N, 1, K, N, made->mutable_data(), ctx.services().pool);
    return std::shared_ptr<const Tensor>(std::move(made));
  });
  const kernels::Epilogue epilogue = read_epilogue(ctx);
  auto step = make_step<State>(
      "matmul.packed",
      [](BindContext& bind, State& s) {
        ScratchLayout layout;
        s.plan = plan_product(bind.in_shape(0), bind.in_shape(1));
        s.wide.plan_in(bind, 0, ElementType::float32, layout);
        s.wide.plan_in(bind, 2, ElementType::float32, layout);
        s.wide.plan_in(bind, 3, ElementType::float32, layout);
        s.wide.plan_out(bind, 0, ElementType::float32, layout);
        const Plan& p = s.plan;
        s.scratch = layout.take(kernels::gemm_packed_b_scratch_bytes(p.M, p.N, p.K, p.lda, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [packed, epilogue](RunContext& run, const State& s) {
        const Plan& p = s.plan;
        kernels::gemm_packed_b(p.M, p.N, p.K, s.wide.in<float>(run, 0), p.lda, packed->data(),
                               s.wide.out<float>(run, 0), p.N, at_run(run, s, epilogue),
                               scratch_at(run, s.scratch), run.pool());
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
        ScratchLayout layout;
        s.plan = plan_product(bind.in_shape(0), bind.in_shape(1));
        s.wide.plan(bind, ElementType::float32, layout);
        const Plan& p = s.plan;
        s.scratch = layout.take(kernels::batched_gemm_scratch_bytes(
            p.batch, p.M, p.N, p.K, {nullptr, p.lda, 1}, {nullptr, p.ldb, 1}, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [epilogue](RunContext& run, const State& s) {
        const Plan& p = s.plan;
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
  return make_step<Plan>(
      "matmul.any",
      [](BindContext& bind, Plan& plan) { plan = plan_product(bind.in_shape(0), bind.in_shape(1)); },
      [type](RunContext& run, const Plan& p) {
        kernels::matmul_any(type, p.batch, p.M, p.N, p.K, {run.data(0), p.lda, 1}, {run.data(1), p.ldb, 1},
                            run.out_data(0), p.N, run.pool());
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  if (!computes_in_float(ctx.in_element(0))) return prepare_any(ctx);
  const Tensor* b = ctx.constant(1);
  bool one_matrix = b != nullptr && b->size() > 0;
  for (int64_t i = 0; one_matrix && i + 2 < b->rank(); ++i) one_matrix = b->shape()[static_cast<size_t>(i)] == 1;
  // A batch rank that B adds to the output's leaves the strides of A as they are: ones only.
  if (one_matrix && b->rank() > 2 && !ctx.in_rank(0)) one_matrix = false;
  if (one_matrix && b->rank() > 2 && *ctx.in_rank(0) < b->rank()) one_matrix = false;
  auto step = one_matrix ? prepare_packed(ctx) : prepare_float(ctx);
  if (!one_matrix) ctx.refuse("matmul.packed", b ? "B is a batch of matrices" : "B is not constant");
  if (ctx.has_input(3) && ctx.in_element(0) == ElementType::float32) step->traits().in_place = {{0, 3}};
  return step;
}

constexpr Operator operators[] = {
    {.name = "MatMul", .infer = infer, .prepare = prepare},
    {.name = "MatMul", .domain = "sardonyx", .infer = infer, .prepare = prepare},
};

}  // namespace

std::span<const Operator> matmul_operators() { return operators; }

}  // namespace sardonyx::ops
