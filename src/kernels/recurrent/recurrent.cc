#include "kernels/recurrent/recurrent.h"

#include <algorithm>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "kernels/recurrent/layer.h"

namespace sardonyx::kernels {
namespace {

// The product with a matrix that is stored as rows of its columns: [N, K].
template <class T>
struct Weights;

template <>
struct Weights<float> {
  using Value = float;
  static constexpr bool whole_input = false;
  const std::byte* w = nullptr;

  static int64_t bytes(int64_t K, int64_t N) { return aligned_bytes(packed_b_size(K, N)); }
  static void pack(const float* w, int64_t K, int64_t N, void* to, ThreadPool* pool) {
    if (K > 0 && N > 0) pack_b(w, 1, K, K, N, to, pool);
  }
  static int64_t scratch(int64_t M, int64_t N, int64_t K, int64_t lda, int threads, bool) {
    return aligned_bytes(gemm_packed_b_scratch_bytes(M, N, K, lda, threads));
  }
  // c = a * w^T + bias + residual (each optional).
  void multiply(const LayerProduct<float>& p, void* scratch, ThreadPool& pool) const {
    Epilogue epilogue;
    epilogue.bias = p.bias;
    epilogue.bias_axis = p.bias ? BiasAxis::column : BiasAxis::none;
    epilogue.residual = p.residual, epilogue.residual_stride = p.residual_stride;
    // Threads take longer to meet, step after step, than small products do.
    constexpr int64_t min_terms = int64_t{96} << 10;
    ThreadPool& threads =
        p.M * p.N < min_terms / std::max<int64_t>(1, p.K) ? ThreadPool::single() : pool;
    gemm_packed_b(p.M, p.N, p.K, p.a, p.lda, {w}, p.c, p.ldc, epilogue, scratch, threads,
                  p.backwards);
  }
};

template <>
struct Weights<double> {
  using Value = double;
  static constexpr bool whole_input = false;
  const std::byte* w = nullptr;

  static int64_t bytes(int64_t K, int64_t N) { return aligned_bytes(K * N * 8); }
  static void pack(const double* w, int64_t K, int64_t N, void* to, ThreadPool*) {
    std::copy(w, w + K * N, static_cast<double*>(to));
  }
  static int64_t scratch(int64_t M, int64_t N, int64_t, int64_t, int, bool) {
    return aligned_bytes(M * N * 8);
  }
  void multiply(const LayerProduct<double>& p, void* scratch, ThreadPool& pool) const {
    double* sums = static_cast<double*>(scratch);
    matmul_any(ElementType::float64, {}, p.M, p.N, p.K, {p.a, p.lda, 1}, {w, 1, p.K}, sums, p.N,
               pool);
    for (int64_t i = 0; i < p.M; ++i) {
      for (int64_t j = 0; j < p.N; ++j) {
        p.c[i * p.ldc + j] = sums[i * p.N + j] + (p.bias ? p.bias[j] : 0) +
                             (p.residual ? p.residual[i * p.residual_stride + j] : 0);
      }
    }
  }
};

}  // namespace

template <class T>
int64_t recurrent_input_pack_bytes(const RecurrentShape& s) {
  return s.directions * Weights<T>::bytes(s.input, s.gate_columns());
}

template <class T>
int64_t recurrent_state_pack_bytes(const RecurrentShape& s) {
  const int64_t last = splits_state(s) ? Weights<T>::bytes(s.hidden, s.hidden) : 0;
  return s.directions * (Weights<T>::bytes(s.hidden, first_columns(s)) + last);
}

template <class T>
void pack_recurrent_input(const RecurrentShape& s, const T* w, void* packed, ThreadPool* pool) {
  for (int d = 0; d < s.directions; ++d) {
    void* to = static_cast<std::byte*>(packed) + d * Weights<T>::bytes(s.input, s.gate_columns());
    Weights<T>::pack(w + d * s.gate_columns() * s.input, s.input, s.gate_columns(), to, pool);
  }
}

template <class T>
void pack_recurrent_state(const RecurrentShape& s, const T* r, void* packed, ThreadPool* pool) {
  auto* to = static_cast<std::byte*>(packed);
  for (int d = 0; d < s.directions; ++d) {
    const T* own = r + d * s.gate_columns() * s.hidden;
    Weights<T>::pack(own, s.hidden, first_columns(s), to, pool);
    to += Weights<T>::bytes(s.hidden, first_columns(s));
    if (!splits_state(s)) continue;
    Weights<T>::pack(own + 2 * s.hidden * s.hidden, s.hidden, s.hidden, to, pool);
    to += Weights<T>::bytes(s.hidden, s.hidden);
  }
}

template <class T>
int64_t recurrent_scratch_bytes(const RecurrentShape& s, int threads) {
  return LayerScratch<Weights<T>>(s, threads).total;
}

template <class T>
void run_recurrent(const RecurrentShape& s, const RecurrentData<T>& data, void* scratch,
                   ThreadPool& pool) {
  const auto* w = static_cast<const std::byte*>(data.w);
  const auto* r = static_cast<const std::byte*>(data.r);
  const int64_t first = Weights<T>::bytes(s.hidden, first_columns(s)),
                second = splits_state(s) ? Weights<T>::bytes(s.hidden, s.hidden) : 0;
  for (int d = 0; d < s.directions; ++d) {
    const LayerWeights<Weights<T>> weights{{w}, {r}, {r + first}};
    Layer<Weights<T>>(s, data, weights, d, static_cast<std::byte*>(scratch), pool).run();
    w += Weights<T>::bytes(s.input, s.gate_columns()), r += first + second;
  }
}

#define INSTANTIATE(T)                                                                        \
  template int64_t recurrent_input_pack_bytes<T>(const RecurrentShape&);                      \
  template int64_t recurrent_state_pack_bytes<T>(const RecurrentShape&);                      \
  template void pack_recurrent_input<T>(const RecurrentShape&, const T*, void*, ThreadPool*); \
  template void pack_recurrent_state<T>(const RecurrentShape&, const T*, void*, ThreadPool*); \
  template int64_t recurrent_scratch_bytes<T>(const RecurrentShape&, int);                    \
  template void run_recurrent<T>(const RecurrentShape&, const RecurrentData<T>&, void*,       \
                                 ThreadPool&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace sardonyx::kernels
