#include "kernels/attention/linear.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/linear.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

namespace sardonyx::kernels {
#ifndef SARDONYX_KERNELS_ATTENTION_LINEAR_ONCE
#define SARDONYX_KERNELS_ATTENTION_LINEAR_ONCE

// Columns of the state do not know of each other: a task takes so many of one head through all
// tokens, and its part of the state stays in the cache.
constexpr int64_t column_block = 64;

#endif
}  // namespace sardonyx::kernels

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y += a * x.
HWY_INLINE void AddScaled(const float* x, float a, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, a);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), factor, hn::LoadU(d, y + i)), d, y + i);
  for (; i < n; ++i) y[i] = std::fma(x[i], a, y[i]);
}

HWY_INLINE void Scale(float* x, float a, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, a);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factor), d, x + i);
  for (; i < n; ++i) x[i] *= a;
}

// What one token does to columns [first, first + n) of one head's state.
void Token(const LinearAttentionShape& s, const LinearAttentionData& d, int64_t token, int64_t head,
           int64_t first, int64_t n, float* state) {
  const float* k = d.k + (token * s.kv_heads + head) * s.head_size;
  const float* v = d.v + (token * s.kv_heads + head) * s.v_head_size + first;
  if (s.decay_size > 0) {
    const float* decay = d.decay + (token * s.kv_heads + head) * s.decay_size;
    float factor = 0;
    for (int64_t i = 0; i < s.head_size; ++i) {
      if (i < s.decay_size) factor = std::exp(decay[i]);
      Scale(state + i * s.v_head_size, factor, n);
    }
  }
  float added[column_block];
  std::copy_n(v, n, added);
  if (s.beta_heads > 0) {
    for (int64_t i = 0; i < s.head_size; ++i) AddScaled(state + i * s.v_head_size, -k[i], added, n);
    Scale(added, d.beta[token * s.beta_heads + (s.beta_heads == 1 ? 0 : head)], n);
  }
  for (int64_t i = 0; i < s.head_size; ++i) AddScaled(added, k[i], state + i * s.v_head_size, n);
  if (d.y == nullptr) return;
  const int64_t group = s.q_heads / s.kv_heads;
  for (int64_t g = 0; g < group; ++g) {
    const int64_t row = token * s.q_heads + head * group + g;
    const float* q = d.q + row * s.head_size;
    float* y = d.y + row * s.v_head_size + first;
    std::fill_n(y, n, 0.0f);
    for (int64_t i = 0; i < s.head_size; ++i) AddScaled(state + i * s.v_head_size, q[i], y, n);
    Scale(y, s.scale, n);
  }
}

// Columns [first, first + n) of state `of`, through all tokens.
void Columns(const LinearAttentionShape& s, const LinearAttentionData& d, int64_t of, int64_t first,
             int64_t n) {
  float* state = d.state + of * s.head_size * s.v_head_size + first;
  for (int64_t t = 0; t < s.length; ++t)
    Token(s, d, of / s.kv_heads * s.length + t, of % s.kv_heads, first, n, state);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(Columns);

void linear_attention(const LinearAttentionShape& s, const LinearAttentionData& data,
                      ThreadPool& pool) {
  const int64_t blocks = (s.v_head_size + column_block - 1) / column_block;
  pool.parallel_for(s.batch * s.kv_heads * blocks, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * column_block;
      HWY_DYNAMIC_DISPATCH(Columns)
      (s, data, task / blocks, first, std::min(column_block, s.v_head_size - first));
    }
  });
}

}  // namespace sardonyx::kernels
#endif
