#include "kernels/recurrent/lstm_recurrence.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrent/lstm_recurrence.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "kernels/simd/masked-inl.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The sums of one row's gates become gates; c and h are the states before and after.
void ForwardRow(float* gates, float* c, float* h, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto at = [&](auto i, auto o, auto f, auto g, auto before, const auto& store) HWY_ATTR {
    i = sardonyx::HWY_NAMESPACE::Sigmoid(d, i);
    o = sardonyx::HWY_NAMESPACE::Sigmoid(d, o);
    f = sardonyx::HWY_NAMESPACE::Sigmoid(d, f);
    g = sardonyx::HWY_NAMESPACE::Tanh(d, g);
    const auto next = hn::MulAdd(f, before, hn::Mul(i, g));
    store(i, o, f, g, next, hn::Mul(o, sardonyx::HWY_NAMESPACE::Tanh(d, next)));
  };
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    at(hn::LoadU(d, gates + j), hn::LoadU(d, gates + n + j), hn::LoadU(d, gates + 2 * n + j),
       hn::LoadU(d, gates + 3 * n + j), hn::LoadU(d, c + j),
       [&](auto i, auto o, auto f, auto g, auto next, auto state) HWY_ATTR {
         hn::StoreU(i, d, gates + j), hn::StoreU(o, d, gates + n + j);
         hn::StoreU(f, d, gates + 2 * n + j), hn::StoreU(g, d, gates + 3 * n + j);
         hn::StoreU(next, d, c + j), hn::StoreU(state, d, h + j);
       });
  }
  if (j >= n) return;
  const auto some = hn::FirstN(d, static_cast<size_t>(n - j));
  const auto load = [&](const float* from) HWY_ATTR { return masked::Load(some, d, from + j); };
  at(load(gates), load(gates + n), load(gates + 2 * n), load(gates + 3 * n), load(c),
     [&](auto i, auto o, auto f, auto g, auto next, auto state) HWY_ATTR {
       masked::Store(i, some, d, gates + j), masked::Store(o, some, d, gates + n + j);
       masked::Store(f, some, d, gates + 2 * n + j);
       masked::Store(g, some, d, gates + 3 * n + j);
       masked::Store(next, some, d, c + j), masked::Store(state, some, d, h + j);
     });
}

// `gates`, `cell` and `before` (the cell one step earlier) are a row's of one step. dc is what
// flows into the cell from the later step, and then into the earlier one. `sums` may be `gates`.
void BackwardRow(const float* gates, const float* cell, const float* before, const float* dh,
                 const float* dy, const float* of_gates, const float* of_cells, float* dc,
                 float* sums, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0f);
  const auto part = [&](const auto& load, const auto& store) HWY_ATTR {
    const auto i = load(gates), o = load(gates + n), f = load(gates + 2 * n),
               g = load(gates + 3 * n);
    const auto along = sardonyx::HWY_NAMESPACE::Tanh(d, load(cell));
    auto h = load(dh);
    if (dy) h = hn::Add(h, load(dy));
    auto c = hn::MulAdd(hn::Mul(h, o), hn::NegMulAdd(along, along, one), load(dc));
    if (of_cells) c = hn::Add(c, load(of_cells));
    auto di = hn::Mul(c, g), output = hn::Mul(h, along), df = hn::Mul(c, load(before)),
         dg = hn::Mul(c, i);
    if (of_gates) {
      di = hn::Add(di, load(of_gates)), output = hn::Add(output, load(of_gates + n));
      df = hn::Add(df, load(of_gates + 2 * n)), dg = hn::Add(dg, load(of_gates + 3 * n));
    }
    const auto slope = [&](auto x) HWY_ATTR { return hn::NegMulAdd(x, x, x); };  // x (1 - x)
    store(hn::Mul(di, slope(i)), sums), store(hn::Mul(output, slope(o)), sums + n);
    store(hn::Mul(df, slope(f)), sums + 2 * n);
    store(hn::Mul(dg, hn::NegMulAdd(g, g, one)), sums + 3 * n);
    store(hn::Mul(c, f), dc);
  };
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    part([&](const float* from) HWY_ATTR { return hn::LoadU(d, from + j); },
         [&](auto v, float* to) HWY_ATTR { hn::StoreU(v, d, to + j); });
  }
  if (j >= n) return;
  const auto some = hn::FirstN(d, static_cast<size_t>(n - j));
  part([&](const float* from) HWY_ATTR { return masked::Load(some, d, from + j); },
       [&](auto v, float* to) HWY_ATTR { masked::Store(v, some, d, to + j); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

HWY_EXPORT(ForwardRow);
HWY_EXPORT(BackwardRow);

void forward_row(float* gates, float* c, float* h, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ForwardRow)(gates, c, h, n);
}
void forward_row(double* gates, double* c, double* h, int64_t n) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  double *i = gates, *o = gates + n, *f = gates + 2 * n, *g = gates + 3 * n;
  for (int64_t j = 0; j < n; ++j) {
    i[j] = sigmoid(i[j]), o[j] = sigmoid(o[j]), f[j] = sigmoid(f[j]), g[j] = std::tanh(g[j]);
    c[j] = f[j] * c[j] + i[j] * g[j];
    h[j] = o[j] * std::tanh(c[j]);
  }
}

void backward_row(const float* gates, const float* cell, const float* before, const float* dh,
                  const float* dy, const float* of_gates, const float* of_cells, float* dc,
                  float* sums, int64_t n) {
  HWY_DYNAMIC_DISPATCH(BackwardRow)
  (gates, cell, before, dh, dy, of_gates, of_cells, dc, sums, n);
}
void backward_row(const double* gates, const double* cell, const double* before, const double* dh,
                  const double* dy, const double* of_gates, const double* of_cells, double* dc,
                  double* sums, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    const double i = gates[j], o = gates[n + j], f = gates[2 * n + j], g = gates[3 * n + j],
                 along = std::tanh(cell[j]), h = dh[j] + (dy ? dy[j] : 0);
    const double c = dc[j] + h * o * (1 - along * along) + (of_cells ? of_cells[j] : 0);
    const auto add = [&](double flow, int64_t gate) {
      return flow + (of_gates ? of_gates[gate * n + j] : 0);
    };
    sums[j] = add(c * g, 0) * i * (1 - i);
    sums[n + j] = add(h * along, 1) * o * (1 - o);
    sums[2 * n + j] = add(c * before[j], 2) * f * (1 - f);
    sums[3 * n + j] = add(c * i, 3) * (1 - g * g);
    dc[j] = c * f;
  }
}

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Products with a matrix of K x N elements at these strides.
template <class T>
struct Matrix {
  const T* data = nullptr;
  int64_t row_stride = 0, column_stride = 0;
  int64_t K = 0, N = 0;

  int64_t packed_bytes() const {
    return std::is_same_v<T, float> ? aligned(packed_b_size(K, N)) : 0;
  }
  void pack(void* to, ThreadPool& pool) const {
    if constexpr (std::is_same_v<T, float>)
      if (K > 0 && N > 0) pack_b(data, row_stride, column_stride, K, N, to, &pool);
  }
  int64_t scratch_bytes(int64_t M, int threads) const {
    if constexpr (std::is_same_v<T, float>)
      return aligned(gemm_packed_b_scratch_bytes(M, N, K, K, threads));
    else
      return aligned(M * N * static_cast<int64_t>(sizeof(T)));
  }
  // c = a * matrix + residual, all dense in their rows; `residual` may be null, or c.
  void multiply(int64_t M, const T* a, const T* residual, T* c, const void* packed, void* scratch,
                ThreadPool& pool, bool backwards) const {
    if constexpr (std::is_same_v<T, float>) {
      Epilogue epilogue;
      epilogue.residual = residual, epilogue.residual_stride = N;
      gemm_packed_b(M, N, K, a, K, {packed}, c, N, epilogue, scratch, pool, backwards);
    } else {
      T* sums = static_cast<T*>(scratch);
      matmul_any(ElementType::float64, {}, M, N, K, {a, K, 1}, {data, row_stride, column_stride},
                 sums, N, pool);
      for (int64_t i = 0; i < M * N; ++i) c[i] = sums[i] + (residual ? residual[i] : 0);
    }
  }
};

// Sequences do not know of each other: each part of the batch goes through all steps by itself.
// Parts are large enough for products to be fast.
struct Parts {
  static constexpr int64_t wanted_rows = 32;
  int64_t count, rows;
  explicit Parts(int64_t batch)
      : count(std::max<int64_t>(1, batch / wanted_rows)), rows((batch + count - 1) / count) {}
  // body(first row, rows, part, the pool for what is inside)
  template <class Body>
  void run(int64_t batch, ThreadPool& pool, const Body& body) const {
    if (count == 1) return body(int64_t{0}, batch, int64_t{0}, pool);
    pool.parallel_for(count, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = std::min(batch, i * rows);
        body(first, std::min(rows, batch - first), i, ThreadPool::single());
      }
    });
  }
};

template <class T>
Matrix<T> state_matrix(const LstmRecurrenceShape& s, const T* r) {
  return {r, 1, s.hidden, s.hidden, 4 * s.hidden};
}
template <class T>
Matrix<T> gradient_matrix(const LstmRecurrenceShape& s, const T* r) {
  return {r, s.hidden, 1, 4 * s.hidden, s.hidden};
}

// Two states of a part, then what its products take.
template <class T>
struct Scratch {
  int64_t state, part, packed;
  Scratch(const LstmRecurrenceShape& s, const Matrix<T>& matrix, int threads) {
    const Parts parts(s.batch);
    state = aligned(parts.rows * s.hidden * static_cast<int64_t>(sizeof(T)));
    part = 2 * state + matrix.scratch_bytes(parts.rows, parts.count == 1 ? threads : 1);
    packed = parts.count * part;
  }
  int64_t total(const Matrix<T>& matrix) const { return packed + matrix.packed_bytes(); }
};

template <class T>
bool lives(const T& job, int64_t step, int64_t row) {
  return job.lengths == nullptr || step < job.lengths[row];
}

}  // namespace

template <class T>
int64_t lstm_recurrence_scratch_bytes(const LstmRecurrenceShape& s, int threads) {
  const auto matrix = state_matrix<T>(s, nullptr);
  return Scratch<T>(s, matrix, threads).total(matrix);
}

template <class T>
int64_t lstm_recurrence_gradient_scratch_bytes(const LstmRecurrenceShape& s, int threads) {
  const auto matrix = gradient_matrix<T>(s, nullptr);
  return Scratch<T>(s, matrix, threads).total(matrix);
}

template <class T>
void lstm_recurrence(const LstmRecurrenceShape& s, const LstmRecurrence<T>& job, void* scratch,
                     ThreadPool& pool) {
  const int64_t n = s.hidden;
  const auto matrix = state_matrix(s, job.r);
  const Scratch<T> layout(s, matrix, pool.threads());
  auto* const memory = static_cast<std::byte*>(scratch);
  void* const packed = memory + layout.packed;
  matrix.pack(packed, pool);
  const Parts parts(s.batch);
  parts.run(s.batch, pool, [&](int64_t first, int64_t rows, int64_t part, ThreadPool& inner) {
    std::byte* const own = memory + part * layout.part;
    T *const h = reinterpret_cast<T*>(own), *const c = reinterpret_cast<T*>(own + layout.state);
    std::copy_n(job.h + first * n, rows * n, h);
    std::copy_n(job.c + first * n, rows * n, c);
    for (int64_t i = 0; i < s.steps; ++i) {
      const int64_t step = s.reverse ? s.steps - 1 - i : i, at = step * s.batch + first;
      T* const gates = job.gates + at * 4 * n;
      matrix.multiply(rows, h, job.sums + at * 4 * n, gates, packed, own + 2 * layout.state, inner,
                      i % 2 == 1);
      for (int64_t row = 0; row < rows; ++row) {
        T* const own_gates = gates + row * 4 * n;
        const bool lives_on = lives(job, step, first + row);
        if (lives_on)
          forward_row(own_gates, c + row * n, h + row * n, n);
        else
          std::fill_n(own_gates, 4 * n, T(0));
        std::copy_n(c + row * n, n, job.cells + (at + row) * n);
        if (!job.y) continue;
        if (lives_on)
          std::copy_n(h + row * n, n, job.y + (at + row) * n);
        else
          std::fill_n(job.y + (at + row) * n, n, T(0));
      }
    }
    if (job.y_h) std::copy_n(h, rows * n, job.y_h + first * n);
    if (job.y_c) std::copy_n(c, rows * n, job.y_c + first * n);
  });
}

template <class T>
void lstm_recurrence_gradient(const LstmRecurrenceShape& s, const LstmRecurrenceGradient<T>& job,
                              void* scratch, ThreadPool& pool) {
  const int64_t n = s.hidden;
  const auto matrix = gradient_matrix(s, job.r);
  const Scratch<T> layout(s, matrix, pool.threads());
  auto* const memory = static_cast<std::byte*>(scratch);
  void* const packed = memory + layout.packed;
  matrix.pack(packed, pool);
  const Parts parts(s.batch);
  parts.run(s.batch, pool, [&](int64_t first, int64_t rows, int64_t part, ThreadPool& inner) {
    std::byte* const own = memory + part * layout.part;
    T *const dh = reinterpret_cast<T*>(own), *const dc = reinterpret_cast<T*>(own + layout.state);
    const auto start = [&](const T* from, T* to) {
      if (from)
        std::copy_n(from + first * n, rows * n, to);
      else
        std::fill_n(to, rows * n, T(0));
    };
    start(job.y_h, dh), start(job.y_c, dc);
    for (int64_t i = s.steps - 1; i >= 0; --i) {
      const int64_t step = s.reverse ? s.steps - 1 - i : i, at = step * s.batch + first;
      const int64_t before = (s.reverse ? step + 1 : step - 1) * s.batch + first;
      for (int64_t row = 0; row < rows; ++row) {
        T* const sums = job.sums + (at + row) * 4 * n;
        const T* const cell = job.cells + (at + row) * n;
        const T* const of_cells = job.of_cells ? job.of_cells + (at + row) * n : nullptr;
        if (!lives(job, step, first + row)) {
          std::fill_n(sums, 4 * n, T(0));
          for (int64_t j = 0; of_cells && j < n; ++j) dc[row * n + j] += of_cells[j];
          continue;
        }
        backward_row(job.gates + (at + row) * 4 * n, cell,
                     (i > 0 ? job.cells + before * n : job.c + first * n) + row * n, dh + row * n,
                     job.y ? job.y + (at + row) * n : nullptr,
                     job.of_gates ? job.of_gates + (at + row) * 4 * n : nullptr, of_cells,
                     dc + row * n, sums, n);
        if (job.lengths) std::fill_n(dh + row * n, n, T(0));
      }
      if (i == 0 && !job.h) break;
      // Those that have ended pass on what they have.
      matrix.multiply(rows, job.sums + at * 4 * n, job.lengths ? dh : nullptr, dh, packed,
                      own + 2 * layout.state, inner, i % 2 == 1);
    }
    if (job.h) std::copy_n(dh, rows * n, job.h + first * n);
    if (job.c_initial) std::copy_n(dc, rows * n, job.c_initial + first * n);
  });
}

#define INSTANTIATE(T)                                                                          \
  template int64_t lstm_recurrence_scratch_bytes<T>(const LstmRecurrenceShape&, int);           \
  template int64_t lstm_recurrence_gradient_scratch_bytes<T>(const LstmRecurrenceShape&, int);  \
  template void lstm_recurrence<T>(const LstmRecurrenceShape&, const LstmRecurrence<T>&, void*, \
                                   ThreadPool&);                                                \
  template void lstm_recurrence_gradient<T>(const LstmRecurrenceShape&,                         \
                                            const LstmRecurrenceGradient<T>&, void*, ThreadPool&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace sardonyx::kernels
#endif
