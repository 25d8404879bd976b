// Operators of one input, element by element.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

enum class UnaryOp : int32_t {
  abs,
  neg,
  exp,
  log,
  sqrt,
  reciprocal,
  floor,
  ceil,
  round,
  sign,
  relu,        // max(x, 0)
  leaky_relu,  // alpha x below 0
  elu,         // alpha (exp(x) - 1) below 0
  celu,        // alpha (exp(x / alpha) - 1) below 0
  selu,        // beta x above 0, beta alpha (exp(x) - 1) below (beta is gamma)
  gelu,        // x Phi(x)
  gelu_tanh,   // its tanh approximation
  sigmoid,
  tanh,
  hard_sigmoid,  // clamp(alpha x + beta, 0, 1)
  hard_swish,    // x clamp(x / 6 + 1/2, 0, 1)
  mish,          // x tanh(softplus(x))
  softplus,
  softsign,
  thresholded_relu,  // x above alpha, else 0
  shrink,            // x + bias below -lambd, x - bias above lambd, else 0: alpha lambd, beta bias
  swish,             // x sigmoid(alpha x)
  erf,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  clamp,        // min(max(x, alpha), beta), NaN kept
  square,       // x x
  is_nan,       // boolean output
  is_inf,       // boolean output; alpha != 0 takes -inf, beta != 0 takes +inf
  logical_not,  // boolean
  bitwise_not,  // integers
  count_
};

struct UnaryParams {
  double alpha = 0;
  double beta = 0;
};

// The element types an operator is computed for: every floating type down to bfloat16 for all but
// the last two; integers for abs, neg, sign, relu, leaky_relu, shrink, thresholded_relu, clamp,
// square, floor, ceil, round.
bool supports(UnaryOp op, ElementType type);

// y[i] = op(x[i]) for i < n; `type` is x's. y has the same type but for is_nan and is_inf, which
// write booleans. y may be x. float16, bfloat16 and float8 are computed in float32. Throws Error
// (unsupported) where !supports(op, type).
void unary(UnaryOp op, ElementType type, const void* x, void* y, int64_t n,
           const UnaryParams& params, ThreadPool& pool);

// y[i] = min(max(x[i], *low), *high) for every number type; `low` and `high` point to one element
// of the type, or are null for no bound. NaN in x stays.
void clip(ElementType type, const void* x, void* y, int64_t n, const void* low, const void* high,
          ThreadPool& pool);

// The float32 form alone, on the calling thread, for a region that runs tile by tile; y may be x.
// Null for operators without a float32 output. Depends on the instruction set.
using UnaryTile = void (*)(const float* x, float* y, int64_t n, const UnaryParams& params);
UnaryTile unary_tile(UnaryOp op);

}  // namespace sardonyx::kernels
