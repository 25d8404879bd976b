#include "kernels/rows/support_vectors.h"

#include <cmath>

#include "kernels/elementwise/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/support_vectors.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums of products with x, or of squared distances, for `vectors` vectors' lanes from column j on.
template <bool distance, int vectors, class D>
HWY_INLINE void Sums(D d, const SupportVectors& v, const float* x, int64_t j, float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[vectors];
  for (int k = 0; k < vectors; ++k) sums[k] = hn::Zero(d);
  const float* column = v.columns.data() + j;
  for (int64_t f = 0; f < v.features; ++f, column += v.padded()) {
    const auto one = hn::Set(d, x[f]);
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) {
      const auto other = hn::LoadU(d, column + k * lanes);
      if constexpr (distance) {
        const auto apart = hn::Sub(one, other);
        sums[k] = hn::MulAdd(apart, apart, sums[k]);
      } else {
        sums[k] = hn::MulAdd(one, other, sums[k]);
      }
    }
  }
  for (int k = 0; k < vectors; ++k) hn::StoreU(sums[k], d, out + j + k * lanes);
}

template <bool distance>
void AllSums(const SupportVectors& v, const float* x, float* out) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + 4 * lanes <= v.padded(); j += 4 * lanes) Sums<distance, 4>(d, v, x, j, out);
  for (; j < v.padded(); j += lanes) Sums<distance, 1>(d, v, x, j, out);
}

void SupportSums(const SupportVectors& v, const float* x, float* out) {
  if (v.kernel == SupportVectors::Kernel::rbf) return AllSums<true>(v, x, out);
  AllSums<false>(v, x, out);
}

double WeightedSum(const float* a, const float* b, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto even = hn::Zero(d), odd = hn::Zero(d);
  const auto add = [&](int64_t i, auto sum) HWY_ATTR {
    return hn::MulAdd(hn::PromoteTo(d, hn::LoadU(narrow, a + i)),
                      hn::PromoteTo(d, hn::LoadU(narrow, b + i)), sum);
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) even = add(i, even), odd = add(i + lanes, odd);
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(SupportSums);
HWY_EXPORT(WeightedSum);

void SupportVectors::arrange(const float* vectors) {
  columns.assign(static_cast<size_t>(features * padded()), 0.0f);
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t f = 0; f < features; ++f)
      columns[static_cast<size_t>(f * padded() + j)] = vectors[j * features + f];
  }
}

void support_kernels(const SupportVectors& v, const float* x, float* out) {
  HWY_DYNAMIC_DISPATCH(SupportSums)(v, x, out);
  const int64_t n = v.padded();
  switch (v.kernel) {
    case SupportVectors::Kernel::linear: return;
    case SupportVectors::Kernel::rbf:
      for (int64_t j = 0; j < n; ++j) out[j] *= -v.gamma;
      return unary_tile(UnaryOp::exp)(out, out, n, {});
    case SupportVectors::Kernel::sigmoid:
      for (int64_t j = 0; j < n; ++j) out[j] = out[j] * v.gamma + v.coef0;
      return unary_tile(UnaryOp::tanh)(out, out, n, {});
    case SupportVectors::Kernel::poly:
      for (int64_t j = 0; j < n; ++j) out[j] = std::pow(out[j] * v.gamma + v.coef0, v.degree);
      return;
  }
}

double weighted_sum(const float* a, const float* b, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(WeightedSum)(a, b, n);
}

}  // namespace sardonyx::kernels
#endif
