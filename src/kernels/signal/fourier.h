// Discrete Fourier transforms of any length, computed in double.
#pragma once

#include <complex>
#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// Many transforms of one length: signals are the middle of [outer, length, inner], each element
// one real number or two (real, imaginary).
struct FourierShape {
  int64_t outer = 1, inner = 1;
  int64_t in_length =
      0;  // elements that are there; beyond `length` they are left out, missing ones are 0
  int64_t length = 0;      // of the transform, at least 1
  int64_t out_length = 0;  // results that are wanted
  int in_parts = 1;        // 1 real, 2 complex
  int out_parts = 2;
  bool inverse = false;    // divided by length
  bool hermitian = false;  // the input holds frequencies 0 to length / 2 of a real signal
};

// Bytes of scratch for transforms of this length on so many threads. Throws Error (run_failed) for
// a length beyond 2^40.
int64_t fourier_scratch_bytes(int64_t length, int threads);

// T is float or double. y is [outer, out_length, inner, out_parts].
template <class T>
void fourier(const FourierShape& shape, const T* x, T* y, void* scratch, ThreadPool& pool);

// x [batch, signal, parts] cut into `frames` frames of `length`, `step` apart, each times `window`
// (null: 1), transformed: y [batch, frames, out_length, 2].
struct FrameShape {
  int64_t batch = 0, signal = 0, frames = 0, length = 0, step = 1, out_length = 0;
  int parts = 1;
};
template <class T>
void short_time_fourier(const FrameShape& shape, const T* x, const T* window, T* y, void* scratch,
                        ThreadPool& pool);

}  // namespace sardonyx::kernels
