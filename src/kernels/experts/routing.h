// Mixtures of experts: which experts a token goes to, and what lies between their products.
#pragma once

#include <cstdint>
#include <limits>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// How the weights of the chosen experts come from the router's scores.
enum class RouteWeights : uint8_t {
  softmax,  // over all experts
  softmax_of_chosen,
  given,             // of `weights`
  given_normalized,  // of `weights`, divided by their sum
};

struct Routing {
  int64_t tokens = 0, experts = 0, chosen = 0;  // chosen <= experts
  RouteWeights rule = RouteWeights::softmax;
  const float* scores = nullptr;   // [tokens, experts]
  const float* weights = nullptr;  // the same, for the last two rules
};

// The tokens of expert e are the entries [begin[e], begin[e + 1]) of `token` and `weight`, in the
// order of the tokens.
struct Routes {
  int64_t* begin = nullptr;   // [experts + 1]
  int64_t* token = nullptr;   // [tokens * chosen]
  float* weight = nullptr;    // [tokens * chosen]
  int32_t* expert = nullptr;  // [tokens * chosen], space
  float* unsorted = nullptr;  // [tokens * chosen], space
};

// Each token's experts of the highest scores; of equal ones those with the higher number. Scores
// that are no numbers come last.
void route(const Routing& routing, const Routes& routes);

enum class ExpertActivation : uint8_t { relu, gelu, silu, identity, swiglu };

struct ExpertGate {
  ExpertActivation activation = ExpertActivation::relu;
  float alpha = 1, beta = 0, limit = std::numeric_limits<float>::infinity();  // of swiglu
};

// Where the two parts of a row lie: value i of a part is at [row * row_stride + i * step]. `linear`
// is null where there is one part.
struct GateParts {
  const float* gate = nullptr;
  const float* linear = nullptr;
  int64_t gate_stride = 0, linear_stride = 0, step = 1;
};

// y [rows, columns]: the activation of the gate, times the linear part where there is one.
void apply_gate(const ExpertGate& gate, const GateParts& parts, int64_t rows, int64_t columns,
                float* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
