#include "kernels/conv/causal.h"

#include <algorithm>
#include <cmath>

namespace sardonyx::kernels {
namespace {

constexpr int64_t tile = 256;
constexpr int64_t grain = 1 << 14;  // products

template <class T>
T silu(T v) {
  return v / (T{1} + std::exp(-v));
}

// One channel. The first taps - 1 outputs reach back into `past`.
template <class T>
void conv_row(const CausalConvParams& s, const T* x, const T* w, T bias, const T* past, T* y) {
  const int64_t before = s.taps - 1;
  for (int64_t begin = 0; begin < s.length; begin += tile) {
    const int64_t n = std::min(tile, s.length - begin);
    T sums[tile];
    std::fill_n(sums, n, bias);
    for (int64_t k = 0; k < s.taps; ++k) {
      const int64_t shift = begin + k - before;  // of the input that output `begin` takes for tap k
      const int64_t old = std::clamp<int64_t>(-shift, 0, n);
      if (past != nullptr) {
        for (int64_t i = 0; i < old; ++i) sums[i] += w[k] * past[before + shift + i];
      }
      for (int64_t i = old; i < n; ++i) sums[i] += w[k] * x[shift + i];
    }
    if (s.silu) std::transform(sums, sums + n, sums, silu<T>);
    std::copy_n(sums, n, y + begin);
  }
}

// The last taps - 1 of past and x together. `present` may be `past`: what is kept of it moves
// towards the front.
template <class T>
void keep_row(const CausalConvParams& s, const T* x, const T* past, T* present) {
  const int64_t before = s.taps - 1, kept = std::max<int64_t>(before - s.length, 0);
  for (int64_t i = 0; i < kept; ++i) present[i] = past != nullptr ? past[s.length + i] : T{0};
  std::copy_n(x + s.length - (before - kept), before - kept, present + kept);
}

}  // namespace

template <class T>
void causal_conv(const CausalConvParams& s, const T* x, const T* weights, const T* bias,
                 const T* past, T* y, T* present, ThreadPool& pool) {
  const int64_t before = s.taps - 1;
  const int64_t rows = std::max<int64_t>(1, grain / std::max<int64_t>(1, s.length * s.taps));
  pool.parallel_for(s.batch * s.channels, rows, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t c = row % s.channels;
      const T* old = past != nullptr ? past + row * before : nullptr;
      if (y != nullptr) {
        conv_row(s, x + row * s.length, weights + c * s.taps, bias != nullptr ? bias[c] : T{0}, old,
                 y + row * s.length);
      }
      if (present != nullptr) keep_row(s, x + row * s.length, old, present + row * before);
    }
  });
}

template void causal_conv(const CausalConvParams&, const float*, const float*, const float*,
                          const float*, float*, float*, ThreadPool&);
template void causal_conv(const CausalConvParams&, const double*, const double*, const double*,
                          const double*, double*, double*, ThreadPool&);

}  // namespace sardonyx::kernels
