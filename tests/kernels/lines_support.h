// What the tests of softmax, normalisations, reductions and scans share: lines of boxes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/convert/cast.h"
#include "rows_support.h"

namespace sardonyx::kernels::test {

using Shape = std::vector<int64_t>;
using Doubles = std::vector<double>;

inline constexpr ElementType f32 = ElementType::float32;

inline size_t index(int64_t i) { return static_cast<size_t>(i); }

// Runs on one and on two threads, which must agree to the bit.
template <class Run>
std::vector<float> both_pools(int64_t n, Run&& run) {
  std::vector<float> y(index(n)), z(index(n));
  run(y.data(), one_thread());
  run(z.data(), two_threads());
  expect_same_bits(y, z);
  return y;
}

// The same operator on a 16-bit type or double, its result as float.
template <class Run>
std::vector<float> through(ElementType type, const std::vector<float>& x, int64_t out, Run&& run) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<uint8_t> source(index(byte_size(type, n))), target(index(byte_size(type, out)));
  std::vector<float> y(index(out));
  cast_row(f32, type, x.data(), source.data(), n);
  run(source.data(), target.data());
  cast_row(type, f32, target.data(), y.data(), out);
  return y;
}

inline double tolerance_of(ElementType type) {
  return type == ElementType::float64 ? 1e-6 : type == ElementType::float16 ? 4e-3 : 3e-2;
}

inline constexpr ElementType other_floats[] = {ElementType::float64, ElementType::float16,
                                               ElementType::bfloat16};

struct Box {
  int64_t outer, n, inner;
  int64_t count() const { return outer * n * inner; }
};
inline const Box boxes[] = {{3, 1, 1},    {5, 7, 1},    {2, 1000, 1}, {1, 33333, 1}, {4, 9, 5},
                            {2, 6, 300},  {700, 64, 1}, {0, 4, 3},    {2, 3, 0},     {40, 12, 77},
                            {9001, 3, 1}, {530, 2, 1},  {41, 8, 1},   {300, 16, 1}};

// f(values of one line, its results) for every line along the middle.
inline void each_line(const Box& b, const std::vector<float>& x, Doubles& y,
                      const std::function<void(const Doubles&, Doubles&)>& f) {
  y.assign(x.size(), 0);
  for (int64_t o = 0; o < b.outer; ++o) {
    for (int64_t i = 0; i < b.inner; ++i) {
      Doubles line(index(b.n)), result(index(b.n));
      for (int64_t j = 0; j < b.n; ++j) line[index(j)] = x[index((o * b.n + j) * b.inner + i)];
      f(line, result);
      for (int64_t j = 0; j < b.n; ++j) y[index((o * b.n + j) * b.inner + i)] = result[index(j)];
    }
  }
}

}  // namespace sardonyx::kernels::test
