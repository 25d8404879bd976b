#include "kernels/gemm/narrow.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/narrow.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int rows, int n>
HWY_INLINE void Dots(const float* a, int64_t a_stride, const float* columns, int64_t k,
                     float* sums) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[rows][n];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < n; ++j) sum[r][j] = hn::Zero(d);
  }
  const auto step = [&](auto&& load, int64_t i) HWY_ATTR {
    hn::Vec<decltype(d)> column[n];
#pragma GCC unroll 4
    for (int j = 0; j < n; ++j) column[j] = load(columns + j * k + i);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const auto row = load(a + r * a_stride + i);
#pragma GCC unroll 4
      for (int j = 0; j < n; ++j) sum[r][j] = hn::MulAdd(row, column[j], sum[r][j]);
    }
  };
  int64_t i = 0;
  for (; i + lanes <= k; i += lanes)
    step([&](const float* x) HWY_ATTR { return hn::LoadU(d, x); }, i);
  if (i < k) {
    const auto some = hn::FirstN(d, static_cast<size_t>(k - i));
    step([&](const float* x) HWY_ATTR { return hn::MaskedLoad(some, d, x); }, i);
  }
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < n; ++j) sums[r * n + j] = hn::GetLane(hn::SumOfLanes(d, sum[r][j]));
  }
}

template <int n>
void Rows(const float* a, int64_t a_stride, int64_t rows, const float* columns, int64_t k,
          float* sums) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) Dots<4, n>(a + r * a_stride, a_stride, columns, k, sums + r * n);
  for (; r < rows; ++r) Dots<1, n>(a + r * a_stride, a_stride, columns, k, sums + r * n);
}

void NarrowProduct(const float* a, int64_t a_stride, int64_t rows, const float* columns, int64_t n,
                   int64_t k, float* sums) {
  switch (n) {
    case 1: return Rows<1>(a, a_stride, rows, columns, k, sums);
    case 2: return Rows<2>(a, a_stride, rows, columns, k, sums);
    case 3: return Rows<3>(a, a_stride, rows, columns, k, sums);
    default: return Rows<4>(a, a_stride, rows, columns, k, sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(NarrowProduct);

bool narrow_pays(int64_t M, int64_t N, int64_t K, int64_t lanes) {
  constexpr int64_t fewest_rows = 64;  // worth turning the columns
  constexpr int64_t last_sum = 8;      // adding up a vector's lanes costs as many products
  return M >= fewest_rows && N <= most_narrow && 10 * N * (K / lanes + last_sum) < 7 * K;
}

void narrow_product(const float* a, int64_t a_stride, int64_t rows, const float* columns, int64_t n,
                    int64_t k, float* sums) {
  HWY_DYNAMIC_DISPATCH(NarrowProduct)(a, a_stride, rows, columns, n, k, sums);
}

}  // namespace sardonyx::kernels
#endif
