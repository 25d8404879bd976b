#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "kernels/rows/softmax.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t query_block = 128;

template <class T>
constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

struct Strided {
  int64_t row, column;
};

int64_t product_scratch(int64_t m, int64_t n, int64_t k, Strided a, Strided b, float) {
  return gemm_scratch_bytes(m, n, k, {nullptr, a.row, a.column}, {nullptr, b.row, b.column}, 1);
}
int64_t product_scratch(int64_t, int64_t, int64_t, Strided, Strided, double) { return 0; }

void product(int64_t m, int64_t n, int64_t k, const float* a, Strided as, const float* b, Strided bs, float* c, int64_t ldc,
             double alpha, void* scratch, ThreadPool& alone) {
  Epilogue epilogue;
  epilogue.alpha = static_cast<float>(alpha);
  gemm(m, n, k, {a, as.row, as.column}, {b, bs.row, bs.column}, c, ldc, epilogue, scratch, alone);
}
void product(int64_t m, int64_t n, int64_t k, const double* a, Strided as, const double* b, Strided bs, double* c, int64_t ldc,
             double alpha, void*, ThreadPool& alone) {
  matmul_any(ElementType::float64, {}, m, n, k, {a, as.row, as.column}, {b, bs.row, bs.column}, c, ldc, alone);
  if (alpha == 1) return;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] *= alpha;
  }
}

int64_t aligned_bytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Memory of one task: the scores of a block of queries, and what the products need.
template <class T>
struct TaskScratch {
  int64_t scores, products;
  explicit TaskScratch(const AttentionShape& s) {
    const int64_t rows = std::min(query_block, s.q_length);
    scores = aligned_bytes(rows * s.kv_length * static_cast<int64_t>(sizeof(T)));
    products = 0;
    // The product with V, and those with fewer rows or keys than a whole block has.
    for (const int64_t m : {rows, s.q_length % query_block}) {
      const int64_t first = product_scratch(m, s.kv_length, s.head_size, {s.q.row, 1}, {1, s.k.row}, T());
      const int64_t second = product_scratch(m, s.v_head_size, s.kv_length, {s.kv_length, 1}, {s.v.row, 1}, T());
      products = std::max({products, aligned_bytes(first), aligned_bytes(second)});
    }
  }
  int64_t bytes() const { return scores + products; }
};

// The keys [begin, end) that position limits (cache length, causal frontier, window) leave a query.
struct Keys {
  int64_t begin, end;
};

Keys visible(const AttentionShape& s, int64_t query, int64_t length, int64_t offset) {
  Keys keys{0, length};
  const int64_t position = query + offset;
  if (s.causal) keys.end = std::min(keys.end, position + 1);
  if (s.right >= 0 && s.right < s.kv_length) keys.end = std::min(keys.end, position + s.right + 1);
  if (s.left >= 0 && s.left < s.kv_length + s.q_length) keys.begin = std::max(keys.begin, position - s.left);
  keys.end = std::max<int64_t>(keys.end, 0);
  keys.begin = std::clamp<int64_t>(keys.begin, 0, keys.end);
  return keys;
}

template <class T>
class Block {
 public:
  Block(const AttentionShape& s, const AttentionData<T>& d, int64_t batch, int64_t head, int64_t first, int64_t rows, std::byte* scratch,
        ThreadPool& alone)
      : s_(s), d_(d), batch_(batch), head_(head), first_(first), rows_(rows), scores_(reinterpret_cast<T*>(scratch)),
        products_(scratch + TaskScratch<T>(s).scores), alone_(alone) {
    length_ = d.lengths ? std::clamp<int64_t>(d.lengths[batch], 0, s.kv_length) : s.kv_length;
    offset_ = d.lengths ? d.lengths[batch] - s.q_length : s.past;
  }

  void run() {
    const int64_t kv_head = head_ / (s_.q_heads / s_.kv_heads);
    const T* q = d_.q + batch_ * s_.q.batch + head_ * s_.q.head + first_ * s_.q.row;
    const T* k = d_.k + batch_ * s_.k.batch + kv_head * s_.k.head;
    const T* v = d_.v + batch_ * s_.v.batch + kv_head * s_.v.head;
    T* y = d_.y + batch_ * s_.y.batch + head_ * s_.y.head + first_ * s_.y.row;
    product(rows_, s_.kv_length, s_.head_size, q, {s_.q.row, 1}, k, {1, s_.k.row}, scores_, s_.kv_length, s_.scale, products_, alone_);
    if (s_.kind == AttentionScores::raw) copy_out();
    for (int64_t r = 0; r < rows_; ++r) cap(scores_ + r * s_.kv_length);
    if (s_.kind == AttentionScores::capped) copy_out();
    for (int64_t r = 0; r < rows_; ++r) masked_[r] = add_bias(r, scores_ + r * s_.kv_length);
    if (s_.kind == AttentionScores::biased) copy_out();
    softmax(sizeof(T) == 8 ? ElementType::float64 : ElementType::float32, scores_, scores_, rows_, s_.kv_length, 1, alone_);
    for (int64_t r = 0; r < rows_; ++r) {
      if (masked_[r]) std::fill_n(scores_ + r * s_.kv_length, s_.kv_length, T(0));
    }
    if (s_.kind == AttentionScores::probabilities) copy_out();
    product(rows_, s_.v_head_size, s_.kv_length, scores_, {s_.kv_length, 1}, v, {s_.v.row, 1}, y, s_.y.row, 1, products_, alone_);
  }

 private:
  void copy_out() {
    if (d_.scores == nullptr) return;
    const int64_t row = (batch_ * s_.q_heads + head_) * s_.q_length + first_;
    std::copy_n(scores_, rows_ * s_.kv_length, d_.scores + row * s_.kv_length);
  }

  void cap(T* row) const {
    if (!(s_.softcap > 0)) return;
    const T limit = static_cast<T>(s_.softcap);
    for (int64_t j = 0; j < s_.kv_length; ++j) row[j] = limit * std::tanh(row[j] / limit);
  }

  // Adds mask and position limits; true where nothing is left to attend to.
  bool add_bias(int64_t r, T* row) const {
    const Keys keys = visible(s_, first_ + r, length_, offset_);
    const bool has_mask = d_.allowed || d_.bias;
    const int64_t end = has_mask ? std::min(keys.end, s_.mask_columns) : keys.end;
    const int64_t begin = std::min(keys.begin, end);
    std::fill(row, row + begin, minus_infinity<T>);
    std::fill(row + end, row + s_.kv_length, minus_infinity<T>);
    bool masked = begin == end;
    const int64_t at = batch_ * s_.mask.batch + head_ * s_.mask.head + (first_ + r) * s_.mask.row;
    if (d_.allowed) {
      masked = true;
      for (int64_t j = begin; j < end; ++j) {
        const bool allowed = d_.allowed[at + j];
        masked = masked && !allowed;
        row[j] = allowed ? row[j] : minus_infinity<T>;
      }
    } else if (d_.bias) {
      masked = true;
      for (int64_t j = begin; j < end; ++j) {
        masked = masked && d_.bias[at + j] == minus_infinity<T>;
        row[j] += d_.bias[at + j];
      }
    }
    return masked;
  }

  const AttentionShape& s_;
  const AttentionData<T>& d_;
  int64_t batch_, head_, first_, rows_;
  T* scores_;
  std::byte* products_;
  ThreadPool& alone_;
  int64_t length_, offset_;
  bool masked_[query_block];
};

}  // namespace

template <class T>
int64_t attention_scratch_bytes(const AttentionShape& shape, int threads) {
  return TaskScratch<T>(shape).bytes() * threads;
}

template <class T>
void attention(const AttentionShape& s, const AttentionData<T>& data, void* scratch, ThreadPool& alone, ThreadPool& pool) {
  const int64_t blocks = (s.q_length + query_block - 1) / query_block;
  const int64_t each = TaskScratch<T>(s).bytes();
  pool.parallel_for(s.batch * s.q_heads * blocks, 1, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = static_cast<std::byte*>(scratch) + worker * each;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * query_block, head = i / blocks % s.q_heads, batch = i / blocks / s.q_heads;
      Block<T>(s, data, batch, head, first, std::min(query_block, s.q_length - first), own, alone).run();
    }
  });
}

template int64_t attention_scratch_bytes<float>(const AttentionShape&, int);
template int64_t attention_scratch_bytes<double>(const AttentionShape&, int);
template void attention<float>(const AttentionShape&, const AttentionData<float>&, void*, ThreadPool&, ThreadPool&);
template void attention<double>(const AttentionShape&, const AttentionData<double>&, void*, ThreadPool&, ThreadPool&);

}  // namespace sardonyx::kernels
