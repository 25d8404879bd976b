// Gate activations, in place; inside recurrent/ only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/elementwise/unary.h"
#include "kernels/recurrent/recurrent.h"

namespace sardonyx::kernels {

template <class T>
T gate_value(const Gate& gate, T x) {
  const T alpha = static_cast<T>(gate.alpha), beta = static_cast<T>(gate.beta);
  switch (gate.function) {
    case GateFunction::relu: return x > 0 || std::isnan(x) ? x : T(0);
    case GateFunction::tanh: return std::tanh(x);
    case GateFunction::sigmoid: return T(1) / (T(1) + std::exp(-x));
    case GateFunction::affine: return alpha * x + beta;
    case GateFunction::leaky_relu: return x < 0 ? alpha * x : x;
    case GateFunction::thresholded_relu: return x > alpha ? x : T(0);
    case GateFunction::scaled_tanh: return alpha * std::tanh(beta * x);
    case GateFunction::hard_sigmoid: return std::clamp(alpha * x + beta, T(0), T(1));
    case GateFunction::elu: return x < 0 ? alpha * std::expm1(x) : x;
    case GateFunction::softsign: return x / (T(1) + std::abs(x));
    case GateFunction::softplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  return x;
}

template <class T>
void clip_row(T* x, int64_t n, float clip) {
  if (!(clip > 0)) return;
  const T limit = static_cast<T>(clip);
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}

inline void apply_gate(const Gate& gate, double* x, int64_t n, float clip) {
  clip_row(x, n, clip);
  for (int64_t i = 0; i < n; ++i) x[i] = gate_value(gate, x[i]);
}

inline void apply_gate(const Gate& gate, float* x, int64_t n, float clip) {
  clip_row(x, n, clip);
  if (gate.function == GateFunction::sigmoid) return unary_tile(UnaryOp::sigmoid)(x, x, n, {});
  if (gate.function == GateFunction::tanh) return unary_tile(UnaryOp::tanh)(x, x, n, {});
  for (int64_t i = 0; i < n; ++i) x[i] = gate_value(gate, x[i]);
}

}  // namespace sardonyx::kernels
