#include "ops/shared/matmul_shape.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "sardonyx/error.h"

namespace sardonyx::ops {

using kernels::GemmBatch;

std::optional<Dims> matmul_output(InferContext& ctx, int first, int second) {
  const auto& a = ctx.shape(first);
  const auto& b = ctx.shape(second);
  if (!a || !b) return std::nullopt;
  if (a->empty() || b->empty()) {
    ctx.fail("A and B must have at least one dimension; got {} and {}", ir::to_string(*a),
             ir::to_string(*b));
  }
  const size_t m = a->size() < 2 ? 0 : a->size() - 2, n = b->size() < 2 ? 0 : b->size() - 2;
  ctx.require_equal(a->back(), b->size() == 1 ? b->front() : (*b)[n],
                    "the inner dimensions of A and B must agree");
  Dims shape = ctx.broadcast(std::span(*a).first(m), std::span(*b).first(n));
  if (a->size() > 1) shape.push_back((*a)[m]);
  if (b->size() > 1) shape.push_back(b->back());
  return shape;
}

namespace {

void add_batch_dim(GemmBatch& batch, int64_t size, int64_t a, int64_t b, int64_t c) {
  if (size == 1) return;
  if (batch.rank > 0) {  // an outer dimension that walks on where this one ends
    const int i = batch.rank - 1;
    const bool together = batch.a_stride[i] == a * size && batch.b_stride[i] == b * size &&
                          batch.c_stride[i] == c * size;
    if (together) {
      batch.size[i] *= size;
      batch.a_stride[i] = a, batch.b_stride[i] = b, batch.c_stride[i] = c;
      return;
    }
  }
  if (batch.rank == GemmBatch::max_rank) {
    throw Error(ErrorCode::unsupported,
                "MatMul: more than 8 batch dimensions that broadcast differently");
  }
  const int i = batch.rank++;
  batch.size[i] = size, batch.a_stride[i] = a, batch.b_stride[i] = b, batch.c_stride[i] = c;
}

}  // namespace

MatMulPlan plan_matmul(std::span<const int64_t> a, std::span<const int64_t> b) {
  MatMulPlan plan;
  plan.M = a.size() > 1 ? a[a.size() - 2] : 1;
  plan.K = a.back();
  plan.N = b.size() > 1 ? b.back() : 1;
  plan.lda = plan.K, plan.ldb = plan.N;
  const size_t a_batch = a.size() > 2 ? a.size() - 2 : 0, b_batch = b.size() > 2 ? b.size() - 2 : 0;
  if (count_of(b.first(b_batch)) == 1 &&
      a_batch >= b_batch) {  // one B for all: the rows of A are one matrix
    plan.M *= count_of(a.first(a_batch));
    return plan;
  }
  const size_t rank = std::max(a_batch, b_batch);
  std::array<int64_t, 64> size{}, a_step{}, b_step{};
  if (rank > size.size())
    throw Error(ErrorCode::unsupported, "MatMul: more than 64 batch dimensions");
  int64_t a_next = plan.M * plan.K, b_next = plan.K * plan.N;
  for (size_t back = 1; back <= rank; ++back) {
    const size_t i = rank - back;
    const int64_t x = back <= a_batch ? a[a_batch - back] : 1,
                  y = back <= b_batch ? b[b_batch - back] : 1;
    size[i] = x == 1 ? y : x;
    a_step[i] = x == 1 ? 0 : a_next, b_step[i] = y == 1 ? 0 : b_next;
    a_next *= x, b_next *= y;
  }
  std::array<int64_t, 64> c_step{};
  int64_t c_next = plan.M * plan.N;
  for (size_t i = rank; i-- > 0;) c_step[i] = c_next, c_next *= size[i];
  for (size_t i = 0; i < rank; ++i)
    add_batch_dim(plan.batch, size[i], a_step[i], b_step[i], c_step[i]);
  return plan;
}

}  // namespace sardonyx::ops
