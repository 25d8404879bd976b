// Linear attention: a state of head_size x v_head_size for each head, changed and read token by
// token.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

struct LinearAttentionShape {
  int64_t batch = 0, length = 0;
  int64_t q_heads = 0, kv_heads = 0;  // q_heads is a multiple of kv_heads
  int64_t head_size = 0, v_head_size = 0;
  int64_t decay_size = 0;  // of each head: 0 (none), 1 or head_size; exp of it scales the state
  int64_t beta_heads = 0;  // 0: no correction by what the state holds already; 1 or kv_heads
  float scale = 1;         // of the output
};

// Rows of tokens, dense: [batch, length, heads * size]. The state is [batch, kv_heads, head_size,
// v_head_size] and changed in place.
struct LinearAttentionData {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const float* decay = nullptr;
  const float* beta = nullptr;
  float* state = nullptr;
  float* y = nullptr;  // may be null
};

void linear_attention(const LinearAttentionShape& shape, const LinearAttentionData& data,
                      ThreadPool& pool);

}  // namespace sardonyx::kernels
