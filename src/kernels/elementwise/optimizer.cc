#include "kernels/elementwise/optimizer.h"

#include <cmath>

namespace sardonyx::kernels {
namespace {

constexpr int64_t grain = 1 << 14;

template <class Body>
void each(int64_t n, ThreadPool& pool, Body&& body) {
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

template <class T>
void put(T* to, int64_t i, T value) {
  if (to != nullptr) to[i] = value;
}

}  // namespace

template <class T>
void optimize(const MomentumRule& rule, const OptimizerData<T>& d, int64_t n, ThreadPool& pool) {
  const T rate = static_cast<T>(rule.rate), norm = static_cast<T>(rule.norm),
          alpha = static_cast<T>(rule.alpha), beta = static_cast<T>(rule.beta);
  each(n, pool, [&](int64_t i) {
    const T x = d.x[i], g = norm * x + d.g[i];
    const T v = alpha * d.v[i] + beta * g;
    put(d.new_x, i, x - rate * (rule.nesterov ? g + alpha * v : v));
    put(d.new_v, i, v);
  });
}

template <class T>
void optimize(const AdagradRule& rule, const OptimizerData<T>& d, int64_t n, ThreadPool& pool) {
  const T rate = static_cast<T>(rule.rate), norm = static_cast<T>(rule.norm),
          epsilon = static_cast<T>(rule.epsilon);
  each(n, pool, [&](int64_t i) {
    const T x = d.x[i], g = norm * x + d.g[i];
    const T h = d.h[i] + g * g;
    put(d.new_x, i, x - rate * g / (std::sqrt(h) + epsilon));
    put(d.new_h, i, h);
  });
}

template <class T>
void optimize(const AdamRule& rule, const OptimizerData<T>& d, int64_t n, ThreadPool& pool) {
  const T rate = static_cast<T>(rule.rate), norm = static_cast<T>(rule.norm),
          alpha = static_cast<T>(rule.alpha), beta = static_cast<T>(rule.beta),
          epsilon = static_cast<T>(rule.epsilon);
  const T new_alpha = static_cast<T>(1 - rule.alpha), new_beta = static_cast<T>(1 - rule.beta),
          keep = static_cast<T>(1 - rule.norm_post);
  each(n, pool, [&](int64_t i) {
    const T x = d.x[i], g = norm * x + d.g[i];
    const T v = alpha * d.v[i] + new_alpha * g, h = beta * d.h[i] + new_beta * (g * g);
    put(d.new_x, i, keep * (x - rate * (v / (std::sqrt(h) + epsilon))));
    put(d.new_v, i, v);
    put(d.new_h, i, h);
  });
}

#define SARDONYX_INSTANTIATE(Rule)                                                        \
  template void optimize(const Rule&, const OptimizerData<float>&, int64_t, ThreadPool&); \
  template void optimize(const Rule&, const OptimizerData<double>&, int64_t, ThreadPool&)
SARDONYX_INSTANTIATE(MomentumRule);
SARDONYX_INSTANTIATE(AdagradRule);
SARDONYX_INSTANTIATE(AdamRule);
#undef SARDONYX_INSTANTIATE

}  // namespace sardonyx::kernels
