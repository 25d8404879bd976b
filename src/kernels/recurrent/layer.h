// One layer over whole sequences, whatever its products are made of; inside recurrent/ only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "kernels/recurrent/gate.h"
#include "kernels/recurrent/recurrent.h"

namespace sardonyx::kernels {

inline int64_t aligned_bytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// GRU without linear_before_reset multiplies its third gate apart, by the reset state.
inline bool splits_state(const RecurrentShape& s) {
  return s.kind == RecurrentKind::gru && !s.linear_before_reset;
}
inline int64_t first_columns(const RecurrentShape& s) {
  return splits_state(s) ? 2 * s.hidden : s.gate_columns();
}

// Between one sequence's rows of x.
inline int64_t row_distance(const RecurrentShape& s) { return s.batch_first ? 1 : s.batch; }

// Bias vectors reach to the end of a panel of this many columns.
inline constexpr int64_t bias_panel = 64;
inline int64_t bias_size(int64_t columns) {
  return (columns + bias_panel - 1) / bias_panel * bias_panel;
}

// c [M, N] = a [M, K] * matrix + bias + residual; the last two may be null, and c may be the
// residual.
template <class T>
struct LayerProduct {
  int64_t M = 0, N = 0, K = 0;
  const T* a = nullptr;
  int64_t lda = 0;
  T* c = nullptr;
  int64_t ldc = 0;
  const T* bias = nullptr;
  const T* residual = nullptr;
  int64_t residual_stride = 0;
  int64_t ranged = 0;  // rows of a, at least M, that count where a must be made bytes
  bool backwards = false;
};

// What products are made of. `Weights` has
//   using Value, and whole_input: whether X must be multiplied by one product;
//   static int64_t scratch(M, N, K, lda, threads, adds): bytes that multiply takes; `adds` where
//   there may be a residual;
//   void multiply(const LayerProduct<Value>&, void* scratch, ThreadPool&).
template <class Weights>
struct LayerWeights {
  Weights input, state;
  Weights last;  // the third gate of a GRU that splits its state
};

template <class Weights>
struct LayerScratch {
  using T = typename Weights::Value;
  int64_t projected, gates, h, c, reset, bias, order, products, total;

  LayerScratch(const RecurrentShape& s, int threads) {
    int64_t at = 0;
    const auto take = [&](int64_t elements) {
      const int64_t mine = at;
      at += aligned_bytes(elements * static_cast<int64_t>(sizeof(T)));
      return mine;
    };
    projected = take(s.steps * s.batch * s.gate_columns());
    gates = take(s.batch * s.gate_columns());
    h = take(s.batch * s.hidden);
    c = take(s.batch * s.hidden);
    reset = take(s.batch * s.hidden);
    bias = take(bias_size(s.gate_columns()));
    order = at;
    at += aligned_bytes(s.batch * static_cast<int64_t>(sizeof(int64_t)));
    products = at;
    const auto input = [&](int64_t rows, int64_t distance) {
      return Weights::scratch(rows, s.gate_columns(), s.input, distance * s.input, threads, false);
    };
    const auto state = [&](int64_t columns) {
      return Weights::scratch(s.batch, columns, s.hidden, s.hidden, threads, true);
    };
    total = at + std::max({input(s.steps * s.batch, 1), input(s.steps, row_distance(s)),
                           state(first_columns(s)), state(s.hidden)});
  }
};

// One direction. The rows of states and gates are the sequences in order of their lengths, longest
// first, so that those that go on are always the first ones.
template <class Weights>
class Layer {
  using T = typename Weights::Value;

 public:
  Layer(const RecurrentShape& s, const RecurrentData<T>& d, const LayerWeights<Weights>& weights,
        int direction, std::byte* scratch, ThreadPool& pool)
      : s_(s),
        d_(d),
        weights_(weights),
        direction_(direction),
        reverse_(direction == 1 || s.reverse),
        pool_(pool) {
    const LayerScratch<Weights> parts(s, pool.threads());
    const auto at = [&](int64_t offset) { return reinterpret_cast<T*>(scratch + offset); };
    projected_ = at(parts.projected), gates_ = at(parts.gates), h_ = at(parts.h), c_ = at(parts.c),
    reset_ = at(parts.reset);
    bias_ = at(parts.bias), products_ = scratch + parts.products;
    order_ = reinterpret_cast<int64_t*>(scratch + parts.order);
  }

  void run() {
    join_bias();
    sort();
    start(d_.h0, h_);
    if (s_.kind == RecurrentKind::lstm) start(d_.c0, c_);
    const int64_t longest = s_.batch > 0 ? length(order_[0]) : 0,
                  shortest = s_.batch > 0 ? length(order_[s_.batch - 1]) : 0;
    project(longest);
    if (d_.y && shortest < s_.steps) clear_y();
    going_ = s_.batch;
    for (int64_t step = 0; step < longest; ++step) {
      const int64_t before = going_;  // sequences that went on until this step
      while (step >= length(order_[going_ - 1])) --going_;
      advance(step, before, shortest == longest);
    }
    finish(h_, d_.y_h);
    if (s_.kind == RecurrentKind::lstm) finish(c_, d_.y_c);
  }

 private:
  int64_t length(int64_t b) const {
    return d_.lengths ? std::clamp<int64_t>(d_.lengths[b], 0, s_.steps) : s_.steps;
  }
  void sort() {
    std::iota(order_, order_ + s_.batch, int64_t{0});
    if (d_.lengths == nullptr) return;
    std::sort(order_, order_ + s_.batch, [&](int64_t a, int64_t b) {
      return length(a) != length(b) ? length(a) > length(b) : a < b;
    });
  }
  int64_t time(int64_t step, int64_t b) const { return reverse_ ? length(b) - 1 - step : step; }
  // Row of x (and of the projected gates) of one time and batch.
  int64_t row(int64_t time, int64_t b) const {
    return s_.batch_first ? b * s_.steps + time : time * s_.batch + b;
  }
  int64_t state_at(int64_t b) const {
    return (s_.batch_first ? b * s_.directions + direction_ : direction_ * s_.batch + b) *
           s_.hidden;
  }
  int64_t y_at(int64_t time, int64_t b) const {
    return (s_.batch_first ? (b * s_.steps + time) * s_.directions + direction_
                           : (time * s_.directions + direction_) * s_.batch + b) *
           s_.hidden;
  }
  const Gate& gate(int i) const { return s_.gates[direction_][i]; }

  // Both halves of the bias meet in the sums, but for the one that linear_before_reset scales.
  void join_bias() {
    if (!d_.bias) return;
    const int64_t n = s_.gate_columns();
    const T* both = d_.bias + direction_ * 2 * n;
    const int64_t joined =
        s_.kind == RecurrentKind::gru && s_.linear_before_reset ? 2 * s_.hidden : n;
    for (int64_t i = 0; i < n; ++i) bias_[i] = both[i] + (i < joined ? both[n + i] : T(0));
    std::fill(bias_ + n, bias_ + bias_size(n), T(0));
  }

  void start(const T* from, T* state) const {
    for (int64_t i = 0; i < s_.batch; ++i) {
      T* to = state + i * s_.hidden;
      if (from)
        std::copy_n(from + state_at(order_[i]), s_.hidden, to);
      else
        std::fill_n(to, s_.hidden, T(0));
    }
  }
  void finish(const T* state, T* to) const {
    for (int64_t i = 0; to && i < s_.batch; ++i)
      std::copy_n(state + i * s_.hidden, s_.hidden, to + state_at(order_[i]));
  }
  // The inputs' part of all gates; sequence by sequence where that leaves enough rows away and the
  // weights are worth reading again.
  void project(int64_t longest) {
    if constexpr (Weights::whole_input) return project_rows(0, longest * s_.batch, 1);
    constexpr int64_t min_steps = 32;
    int64_t used = 0;
    for (int64_t b = 0; b < s_.batch; ++b) used += length(b);
    const int64_t all = s_.steps * s_.batch;
    if ((all - used) * 16 < all || used < min_steps * s_.batch) return project_rows(0, all, 1);
    for (int64_t b = 0; b < s_.batch; ++b) project_rows(row(0, b), length(b), row_distance(s_));
  }
  void project_rows(int64_t first, int64_t count, int64_t distance) {
    const int64_t n = s_.gate_columns();
    LayerProduct<T> product{count, n, s_.input};
    product.a = d_.x + first * s_.input, product.lda = distance * s_.input;
    product.c = projected_ + first * n, product.ldc = distance * n;
    product.bias = d_.bias ? bias_ : nullptr;
    product.ranged = count;
    weights_.input.multiply(product, products_, pool_);
  }
  void clear_y() const {
    for (int64_t b = 0; b < s_.batch; ++b) {
      for (int64_t t = length(b); t < s_.steps; ++t)
        std::fill_n(d_.y + y_at(t, b), s_.hidden, T(0));
    }
  }

  void advance(int64_t step, int64_t ranged, bool uniform) {
    const int64_t n = s_.gate_columns(), first = first_columns(s_);
    const bool apart =
        s_.kind == RecurrentKind::gru && s_.linear_before_reset;  // x and h parts stay apart
    // Where all rows are at the same time, the projected gates are read where they are.
    const T* projected = projected_ + (s_.batch > 0 && uniform ? row(time(step, 0), 0) * n : 0);
    const int64_t distance = s_.batch_first ? s_.steps * n : n;
    LayerProduct<T> product{going_, first, s_.hidden};
    product.a = h_, product.lda = s_.hidden, product.ranged = ranged;
    product.c = gates_, product.ldc = n;
    product.residual = apart ? nullptr : projected, product.residual_stride = distance;
    product.backwards = step % 2 == 1;
    if (!uniform && !apart) {
      for (int64_t i = 0; i < going_; ++i) {
        const int64_t b = order_[i];
        std::copy_n(projected_ + row(time(step, b), b) * n, first, gates_ + i * n);
      }
      product.residual = gates_, product.residual_stride = n;
    }
    weights_.state.multiply(product, products_, pool_);
    if (s_.kind == RecurrentKind::gru) return advance_gru(step, apart);
    for_rows([&](int64_t i) {
      if (s_.kind == RecurrentKind::lstm)
        lstm_row(i);
      else
        rnn_row(i);
      store(step, i);
    });
  }

  template <class Body>
  void for_rows(Body&& body) const {
    const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, s_.gate_columns()));
    pool_.parallel_for(going_, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  }

  void store(int64_t step, int64_t row) const {
    const int64_t b = order_[row];
    if (d_.y) std::copy_n(h_ + row * s_.hidden, s_.hidden, d_.y + y_at(time(step, b), b));
  }

  void rnn_row(int64_t row) const {
    T* g = gates_ + row * s_.hidden;
    apply_gate(gate(0), g, s_.hidden, s_.clip);
    std::copy_n(g, s_.hidden, h_ + row * s_.hidden);
  }

  void lstm_row(int64_t row) const {
    const int64_t n = s_.hidden;
    T* i = gates_ + row * 4 * n;
    T *o = i + n, *f = i + 2 * n, *g = i + 3 * n, *c = c_ + row * n, *h = h_ + row * n;
    const T* p = d_.peephole ? d_.peephole + direction_ * 3 * n : nullptr;
    for (int64_t j = 0; p && j < n; ++j) i[j] += p[j] * c[j], f[j] += p[2 * n + j] * c[j];
    apply_gate(gate(0), i, n, s_.clip);
    if (s_.input_forget) {
      for (int64_t j = 0; j < n; ++j) f[j] = 1 - i[j];
    } else {
      apply_gate(gate(0), f, n, s_.clip);
    }
    apply_gate(gate(1), g, n, s_.clip);
    for (int64_t j = 0; j < n; ++j) c[j] = f[j] * c[j] + i[j] * g[j];
    for (int64_t j = 0; p && j < n; ++j) o[j] += p[n + j] * c[j];
    apply_gate(gate(0), o, n, s_.clip);
    std::copy_n(c, n, h);
    apply_gate(gate(2), h, n, s_.clips_cell ? s_.clip : 0);
    for (int64_t j = 0; j < n; ++j) h[j] *= o[j];
  }

  void advance_gru(int64_t step, bool apart) {
    const int64_t n = s_.hidden;
    const T* recurrent_bias = d_.bias ? d_.bias + direction_ * 6 * n + 5 * n : nullptr;
    for_rows([&](int64_t i) {
      const int64_t b = order_[i];
      T* z = gates_ + i * 3 * n;
      const T* x = projected_ + row(time(step, b), b) * 3 * n;
      for (int64_t j = 0; apart && j < 2 * n; ++j) z[j] += x[j];
      apply_gate(gate(0), z, 2 * n, s_.clip);
      const T* r = z + n;
      T* candidate = z + 2 * n;
      if (apart) {
        for (int64_t j = 0; j < n; ++j)
          candidate[j] =
              x[2 * n + j] + r[j] * (candidate[j] + (recurrent_bias ? recurrent_bias[j] : T(0)));
      } else {
        std::copy_n(x + 2 * n, n, candidate);
        for (int64_t j = 0; j < n; ++j) reset_[i * n + j] = r[j] * h_[i * n + j];
      }
    });
    if (!apart) {
      T* candidate = gates_ + 2 * n;
      LayerProduct<T> product{going_, n, n};
      product.a = reset_, product.lda = n, product.ranged = going_;
      product.c = candidate, product.ldc = 3 * n;
      product.residual = candidate, product.residual_stride = 3 * n;
      product.backwards = step % 2 == 1;
      weights_.last.multiply(product, products_, pool_);
    }
    for_rows([&](int64_t i) {
      const T* z = gates_ + i * 3 * n;
      T *candidate = gates_ + i * 3 * n + 2 * n, *h = h_ + i * n;
      apply_gate(gate(1), candidate, n, s_.clip);
      for (int64_t j = 0; j < n; ++j) h[j] = (1 - z[j]) * candidate[j] + z[j] * h[j];
      store(step, i);
    });
  }

  const RecurrentShape& s_;
  const RecurrentData<T>& d_;
  const LayerWeights<Weights>& weights_;
  int direction_;
  bool reverse_;
  ThreadPool& pool_;
  T *projected_, *gates_, *h_, *c_, *reset_, *bias_;
  std::byte* products_;
  int64_t* order_;
  int64_t going_ = 0;  // sequences that are not at their end
};

}  // namespace sardonyx::kernels
