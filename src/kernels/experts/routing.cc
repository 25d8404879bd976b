#include "kernels/experts/routing.h"

#include <algorithm>
#include <cmath>

namespace sardonyx::kernels {
namespace {

// Whether expert a comes before expert b.
bool leads(const float* scores, int64_t a, int64_t b) {
  const float x = scores[a], y = scores[b];
  if (std::isnan(x) || std::isnan(y))
    return std::isnan(x) == std::isnan(y) ? a > b : !std::isnan(x);
  return x != y ? x > y : a > b;
}

// Keeps the `count` leading experts of a row in `chosen`, the first one first.
void choose(const float* scores, int64_t experts, int64_t count, int32_t* chosen) {
  int64_t held = 0;
  for (int64_t e = 0; e < experts; ++e) {
    if (held == count && !leads(scores, e, chosen[held - 1])) continue;
    int64_t at = held < count ? held++ : held - 1;
    for (; at > 0 && leads(scores, e, chosen[at - 1]); --at) chosen[at] = chosen[at - 1];
    chosen[at] = static_cast<int32_t>(e);
  }
}

void weigh(const Routing& r, int64_t token, const int32_t* chosen, float* weight) {
  const float* scores = r.scores + token * r.experts;
  float sum = 0;
  if (r.rule == RouteWeights::given || r.rule == RouteWeights::given_normalized) {
    const float* given = r.weights + token * r.experts;
    for (int64_t j = 0; j < r.chosen; ++j) sum += weight[j] = given[chosen[j]];
    if (r.rule == RouteWeights::given) return;
  } else {
    const float top = scores[chosen[0]];
    for (int64_t j = 0; j < r.chosen; ++j) sum += weight[j] = std::exp(scores[chosen[j]] - top);
    if (r.rule == RouteWeights::softmax) {
      sum = 0;
      for (int64_t e = 0; e < r.experts; ++e) sum += std::exp(scores[e] - top);
    }
  }
  for (int64_t j = 0; j < r.chosen; ++j) weight[j] = sum == 0 ? 0 : weight[j] / sum;
}

float activated(const ExpertGate& gate, float x) {
  switch (gate.activation) {
    case ExpertActivation::relu: return x < 0 ? 0 : x;
    case ExpertActivation::gelu:
      return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
    case ExpertActivation::silu: return x / (1 + std::exp(-x));
    case ExpertActivation::swiglu: {
      const float g = x > gate.limit ? gate.limit : x;
      return g / (1 + std::exp(-gate.alpha * g));
    }
    case ExpertActivation::identity: break;
  }
  return x;
}

float linear_part(const ExpertGate& gate, float x) {
  if (gate.activation != ExpertActivation::swiglu) return x;
  const float low = x < -gate.limit ? -gate.limit : x;
  return (low > gate.limit ? gate.limit : low) + gate.beta;
}

}  // namespace

void route(const Routing& r, const Routes& routes) {
  std::fill_n(routes.begin, r.experts + 1, 0);
  for (int64_t t = 0; t < r.tokens; ++t) {
    int32_t* chosen = routes.expert + t * r.chosen;
    choose(r.scores + t * r.experts, r.experts, r.chosen, chosen);
    weigh(r, t, chosen, routes.unsorted + t * r.chosen);
    for (int64_t j = 0; j < r.chosen; ++j) ++routes.begin[chosen[j] + 1];
  }
  for (int64_t e = 0; e < r.experts; ++e) routes.begin[e + 1] += routes.begin[e];
  // Filling moves each expert's begin to its end, which is the next one's begin.
  for (int64_t i = 0; i < r.tokens * r.chosen; ++i) {
    const int64_t at = routes.begin[routes.expert[i]]++;
    routes.token[at] = i / r.chosen, routes.weight[at] = routes.unsorted[i];
  }
  for (int64_t e = r.experts; e > 0; --e) routes.begin[e] = routes.begin[e - 1];
  routes.begin[0] = 0;
}

void apply_gate(const ExpertGate& gate, const GateParts& parts, int64_t rows, int64_t columns,
                float* y, ThreadPool& pool) {
  constexpr int64_t grain = 1024;
  pool.parallel_for(rows * columns, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / columns, at = i % columns * parts.step;
      const float value = activated(gate, parts.gate[row * parts.gate_stride + at]);
      y[i] = parts.linear == nullptr
                 ? value
                 : value * linear_part(gate, parts.linear[row * parts.linear_stride + at]);
    }
  });
}

}  // namespace sardonyx::kernels
