// Scaled dot product attention: y = softmax(cap(scale * q k^T) + bias) v, head by head.
#pragma once

#include <cstdint>
#include <limits>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// Where the rows of one operand are, in elements; a row itself is dense.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;
};

// Which of the inner values `scores` receives.
enum class AttentionScores : int32_t { raw, capped, biased, probabilities };

// Where the values of a mask for one query are, and for how many keys there are any. A step is 0
// where the mask repeats. Batches are counted in rows of `inner`, whose neighbours are inner_step
// apart and which are step.batch apart.
struct MaskShape {
  HeadStrides step;
  int64_t inner = 1, inner_step = 0;
  int64_t columns = 0;       // keys beyond are masked
  bool is_a_column = false;  // one value for all keys
};

struct AttentionShape {
  int64_t batch = 0, q_heads = 0, kv_heads = 0;  // q_heads is a multiple of kv_heads
  int64_t q_length = 0, kv_length = 0;
  int64_t head_size = 0, v_head_size = 0;
  HeadStrides q, k, v, y;
  MaskShape allowed, bias, more;
  int64_t past = 0;  // keys before the first query; unless `lengths` says otherwise
  double scale = 1;
  double softcap = 0;  // 0: none
  // The score of keys that a boolean mask leaves out.
  double masked = -std::numeric_limits<double>::infinity();
  bool causal = false;
  int64_t left = -1, right = -1;  // keys a query sees on either side; -1: all
  bool wants_scores = false;
  bool has_lengths = false;   // `lengths` is given: what lies behind them is never read as a number
  bool empty_is_nan = false;  // instead of 0 for a query that may attend to none of the keys
  AttentionScores kind = AttentionScores::raw;
};

// Masks are boolean (true: attend) or added to the scores: first `allowed`, then `bias`, then
// `more`, each where it is given. lengths
// (optional): of each batch the keys that count; the queries are then its last ones, unless
// positions (optional) say where they begin. sinks (optional): a score that takes its share of the
// softmax but has no value. scores (where wanted) is [batch, q_heads, q_length, kv_length]. A query
// that may attend to nothing gives 0.
template <class T>
struct AttentionData {
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const bool* allowed = nullptr;
  const T* bias = nullptr;
  const T* more = nullptr;
  const int64_t* lengths = nullptr;
  const int64_t* positions = nullptr;  // of each batch's first query among its keys
  const T* sinks = nullptr;            // of each query head
  T* y = nullptr;
  T* scores = nullptr;
};

// T is float or double. `alone` is a pool of one thread (for the products inside a task), `pool`
// runs the tasks. Scratch as large as attention_scratch_bytes says for pool.threads().
template <class T>
int64_t attention_scratch_bytes(const AttentionShape& shape, int threads);
template <class T>
void attention(const AttentionShape& shape, const AttentionData<T>& data, void* scratch,
               ThreadPool& alone, ThreadPool& pool);

}  // namespace sardonyx::kernels
