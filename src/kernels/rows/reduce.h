// Reductions over any set of axes.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

enum class ReduceOp : int32_t {
  sum,
  mean,
  max,
  min,
  prod,
  l1,
  l2,
  log_sum,
  log_sum_exp,
  sum_square,
  count_
};

// Which dimensions are kept and which are reduced, after merging neighbours. Trivially copyable.
struct ReducePlan {
  static constexpr int max_rank = 12;
  int32_t kept_rank = 0, reduced_rank = 0;
  int64_t kept = 1;     // elements of the output
  int64_t reduced = 1;  // elements that make one of them
  int64_t kept_dims[max_rank] = {}, kept_strides[max_rank] = {};
  int64_t reduced_dims[max_rank] = {}, reduced_strides[max_rank] = {};
};

// `axes` are in [0, rank), in any order; repeated ones throw Error (bad_input). No axis at all
// reduces nothing (an element-wise operator, as noop_with_empty_axes has it).
ReducePlan plan_reduce(std::span<const int64_t> shape, std::span<const int64_t> axes);

// sum, mean, prod, l1, l2, sum_square, log_sum, log_sum_exp: floats (16-bit ones and float8 are
// reduced in float32), int32, int64, uint32, uint64. max and min also the other integers and
// boolean.
bool supports(ReduceOp op, ElementType type);

// An empty reduction gives the operator's neutral element: sums 0, prod 1, mean NaN, max -inf or
// the least integer, min +inf or the greatest, logarithms -inf. NaN gives NaN.
void reduce(ReduceOp op, ElementType type, const ReducePlan& plan, const void* x, void* y,
            ThreadPool& pool);

}  // namespace sardonyx::kernels
