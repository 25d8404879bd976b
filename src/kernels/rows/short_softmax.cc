#include "kernels/rows/short_softmax.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/short_softmax.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/rows/fold-inl.h"
#include "kernels/simd/masked-inl.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = sardonyx::HWY_NAMESPACE;

// Rows that `vectors` vectors hold, the last one of them perhaps in part.
template <int vectors>
HWY_INLINE void ShortSoftmax(const float* x, float* y, int64_t rows, int64_t n, float* sums) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto some = hn::FirstN(d, static_cast<size_t>(n - (vectors - 1) * lanes));
  const auto nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    hn::Vec<decltype(d)> v[vectors];
    for (int i = 0; i + 1 < vectors; ++i) v[i] = hn::LoadU(d, x + i * lanes);
    v[vectors - 1] =
        hn::IfThenElse(some, masked::Load(some, d, x + (vectors - 1) * lanes), nothing);
    // Where a NaN is lost here, the sum has it.
    const auto larger = [](auto, auto a, auto b) HWY_ATTR { return hn::Max(a, b); };
    auto top = v[0];
    for (int i = 1; i < vectors; ++i) top = hn::Max(top, v[i]);
    const float largest = Fold(d, top, larger);
    if (sums != nullptr && largest == -std::numeric_limits<float>::infinity()) {
      // NaN among -inf may have been lost.
      bool any = false;
      for (int i = 0; i < vectors; ++i) any = any || !hn::AllFalse(d, hn::IsNaN(v[i]));
      if (!any) {
        std::fill_n(y, n, 0.0f);
        sums[r] = 0;
        continue;
      }
    }
    const auto center = hn::Set(d, largest);
    for (int i = 0; i < vectors; ++i) v[i] = sm::ExpNotPositive(d, hn::Sub(v[i], center));
    auto sum = v[0];
    for (int i = 1; i < vectors; ++i) sum = hn::Add(sum, v[i]);
    const float total = Fold(d, sum, add_of);
    if (sums != nullptr) sums[r] = total;
    const auto factor = hn::Set(d, 1 / total);
    for (int i = 0; i + 1 < vectors; ++i) hn::StoreU(hn::Mul(v[i], factor), d, y + i * lanes);
    masked::Store(hn::Mul(v[vectors - 1], factor), some, d, y + (vectors - 1) * lanes);
  }
}

// The same for the logarithms. Those of sums are taken together, a sum in each lane.
template <int vectors>
HWY_INLINE void ShortLogSoftmax(const float* x, float* y, int64_t rows, int64_t n) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto some = hn::FirstN(d, static_cast<size_t>(n - (vectors - 1) * lanes));
  const auto larger = [](auto, auto a, auto b) HWY_ATTR { return hn::Max(a, b); };
  alignas(64) float tops[hn::MaxLanes(d)] = {}, sums[hn::MaxLanes(d)] = {};
  for (int64_t first = 0; first < rows; first += lanes) {
    const int64_t count = std::min(lanes, rows - first);
    for (int64_t r = 0; r < count; ++r) {
      const float* row = x + (first + r) * n;
      V v[vectors];
      for (int i = 0; i + 1 < vectors; ++i) v[i] = hn::LoadU(d, row + i * lanes);
      v[vectors - 1] = hn::IfThenElse(some, masked::Load(some, d, row + (vectors - 1) * lanes),
                                      hn::Set(d, -std::numeric_limits<float>::infinity()));
      V top = v[0];
      for (int i = 1; i < vectors; ++i) top = hn::Max(top, v[i]);
      tops[r] = Fold(d, top, larger);  // where a NaN is lost here, the sum has it
      const V center = hn::Set(d, tops[r]);
      V sum = sm::ExpNotPositive(d, hn::Sub(v[0], center));
      for (int i = 1; i < vectors; ++i)
        sum = hn::Add(sum, sm::ExpNotPositive(d, hn::Sub(v[i], center)));
      sums[r] = Fold(d, sum, add_of);
    }
    hn::Store(sm::Log(d, hn::Load(d, sums)), d, sums);
    for (int64_t r = 0; r < count; ++r) {
      const float* row = x + (first + r) * n;
      float* to = y + (first + r) * n;
      const V center = hn::Set(d, tops[r]), rest = hn::Set(d, sums[r]);
      // x - top first: exact where the two are close, whatever their size.
      const auto shifted = [&](V e) HWY_ATTR { return hn::Sub(hn::Sub(e, center), rest); };
      for (int i = 0; i + 1 < vectors; ++i)
        hn::StoreU(shifted(hn::LoadU(d, row + i * lanes)), d, to + i * lanes);
      const V end = masked::Load(some, d, row + (vectors - 1) * lanes);
      masked::Store(shifted(end), some, d, to + (vectors - 1) * lanes);
    }
  }
}

// Rows of n elements, side by side: a vector holds an element of each.
template <int n>
void NarrowSoftmax(const float* x, float* y, int64_t rows) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  alignas(64) float transposed[n * 16] = {};
  for (int64_t r = 0; r < rows; r += lanes, x += lanes * n, y += lanes * n) {
    const int64_t some = std::min(lanes, rows - r);
    for (int64_t k = 0; k < some; ++k) {
      for (int j = 0; j < n; ++j) transposed[j * lanes + k] = x[k * n + j];
    }
    hn::Vec<decltype(d)> v[n];
    for (int j = 0; j < n; ++j) v[j] = hn::Load(d, transposed + j * lanes);
    auto top = v[0];
    for (int j = 1; j < n; ++j) top = hn::Max(top, v[j]);
    for (int j = 0; j < n; ++j) v[j] = sm::ExpNotPositive(d, hn::Sub(v[j], top));
    auto sum = v[0];
    for (int j = 1; j < n; ++j) sum = hn::Add(sum, v[j]);
    const auto factor = hn::Div(hn::Set(d, 1.0f), sum);
    for (int j = 0; j < n; ++j) hn::Store(hn::Mul(v[j], factor), d, transposed + j * lanes);
    for (int64_t k = 0; k < some; ++k) {
      for (int j = 0; j < n; ++j) y[k * n + j] = transposed[j * lanes + k];
    }
  }
}

bool SoftmaxNarrowRows(const float* x, float* y, int64_t rows, int64_t n) {
  switch (n) {
    case 2: return NarrowSoftmax<2>(x, y, rows), true;
    case 3: return NarrowSoftmax<3>(x, y, rows), true;
    case 4: return NarrowSoftmax<4>(x, y, rows), true;
    case 5: return NarrowSoftmax<5>(x, y, rows), true;
    case 6: return NarrowSoftmax<6>(x, y, rows), true;
    case 7: return NarrowSoftmax<7>(x, y, rows), true;
    case 8: return NarrowSoftmax<8>(x, y, rows), true;
    default: return false;
  }
}

// Calls rows(vectors), an integral_constant of how many vectors a row of n takes; false where
// registers have no room for so many.
template <class Rows>
HWY_INLINE bool ShortRows(int64_t n, const Rows& rows) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  switch ((n + lanes - 1) / lanes) {
    case 1: return rows(std::integral_constant<int, 1>()), true;
    case 2: return rows(std::integral_constant<int, 2>()), true;
    case 3: return rows(std::integral_constant<int, 3>()), true;
    case 4: return rows(std::integral_constant<int, 4>()), true;
    case 5: return rows(std::integral_constant<int, 5>()), true;
    case 6: return rows(std::integral_constant<int, 6>()), true;
    case 7: return rows(std::integral_constant<int, 7>()), true;
    case 8: return rows(std::integral_constant<int, 8>()), true;
    default: return false;
  }
}
bool SoftmaxShortRows(const float* x, float* y, int64_t rows, int64_t n, float* sums) {
  return ShortRows(n, [&](auto vectors) HWY_ATTR {
    ShortSoftmax<decltype(vectors)::value>(x, y, rows, n, sums);
  });
}
bool LogSoftmaxShortRows(const float* x, float* y, int64_t rows, int64_t n) {
  return ShortRows(
      n, [&](auto vectors) HWY_ATTR { ShortLogSoftmax<decltype(vectors)::value>(x, y, rows, n); });
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(SoftmaxNarrowRows);
HWY_EXPORT(SoftmaxShortRows);
HWY_EXPORT(LogSoftmaxShortRows);

bool softmax_narrow_rows(const float* x, float* y, int64_t rows, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxNarrowRows)(x, y, rows, n);
}
bool softmax_short_rows(const float* x, float* y, int64_t rows, int64_t n, float* sums) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxShortRows)(x, y, rows, n, sums);
}
bool log_softmax_short_rows(const float* x, float* y, int64_t rows, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LogSoftmaxShortRows)(x, y, rows, n);
}

}  // namespace sardonyx::kernels
#endif
