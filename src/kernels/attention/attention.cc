#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/unary.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "kernels/rows/row_math.h"
#include "kernels/rows/short_softmax.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t row_block = 128;
constexpr int64_t key_tile = 512;

template <class T>
constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

struct Strided {
  int64_t row, column;
};

int64_t product_scratch(int64_t m, int64_t n, int64_t k, Strided a, Strided b, float) {
  return gemm_scratch_bytes(m, n, k, {nullptr, a.row, a.column}, {nullptr, b.row, b.column}, 1);
}
int64_t product_scratch(int64_t m, int64_t n, int64_t, Strided, Strided, double) {
  return m * n * 8;
}

// c = alpha * a * b, or c += that.
void product(int64_t m, int64_t n, int64_t k, const float* a, Strided as, const float* b,
             Strided bs, float* c, int64_t ldc, double alpha, bool add, void* scratch,
             ThreadPool& alone) {
  Epilogue epilogue;
  epilogue.alpha = static_cast<float>(alpha);
  if (add) epilogue.residual = c, epilogue.residual_stride = ldc;
  gemm(m, n, k, {a, as.row, as.column}, {b, bs.row, bs.column}, c, ldc, epilogue, scratch, alone);
}
void product(int64_t m, int64_t n, int64_t k, const double* a, Strided as, const double* b,
             Strided bs, double* c, int64_t ldc, double alpha, bool add, void* scratch,
             ThreadPool& alone) {
  auto* sums = static_cast<double*>(scratch);
  matmul_any(ElementType::float64, {}, m, n, k, {a, as.row, as.column}, {b, bs.row, bs.column},
             sums, n, alone);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      c[i * ldc + j] = alpha * sums[i * n + j] + (add ? c[i * ldc + j] : 0.0);
    }
  }
}

int64_t aligned_bytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// How the queries are cut into blocks of rows. A single query for each head takes the heads that
// share keys as rows instead, so that their keys are read once.
struct Blocks {
  bool by_heads;
  int64_t rows;    // of all heads that share keys, or of one head
  int64_t each;    // rows in a block
  int64_t count;   // blocks of those rows
  int64_t groups;  // heads (or groups of them) in a batch

  explicit Blocks(const AttentionShape& s)
      : by_heads(s.q_length == 1), rows(by_heads ? s.q_heads / s.kv_heads : s.q_length) {
    each = std::min(row_block, rows);
    count = (rows + row_block - 1) / row_block;
    groups = by_heads ? s.kv_heads : s.q_heads;
  }
};

int64_t tile_of(const AttentionShape& s) {
  return s.wants_scores ? s.kv_length : std::min(key_tile, s.kv_length);
}

// Memory of one task: a tile of scores, and what the products need.
template <class T>
struct TaskScratch {
  int64_t scores, products = 0, values = 0;
  explicit TaskScratch(const AttentionShape& s) {
    const Blocks blocks(s);
    const int64_t tile = tile_of(s), q_row = blocks.by_heads ? s.q.head : s.q.row;
    scores = aligned_bytes(blocks.each * tile * static_cast<int64_t>(sizeof(T)));
    for (const int64_t m : {blocks.each, blocks.rows % row_block}) {
      for (const int64_t n : {tile, tile > 0 ? s.kv_length % tile : 0}) {
        const Strided q{q_row, 1}, k{1, s.k.row}, p{tile, 1}, v{s.v.row, 1};
        products = std::max({products, aligned_bytes(product_scratch(m, n, s.head_size, q, k, T())),
                             aligned_bytes(product_scratch(m, s.v_head_size, n, p, v, T()))});
        if (!s.has_lengths) continue;
        const Strided dense{s.v_head_size, 1};
        products =
            std::max(products, aligned_bytes(product_scratch(m, s.v_head_size, n, p, dense, T())));
      }
    }
    if (s.has_lengths)
      values = aligned_bytes(tile * s.v_head_size * static_cast<int64_t>(sizeof(T)));
  }
  int64_t bytes() const { return scores + products + values; }
};

struct Keys {
  int64_t begin, end;
};

// A block of rows against all keys, tile after tile: each row keeps its largest score, the sum of
// its exponentials and, in y, the weighted values, all relative to that largest score.
template <class T>
class Block {
 public:
  // `scratch` holds the scores, what their products need, and values.
  Block(const AttentionShape& s, const AttentionData<T>& d, int64_t batch, int64_t group,
        int64_t first, int64_t rows, std::byte* scratch, const TaskScratch<T>& parts,
        ThreadPool& alone)
      : s_(s),
        d_(d),
        by_heads_(Blocks(s).by_heads),
        batch_(batch),
        rows_(rows),
        scores_(reinterpret_cast<T*>(scratch)),
        products_(scratch + parts.scores),
        values_(reinterpret_cast<T*>(products_ + parts.products)),
        alone_(alone) {
    const int64_t shared = s.q_heads / s.kv_heads;
    kv_head_ = by_heads_ ? group : group / shared;
    head_ = by_heads_ ? group * shared + first : group;
    query_ = by_heads_ ? 0 : first;
    q_row_ = by_heads_ ? s.q.head : s.q.row, y_row_ = by_heads_ ? s.y.head : s.y.row;
    q_ = d.q + batch * s.q.batch + head_ * s.q.head + query_ * s.q.row;
    y_ = d.y + batch * s.y.batch + head_ * s.y.head + query_ * s.y.row;
    length_ = d.lengths ? std::clamp<int64_t>(d.lengths[batch], 0, s.kv_length) : s.kv_length;
    offset_ = d.positions ? d.positions[batch] : d.lengths ? length_ - s.q_length : s.past;
  }

  void run() {
    std::fill_n(top_, rows_, minus_infinity<T>);
    std::fill_n(sum_, rows_, T(0));
    const Keys all{visible(0).begin, visible(rows_ - 1).end};
    const int64_t tile = tile_of(s_);
    bool fresh = true;
    for (int64_t at = 0; at < s_.kv_length; at += tile) {
      const int64_t n = std::min(tile, s_.kv_length - at);
      if (!s_.wants_scores && (at + n <= all.begin || at >= all.end)) continue;
      run_tile(at, n, fresh);
      fresh = false;
    }
    const T empty =
        s_.empty_is_nan && s_.kv_length > 0 ? std::numeric_limits<T>::quiet_NaN() : T(0);
    for (int64_t r = 0; r < rows_; ++r) {
      T* y = y_ + r * y_row_;
      add_sink(r);
      if (fresh || sum_[r] == 0) {
        std::fill_n(y, s_.v_head_size, empty);
      } else if (!shared_out_) {
        row_affine(y, T(1) / sum_[r], T(0), y, s_.v_head_size);
      }
    }
  }

 private:
  int64_t query(int64_t r) const { return by_heads_ ? 0 : query_ + r; }
  int64_t head(int64_t r) const { return by_heads_ ? head_ + r : head_; }

  // The keys that position (cache length, causal frontier, window) and the mask's width leave.
  Keys visible(int64_t r) const {
    Keys keys{0, length_};
    if (d_.allowed) keys.end = std::min(keys.end, s_.allowed.columns);
    if (d_.bias) keys.end = std::min(keys.end, s_.bias.columns);
    if (d_.more) keys.end = std::min(keys.end, s_.more.columns);
    const int64_t position = query(r) + offset_;
    if (s_.causal) keys.end = std::min(keys.end, position + 1);
    const int64_t all = s_.kv_length + s_.q_length;  // a position may lie before the first key
    if (s_.right >= 0 && s_.right < all) {
      keys.end = std::min(keys.end, position + s_.right + 1);
    }
    if (s_.left >= 0 && s_.left < all) {
      keys.begin = std::max(keys.begin, position - s_.left);
    }
    keys.end = std::max<int64_t>(keys.end, 0);
    keys.begin = std::clamp<int64_t>(keys.begin, 0, keys.end);
    return keys;
  }

  void run_tile(int64_t at, int64_t n, bool fresh) {
    const T* k = d_.k + batch_ * s_.k.batch + kv_head_ * s_.k.head + at * s_.k.row;
    const T* v = d_.v + batch_ * s_.v.batch + kv_head_ * s_.v.head + at * s_.v.row;
    const int64_t ld = tile_of(s_);
    product(rows_, n, s_.head_size, q_, {q_row_, 1}, k, {1, s_.k.row}, scores_, ld, s_.scale, false,
            products_, alone_);
    for (int64_t r = 0; r < rows_; ++r) {
      T* row = scores_ + r * ld;
      copy_out(AttentionScores::raw, r, row);
      cap(row, n);
      copy_out(AttentionScores::capped, r, row);
      add_bias(r, row, at, n);
      copy_out(AttentionScores::biased, r, row);
    }
    shared_out_ = takes_whole_rows(n);
    if (!shared_out_) {
      for (int64_t r = 0; r < rows_; ++r) weigh(r, scores_ + r * ld, n, fresh);
    }
    Strided vs{s_.v.row, 1};
    if (s_.has_lengths && at + n > length_) {
      v = values_before_end(v, length_ - at, n);
      vs.row = s_.v_head_size;
    }
    product(rows_, s_.v_head_size, n, scores_, {ld, 1}, v, vs, y_, y_row_, 1, !fresh, products_,
            alone_);
    if (!s_.wants_scores || s_.kind != AttentionScores::probabilities) return;
    for (int64_t r = 0; r < rows_; ++r) {
      T* row = scores_ + r * ld;
      const T sum = sum_[r] + sink_share(r);
      if (sum != 0) row_affine(row, T(1) / sum, T(0), row, n);
      copy_out(AttentionScores::probabilities, r, row);
    }
  }

  // `n` rows of which `count` are those of v, the others 0: a cache may hold anything there, and
  // what is no number stays none if it is multiplied by 0.
  const T* values_before_end(const T* v, int64_t count, int64_t n) const {
    const int64_t size = s_.v_head_size;
    count = std::clamp<int64_t>(count, 0, n);
    for (int64_t j = 0; j < count; ++j) std::copy_n(v + j * s_.v.row, size, values_ + j * size);
    std::fill_n(values_ + count * size, (n - count) * size, T(0));
    return values_;
  }

  // Where short rows are all there is, their softmax at once: false where they are not, or where
  // it is not only they that weigh.
  bool takes_whole_rows([[maybe_unused]] int64_t n) {
    if constexpr (std::is_same_v<T, float>) {
      return n == s_.kv_length && !s_.wants_scores && d_.sinks == nullptr &&
             softmax_short_rows(scores_, scores_, rows_, n, sum_);
    }
    return false;
  }

  // Only where scores are wanted, and then a tile is a whole row.
  void copy_out(AttentionScores kind, int64_t r, const T* row) const {
    if (!s_.wants_scores || s_.kind != kind) return;
    const int64_t at = (batch_ * s_.q_heads + head(r)) * s_.q_length + query(r);
    std::copy_n(row, s_.kv_length, d_.scores + at * s_.kv_length);
  }

  void cap(float* row, int64_t n) const {
    if (!(s_.softcap > 0)) return;
    const auto limit = static_cast<float>(s_.softcap);
    row_affine(row, 1 / limit, 0.0f, row, n);
    unary_tile(UnaryOp::tanh)(row, row, n, {});
    row_affine(row, limit, 0.0f, row, n);
  }
  void cap(double* row, int64_t n) const {
    if (!(s_.softcap > 0)) return;
    for (int64_t j = 0; j < n; ++j) row[j] = s_.softcap * std::tanh(row[j] / s_.softcap);
  }

  // The masks, and -inf for the keys that the row does not see, of those from `at` on.
  void add_bias(int64_t r, T* row, int64_t at, int64_t n) const {
    const Keys keys = visible(r);
    const int64_t begin = std::clamp<int64_t>(keys.begin - at, 0, n);
    const int64_t end = std::clamp<int64_t>(keys.end - at, begin, n);
    std::fill(row, row + begin, minus_infinity<T>);
    std::fill(row + end, row + n, minus_infinity<T>);
    if (d_.allowed) {
      const bool* allowed = d_.allowed + place(s_.allowed, r);
      const auto masked = static_cast<T>(s_.masked);
      if (s_.allowed.is_a_column) {
        if (!*allowed) std::fill(row + begin, row + end, masked);
      } else {
        row_keep(allowed + at + begin, masked, row + begin, end - begin);
      }
    }
    if (d_.bias) add(d_.bias + place(s_.bias, r), s_.bias.is_a_column, row, at, begin, end);
    if (d_.more) add(d_.more + place(s_.more, r), s_.more.is_a_column, row, at, begin, end);
  }
  static void add(const T* bias, bool is_a_column, T* row, int64_t at, int64_t begin, int64_t end) {
    if (is_a_column) {
      for (int64_t j = begin; j < end; ++j) row[j] += *bias;
    } else {
      row_add_bias(bias + at + begin, row + begin, end - begin);
    }
  }
  int64_t place(const MaskShape& mask, int64_t r) const {
    const int64_t outer = mask.inner == 1 ? batch_ : batch_ / mask.inner;
    return outer * mask.step.batch + (batch_ - outer * mask.inner) * mask.inner_step +
           head(r) * mask.step.head + query(r) * mask.step.row;
  }

  // Scores become weights; what earlier tiles left is brought to the new largest score.
  void weigh(int64_t r, T* row, int64_t n, bool fresh) {
    const T top = larger(top_[r], row_max(row, n));
    if (top == minus_infinity<T>) {
      std::fill_n(row, n, T(0));
      return;
    }
    const T sum = row_exp(row, top, row, n);
    const T shrink = std::exp(top_[r] - top);
    if (!fresh && shrink != 1) {
      T* y = y_ + r * y_row_;
      row_affine(y, shrink, T(0), y, s_.v_head_size);
    }
    sum_[r] = sum_[r] * shrink + sum;
    top_[r] = top;
  }

  T sink_share(int64_t r) const {
    return d_.sinks && sum_[r] != 0 ? std::exp(d_.sinks[head(r)] - top_[r]) : T(0);
  }
  void add_sink(int64_t r) { sum_[r] += sink_share(r); }

  const AttentionShape& s_;
  const AttentionData<T>& d_;
  bool by_heads_;
  int64_t batch_, rows_;
  int64_t kv_head_, head_, query_, q_row_, y_row_;
  const T* q_;
  T* y_;
  T* scores_;
  std::byte* products_;
  T* values_;
  ThreadPool& alone_;
  int64_t length_, offset_;
  T top_[row_block];
  T sum_[row_block];
  bool shared_out_ = false;  // the weights of each row add up to 1 already
};

}  // namespace

template <class T>
int64_t attention_scratch_bytes(const AttentionShape& shape, int threads) {
  return TaskScratch<T>(shape).bytes() * threads;
}

template <class T>
void attention(const AttentionShape& s, const AttentionData<T>& data, void* scratch,
               ThreadPool& alone, ThreadPool& pool) {
  // Of heads without elements there may be any number.
  const bool wants_any = s.v_head_size != 0 || (s.wants_scores && s.kv_length != 0);
  if (s.batch == 0 || s.q_length == 0 || !wants_any) return;
  const Blocks blocks(s);
  const TaskScratch<T> task(s);
  const int64_t tasks = s.batch * blocks.groups * blocks.count;
  pool.parallel_for(tasks, 1, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = static_cast<std::byte*>(scratch) + worker * task.bytes();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks.count * row_block, group = i / blocks.count % blocks.groups;
      const int64_t batch = i / blocks.count / blocks.groups;
      const int64_t rows = std::min(row_block, blocks.rows - first);
      Block<T>(s, data, batch, group, first, rows, own, task, alone).run();
    }
  });
}

template int64_t attention_scratch_bytes<float>(const AttentionShape&, int);
template int64_t attention_scratch_bytes<double>(const AttentionShape&, int);
template void attention<float>(const AttentionShape&, const AttentionData<float>&, void*,
                               ThreadPool&, ThreadPool&);
template void attention<double>(const AttentionShape&, const AttentionData<double>&, void*,
                                ThreadPool&, ThreadPool&);

}  // namespace sardonyx::kernels
