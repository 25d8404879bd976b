#include "kernels/recurrent/quantized_lstm.h"

#include "kernels/convert/quantize.h"
#include "kernels/gemm/gemm_int8.h"
#include "kernels/recurrent/layer.h"

namespace sardonyx::kernels {
namespace {

int64_t padded(int64_t columns) {
  return (columns + byte_panel_columns - 1) / byte_panel_columns * byte_panel_columns;
}
int64_t direction_bytes(int64_t K, int64_t N) {
  return aligned_bytes(byte_panels_size(N, K)) + aligned_bytes(padded(N) * 4);
}

// What a column's sum needs, whatever the rows are: its value is
// (sum + row_zero * base - row_sum * zero) * row_scale * scale.
struct Columns {
  int32_t *base, *zero;
  float* scale;
  bool has_zeros = false;
};
int64_t columns_bytes(int64_t N) { return 3 * aligned_bytes(padded(N) * 4); }

// Products that stay below this many multiply-adds end before other threads have begun.
constexpr int64_t min_terms = int64_t{768} << 10;

// One direction's matrix [K, N].
struct QuantizedWeights {
  using Value = float;
  static constexpr bool whole_input = true;
  const int8_t* panels = nullptr;
  Columns columns{};

  struct Parts {
    int64_t rows, row_sums, term, scale, products, total;
    Parts(int64_t M, int64_t N, int64_t K, bool adds) {
      rows = 0;
      row_sums = aligned_bytes(M * 4 * vnni_groups(K));
      term = row_sums + aligned_bytes(M * 4);
      scale = term + aligned_bytes(padded(N) * 4);
      products = scale + aligned_bytes(padded(N) * 4);
      total = products + (adds ? aligned_bytes(M * N * 4) : 0);
    }
  };
  static int64_t scratch(int64_t M, int64_t N, int64_t K, int64_t, int, bool adds) {
    return Parts(M, N, K, adds).total;
  }

  // Rows of a and of c lie one behind the other, as they do in all calls of an LSTM.
  void multiply(const LayerProduct<float>& p, void* scratch, ThreadPool& pool) const {
    const int64_t M = p.M, N = p.N, K = p.K;
    if (M == 0 || N == 0) return;
    const Parts parts(M, N, K, p.residual != nullptr);
    auto* at = static_cast<std::byte*>(scratch);
    auto* rows = reinterpret_cast<uint8_t*>(at + parts.rows);
    auto* row_sums = reinterpret_cast<int32_t*>(at + parts.row_sums);
    auto* term = reinterpret_cast<int32_t*>(at + parts.term);
    auto* scale = reinterpret_cast<float*>(at + parts.scale);
    auto* products = p.residual ? reinterpret_cast<float*>(at + parts.products) : p.c;
    ThreadPool& threads = M * N < min_terms / std::max<int64_t>(1, K) ? ThreadPool::single() : pool;
    const ByteScale how = dynamic_scale(p.a, p.ranged * K, threads);
    quantize_rows(how, M, K, p.a, rows, columns.has_zeros ? row_sums : nullptr, threads);
    for (int64_t j = 0; j < padded(N); ++j) {
      term[j] = static_cast<int32_t>(static_cast<uint32_t>(how.zero) *
                                     static_cast<uint32_t>(columns.base[j]));
      scale[j] = how.scale * columns.scale[j];
    }
    ByteFinish finish;
    finish.term = term, finish.scale = scale, finish.bias = p.bias, finish.each = true;
    finish.factor = columns.has_zeros ? columns.zero : nullptr;
    byte_product(rows, row_sums, M, N, K, panels, finish, products, threads);
    for (int64_t i = 0; p.residual && i < M; ++i) {
      const float *x = p.residual + i * p.residual_stride, *h = products + i * N;
      for (int64_t j = 0; j < N; ++j) p.c[i * p.ldc + j] = x[j] + h[j];
    }
  }

 private:
  static void quantize_rows(const ByteScale& how, int64_t M, int64_t K, const float* a,
                            uint8_t* rows, int32_t* row_sums, ThreadPool& pool) {
    const int64_t width = 4 * vnni_groups(K);
    pool.parallel_for(M, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width)),
                      [&](int64_t begin, int64_t end, int) {
                        for (int64_t i = begin; i < end; ++i) {
                          uint8_t* to = rows + i * width;
                          floats_to_bytes(how, a + i * K, to, K);
                          std::fill(to + K, to + width, uint8_t{0});
                          if (row_sums) row_sums[i] = std::accumulate(to, to + K, int32_t{0});
                        }
                      });
  }
};

int32_t zero_at(const ByteWeights& w, int64_t i) {
  return w.type == ElementType::int8 ? static_cast<const int8_t*>(w.zero)[i]
                                     : static_cast<const uint8_t*>(w.zero)[i];
}

QuantizedWeights weights_of(const ByteWeights& w, int64_t direction, int64_t K, int64_t N,
                            std::byte* memory) {
  const int64_t each = aligned_bytes(padded(N) * 4);
  const auto* packed = static_cast<const std::byte*>(w.packed) + direction * direction_bytes(K, N);
  const auto* sums =
      reinterpret_cast<const int32_t*>(packed + aligned_bytes(byte_panels_size(N, K)));
  Columns columns{reinterpret_cast<int32_t*>(memory), reinterpret_cast<int32_t*>(memory + each),
                  reinterpret_cast<float*>(memory + 2 * each)};
  const int32_t offset = sign_offset(w.type, true);
  for (int64_t j = 0; j < padded(N); ++j) {
    const int64_t column = std::min(j, N - 1);
    const int32_t zero = zero_at(w, w.zeros_each ? direction * N + column : direction) + offset;
    columns.zero[j] = zero;
    columns.has_zeros |= zero != 0;
    columns.scale[j] = w.scale[w.scales_each ? direction * N + column : direction];
    // As unsigned numbers: sums that do not fit wrap round, and are right again at the end.
    columns.base[j] = static_cast<int32_t>(static_cast<uint32_t>(K) * static_cast<uint32_t>(zero) -
                                           static_cast<uint32_t>(sums[column]));
  }
  return {reinterpret_cast<const int8_t*>(packed), columns};
}

}  // namespace

int64_t byte_weights_bytes(int64_t directions, int64_t K, int64_t N) {
  return directions * direction_bytes(K, N);
}

void pack_byte_weights(ElementType type, const void* w, int64_t directions, int64_t K, int64_t N,
                       void* packed, ThreadPool& pool) {
  const auto* from = static_cast<const std::byte*>(w);
  auto* to = static_cast<std::byte*>(packed);
  for (int64_t d = 0; d < directions; ++d, from += K * N, to += direction_bytes(K, N)) {
    auto* sums = reinterpret_cast<int32_t*>(to + aligned_bytes(byte_panels_size(N, K)));
    pack_byte_panels(type, from, N, 1, K, N, reinterpret_cast<int8_t*>(to), sums, pool);
  }
}

int64_t quantized_lstm_scratch_bytes(const RecurrentShape& s, int threads) {
  return LayerScratch<QuantizedWeights>(s, threads).total + 2 * columns_bytes(s.gate_columns());
}

void run_quantized_lstm(const RecurrentShape& s, const RecurrentData<float>& data,
                        const ByteWeights& w, const ByteWeights& r, void* scratch,
                        ThreadPool& pool) {
  const int64_t N = s.gate_columns();
  auto* memory = static_cast<std::byte*>(scratch);
  for (int d = 0; N > 0 && d < s.directions; ++d) {
    const LayerWeights<QuantizedWeights> weights{
        weights_of(w, d, s.input, N, memory),
        weights_of(r, d, s.hidden, N, memory + columns_bytes(N)),
        {}};
    Layer<QuantizedWeights>(s, data, weights, d, memory + 2 * columns_bytes(N), pool).run();
  }
}

}  // namespace sardonyx::kernels
