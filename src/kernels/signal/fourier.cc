#include "kernels/signal/fourier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/fail.h"

namespace sardonyx::kernels {
namespace {

using Complex = std::complex<double>;

// std::complex multiplication looks after infinities; signals do without.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

bool is_power(int64_t n) { return (n & (n - 1)) == 0; }

// Lengths that are no power of two become a convolution (Bluestein) of this power of two.
int64_t inner_length(int64_t n) {
  return is_power(n) ? n : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
}

// exp(sign * 2 pi i k / n)
Complex root_of_unity(int64_t k, int64_t n, double sign) {
  const double angle =
      sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// In place, forward, length m a power of two; roots[k] = exp(-2 pi i k / m) for k < m / 2.
void transform_power(Complex* x, int64_t m, const Complex* roots) {
  for (int64_t i = 1, j = 0; i < m; ++i) {
    int64_t bit = m >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j |= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (int64_t half = 1; half < m; half *= 2) {
    const int64_t step = m / (2 * half);
    for (int64_t begin = 0; begin < m; begin += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        const Complex a = x[begin + k], b = times(x[begin + k + half], roots[k * step]);
        x[begin + k] = a + b;
        x[begin + k + half] = a - b;
      }
    }
  }
}

// The tables of one length, in memory that the caller has: shared by all threads.
class Tables {
 public:
  static int64_t elements(int64_t n) {
    return inner_length(n) / 2 + 1 + (is_power(n) ? 0 : n + inner_length(n));
  }

  Tables(int64_t n, Complex* memory) : n_(n), m_(inner_length(n)), roots_(memory) {
    for (int64_t k = 0; k < m_ / 2; ++k) roots_[k] = root_of_unity(k, m_, -1);
    if (is_power(n)) return;
    chirp_ = roots_ + m_ / 2 + 1;
    filter_ = chirp_ + n;
    // exp(-pi i k^2 / n); k^2 modulo 2n keeps the angle exact.
    int64_t square = 0;
    for (int64_t k = 0; k < n; ++k) {
      chirp_[k] = root_of_unity(square, 2 * n, -1);
      square = (square + 2 * k + 1) % (2 * n);
    }
    std::fill_n(filter_, m_, Complex());
    filter_[0] = std::conj(chirp_[0]);
    for (int64_t k = 1; k < n; ++k) filter_[k] = filter_[m_ - k] = std::conj(chirp_[k]);
    transform_power(filter_, m_, roots_);
  }

  // Forward, in place: x has n elements in memory for inner_length(n).
  void forward(Complex* x) const {
    if (is_power(n_)) return transform_power(x, m_, roots_);
    for (int64_t k = 0; k < n_; ++k) x[k] = times(x[k], chirp_[k]);
    std::fill(x + n_, x + m_, Complex());
    transform_power(x, m_, roots_);
    for (int64_t k = 0; k < m_; ++k) x[k] = std::conj(times(x[k], filter_[k]));
    transform_power(x, m_, roots_);
    const double scale = 1.0 / static_cast<double>(m_);
    for (int64_t k = 0; k < n_; ++k) x[k] = times(std::conj(x[k]) * scale, chirp_[k]);
  }

 private:
  int64_t n_, m_;
  Complex* roots_;
  Complex* chirp_ = nullptr;
  Complex* filter_ = nullptr;
};

template <class T>
Complex load(const T* x, int64_t at, int parts) {
  return parts == 1 ? Complex(static_cast<double>(x[at]), 0)
                    : Complex(static_cast<double>(x[2 * at]), static_cast<double>(x[2 * at + 1]));
}

template <class T>
void store(T* y, int64_t at, int parts, Complex value) {
  y[at * parts] = static_cast<T>(value.real());
  if (parts == 2) y[at * parts + 1] = static_cast<T>(value.imag());
}

// The frequencies that a real signal's first half implies.
void complete_spectrum(Complex* x, int64_t n) {
  x[0] = x[0].real();
  if (n % 2 == 0) x[n / 2] = x[n / 2].real();
  for (int64_t k = n / 2 + 1; k < n; ++k) x[k] = std::conj(x[n - k]);
}

}  // namespace

int64_t fourier_scratch_bytes(int64_t length, int threads) {
  if (length < 1 || length > int64_t{1} << 40)
    fail(ErrorCode::run_failed, "the length of a Fourier transform must be in [1, 2^40]; got {}",
         length);
  return (Tables::elements(length) + inner_length(length) * threads) *
         static_cast<int64_t>(sizeof(Complex));
}

template <class T>
void fourier(const FourierShape& s, const T* x, T* y, void* scratch, ThreadPool& pool) {
  const Tables tables(s.length, static_cast<Complex*>(scratch));
  Complex* work = static_cast<Complex*>(scratch) + Tables::elements(s.length);
  const int64_t m = inner_length(s.length), grain = std::max<int64_t>(1, 8192 / m);
  const int64_t used = std::min(s.in_length, s.hermitian ? s.length / 2 + 1 : s.length);
  pool.parallel_for(s.outer * s.inner, grain, [&](int64_t begin, int64_t end, int worker) {
    Complex* own = work + worker * m;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / s.inner, in = i % s.inner;
      std::fill_n(own, s.length, Complex());
      for (int64_t k = 0; k < used; ++k)
        own[k] = load(x, (o * s.in_length + k) * s.inner + in, s.in_parts);
      if (s.hermitian) complete_spectrum(own, s.length);
      if (s.inverse)
        std::transform(own, own + s.length, own, [](Complex v) { return std::conj(v); });
      tables.forward(own);
      const double scale = s.inverse ? 1.0 / static_cast<double>(s.length) : 1.0;
      for (int64_t k = 0; k < s.out_length; ++k) {
        const Complex value = s.inverse ? std::conj(own[k]) : own[k];
        store(y, (o * s.out_length + k) * s.inner + in, s.out_parts, value * scale);
      }
    }
  });
}

template <class T>
void short_time_fourier(const FrameShape& s, const T* x, const T* window, T* y, void* scratch,
                        ThreadPool& pool) {
  const Tables tables(s.length, static_cast<Complex*>(scratch));
  Complex* work = static_cast<Complex*>(scratch) + Tables::elements(s.length);
  const int64_t m = inner_length(s.length), grain = std::max<int64_t>(1, 8192 / m);
  pool.parallel_for(s.batch * s.frames, grain, [&](int64_t begin, int64_t end, int worker) {
    Complex* own = work + worker * m;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / s.frames * s.signal + i % s.frames * s.step;
      for (int64_t k = 0; k < s.length; ++k)
        own[k] = load(x, first + k, s.parts) * (window ? static_cast<double>(window[k]) : 1.0);
      tables.forward(own);
      for (int64_t k = 0; k < s.out_length; ++k) store(y, i * s.out_length + k, 2, own[k]);
    }
  });
}

template void fourier<float>(const FourierShape&, const float*, float*, void*, ThreadPool&);
template void fourier<double>(const FourierShape&, const double*, double*, void*, ThreadPool&);
template void short_time_fourier<float>(const FrameShape&, const float*, const float*, float*,
                                        void*, ThreadPool&);
template void short_time_fourier<double>(const FrameShape&, const double*, const double*, double*,
                                         void*, ThreadPool&);

}  // namespace sardonyx::kernels
