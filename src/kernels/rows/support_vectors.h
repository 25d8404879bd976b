// Kernel functions of support vector machines, of one sample with all vectors.
#pragma once

#include <cstdint>
#include <vector>

namespace sardonyx::kernels {

struct SupportVectors {
  enum class Kernel { linear, poly, rbf, sigmoid };
  Kernel kernel = Kernel::linear;
  float gamma = 0, coef0 = 0, degree = 0;
  int64_t count = 0, features = 0;
  std::vector<float> columns;  // [features, padded()]

  int64_t padded() const { return (count + 15) / 16 * 16; }
  // `vectors` is [count, features].
  void arrange(const float* vectors);
};

// out [v.padded()]: the kernel of x [v.features] with each vector; beyond the last, anything.
void support_kernels(const SupportVectors& v, const float* x, float* out);

// The sum of a[i] * b[i], in double precision.
double weighted_sum(const float* a, const float* b, int64_t n);

}  // namespace sardonyx::kernels
