// What a matrix multiplication or convolution does to each sum before storing it.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

enum class Activation : uint8_t {
  none,
  relu,          // NaN stays NaN, as in every activation here
  clip,          // to [p0, p1]
  leaky_relu,    // x < 0 ? p0 * x : x
  hard_sigmoid,  // clamp(p0 * x + p1, 0, 1)
  hard_swish,    // x * clamp(x / 6 + 1/2, 0, 1)
  sigmoid,
  silu,  // x * sigmoid(x)
  tanh,
  gelu_erf,   // x / 2 * (1 + erf(x / sqrt(2)))
  gelu_tanh,  // the tanh approximation of it
};

// Whether it is a long chain of operations.
constexpr bool takes_long(Activation activation) { return activation >= Activation::sigmoid; }

// Which dimension of the output a bias vector runs along.
enum class BiasAxis : uint8_t { none, row, column };

// out = activation(alpha * sum + beta * bias + beta * residual), or, with residual_last,
// out = activation(alpha * sum + beta * bias) + beta * residual.
// Owns nothing: what the pointers name must live until the run returns.
struct Epilogue {
  float alpha = 1;
  float beta = 1;
  BiasAxis bias_axis = BiasAxis::none;
  Activation activation = Activation::none;
  bool residual_last = false;
  float p0 = 0;  // parameters of the activation
  float p1 = 0;
  // bias_axis row: one value for each row of C (M); column: one for each column (N). Convolution
  // ignores bias_axis: a bias that is not null has one value for each output channel.
  const float* bias = nullptr;
  // Same shape as the output. May be the output itself (equal pointer and stride), otherwise must
  // not overlap it. The row stride counts floats; convolution ignores it (same layout as y).
  const float* residual = nullptr;
  int64_t residual_stride = 0;
};

}  // namespace sardonyx::kernels
