// Scores of linear models: sums of features that each target weighs.
#pragma once

#include <cstdint>
#include <vector>

namespace sardonyx::kernels {

struct LinearTargets {
  int64_t features = 0, targets = 0;
  std::vector<double> weights;  // [features, padded()], or [targets, features] where by_rows()
  std::vector<double> start;    // [padded()]

  int64_t padded() const { return (targets + 7) / 8 * 8; }
  // Whether a dot product for each target beats vectors of targets, most of whose lanes are empty.
  bool by_rows() const { return targets * (features / 4 + 8) < features + features / 3; }
  // `coefficients` is [targets, features]; `intercepts` has `targets` elements, or one for all, or
  // none.
  void arrange(const std::vector<float>& coefficients, const std::vector<float>& intercepts);
};

// scores[r * targets + t]: the intercept of target t and the products of row r of x
// [rows, features] with the target's weights, summed as doubles. A row has the same scores whatever
// rows it is computed with.
void linear_scores(const LinearTargets& linear, const float* x, int64_t rows, float* scores);
void linear_scores(const LinearTargets& linear, const double* x, int64_t rows, float* scores);

}  // namespace sardonyx::kernels
