#include "ops/shared/matmul_shape.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/checked.h"
#include "sardonyx/error.h"

namespace sardonyx::ops {

using kernels::GemmBatch;

namespace {

// Whether it takes each of so many dimensions once.
bool is_perm(std::span<const int64_t> perm, size_t rank) {
  if (perm.size() != rank) return false;
  std::vector<bool> taken(rank);
  for (const int64_t axis : perm) {
    if (axis < 0 || static_cast<size_t>(axis) >= rank || taken[static_cast<size_t>(axis)])
      return false;
    taken[static_cast<size_t>(axis)] = true;
  }
  return true;
}

// The shape itself, or, in `made`, its dimensions in that order.
const Dims& transposed(InferContext& ctx, const Dims& shape, std::span<const int64_t> perm,
                       Dims& made) {
  if (perm.empty()) return shape;
  if (!is_perm(perm, shape.size()))
    ctx.fail("a perm of {} axes does not fit the shape {}", perm.size(), ir::to_string(shape));
  for (const int64_t axis : perm) made.push_back(shape[static_cast<size_t>(axis)]);
  return made;
}

}  // namespace

std::optional<Dims> matmul_output(InferContext& ctx, int first, int second, const Perms& perms) {
  if (!ctx.shape(first) || !ctx.shape(second)) return std::nullopt;
  Dims of_a, of_b;
  const Dims& a = transposed(ctx, *ctx.shape(first), perms.a, of_a);
  const Dims& b = transposed(ctx, *ctx.shape(second), perms.b, of_b);
  if (a.empty() || b.empty()) {
    ctx.fail("A and B must have at least one dimension; got {} and {}", ir::to_string(a),
             ir::to_string(b));
  }
  const size_t m = a.size() < 2 ? 0 : a.size() - 2, n = b.size() < 2 ? 0 : b.size() - 2;
  ctx.require_equal(a.back(), b.size() == 1 ? b.front() : b[n],
                    "the inner dimensions of A and B must agree");
  Dims shape = ctx.broadcast(std::span(a).first(m), std::span(b).first(n));
  if (a.size() > 1) shape.push_back(a[m]);
  if (b.size() > 1) shape.push_back(b.back());
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

namespace {

constexpr size_t max_batch_rank = 64;

// A factor's dimensions and how far apart their elements are.
struct Factor {
  std::array<int64_t, max_batch_rank + 2> size{}, step{};
  size_t rank;

  Factor(std::span<const int64_t> shape, std::span<const int64_t> perm) : rank(shape.size()) {
    if (rank > size.size())
      throw Error(ErrorCode::unsupported, "MatMul: more than 64 batch dimensions");
    if (!perm.empty() && !is_perm(perm, rank))
      throw Error(ErrorCode::internal, "a perm does not fit the rank of its input");
    std::array<int64_t, max_batch_rank + 2> dense{};
    int64_t next = 1;
    for (size_t i = rank; i-- > 0; next *= shape[i]) dense[i] = next;
    for (size_t i = 0; i < rank; ++i) {
      const size_t from = perm.empty() ? i : static_cast<size_t>(perm[i]);
      size[i] = shape[from], step[i] = dense[from];
    }
  }

  size_t batch_rank() const { return rank > 2 ? rank - 2 : 0; }
  int64_t batch_count() const { return count_of(std::span(size).first(batch_rank())); }
  // Whether all matrices are one, row after row.
  bool is_one_matrix() const {
    int64_t next = 0;  // where the matrix, or the batch of them, would go on
    for (size_t i = rank; i-- > 0;) {
      if (i + 2 == rank) next = size[i] * step[i];
      if (i + 2 >= rank || size[i] == 1) continue;
      if (step[i] != next) return false;
      next *= size[i];
    }
    return true;
  }
};

}  // namespace

MatMulPlan plan_matmul(std::span<const int64_t> a_shape, std::span<const int64_t> b_shape,
                       const Perms& perms) {
  const Factor a(a_shape, perms.a), b(b_shape, perms.b);
  MatMulPlan plan;
  plan.K = a.size[a.rank - 1];
  plan.lda = plan.K, plan.a_column = a.step[a.rank - 1];
  if (a.rank > 1) plan.M = a.size[a.rank - 2], plan.lda = a.step[a.rank - 2];
  plan.ldb = b.step[0];
  if (b.rank > 1) {
    plan.N = b.size[b.rank - 1];
    plan.ldb = b.step[b.rank - 2], plan.b_column = b.step[b.rank - 1];
  }
  const size_t a_batch = a.batch_rank(), b_batch = b.batch_rank();
  if (b.batch_count() == 1 && a_batch >= b_batch && a.is_one_matrix()) {  // one B for all
    plan.M *= a.batch_count();
    return plan;
  }
  const size_t rank = std::max(a_batch, b_batch);
  std::array<int64_t, max_batch_rank> size{}, a_step{}, b_step{};
  for (size_t back = 1; back <= rank; ++back) {
    const size_t i = rank - back;
    const int64_t x = back <= a_batch ? a.size[a_batch - back] : 1,
                  y = back <= b_batch ? b.size[b_batch - back] : 1;
    size[i] = x == 1 ? y : x;
    a_step[i] = x == 1 ? 0 : a.step[a_batch - back];
    b_step[i] = y == 1 ? 0 : b.step[b_batch - back];
  }
  std::array<int64_t, max_batch_rank> c_step{};
  int64_t c_next = plan.M * plan.N;
  for (size_t i = rank; i-- > 0;) c_step[i] = c_next, c_next *= size[i];
  for (size_t i = 0; i < rank; ++i)
    add_batch_dim(plan.batch, size[i], a_step[i], b_step[i], c_step[i]);
  return plan;
}

}  // namespace sardonyx::ops
