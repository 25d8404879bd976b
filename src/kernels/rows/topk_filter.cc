#include "kernels/rows/topk_filter.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/topk_filter.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `is_better` takes vectors. Most elements of a long row are not: four vectors are distinguished
// only where one of them holds something.
template <class T, class Test>
HWY_INLINE int64_t PlacesOf(const T* x, int64_t n, int32_t* places, const Test& is_better) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t found = 0, i = 0;
  const auto list = [&](auto mask, int64_t at) HWY_ATTR {
    uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, mask, bytes);
    uint64_t bits;
    std::memcpy(&bits, bytes, sizeof bits);
    for (; bits != 0; bits &= bits - 1)
      places[found++] = static_cast<int32_t>(at + __builtin_ctzll(bits));
  };
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = is_better(hn::LoadU(d, x + i));
    const auto b = is_better(hn::LoadU(d, x + i + lanes));
    const auto c = is_better(hn::LoadU(d, x + i + 2 * lanes));
    const auto e = is_better(hn::LoadU(d, x + i + 3 * lanes));
    if (HWY_LIKELY(hn::AllFalse(d, hn::Or(hn::Or(a, b), hn::Or(c, e))))) continue;
    list(a, i);
    list(b, i + lanes);
    list(c, i + 2 * lanes);
    list(e, i + 3 * lanes);
  }
  for (; i < n; i += lanes) {
    const auto some = hn::FirstN(d, static_cast<size_t>(HWY_MIN(lanes, n - i)));
    list(hn::And(some, is_better(masked::Load(some, d, x + i))), i);
  }
  return found;
}

template <class T>
int64_t FilterTopK(const T* x, int64_t n, T worst, bool largest, int32_t* places) {
  const hn::ScalableTag<T> d;
  const auto limit = hn::Set(d, worst);
  if constexpr (hwy::IsFloat<T>()) {
    if (worst != worst) {
      if (largest) return 0;
      return PlacesOf(x, n, places, [=](auto v) HWY_ATTR { return hn::Eq(v, v); });
    }
    if (largest)
      return PlacesOf(x, n, places, [=](auto v) HWY_ATTR { return hn::Not(hn::Le(v, limit)); });
  } else if (largest) {
    return PlacesOf(x, n, places, [=](auto v) HWY_ATTR { return hn::Gt(v, limit); });
  }
  return PlacesOf(x, n, places, [=](auto v) HWY_ATTR { return hn::Lt(v, limit); });
}

int64_t FilterTopKFloats(const float* x, int64_t n, float worst, bool largest, int32_t* places) {
  return FilterTopK(x, n, worst, largest, places);
}
int64_t FilterTopKDoubles(const double* x, int64_t n, double worst, bool largest, int32_t* places) {
  return FilterTopK(x, n, worst, largest, places);
}
int64_t FilterTopKIntegers(const int64_t* x, int64_t n, int64_t worst, bool largest,
                           int32_t* places) {
  return FilterTopK(x, n, worst, largest, places);
}
int64_t FilterTopKNaturals(const uint64_t* x, int64_t n, uint64_t worst, bool largest,
                           int32_t* places) {
  return FilterTopK(x, n, worst, largest, places);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(FilterTopKFloats);
HWY_EXPORT(FilterTopKDoubles);
HWY_EXPORT(FilterTopKIntegers);
HWY_EXPORT(FilterTopKNaturals);

int64_t filter_topk(const float* x, int64_t n, float worst, bool largest, int32_t* places) {
  return HWY_DYNAMIC_DISPATCH(FilterTopKFloats)(x, n, worst, largest, places);
}
int64_t filter_topk(const double* x, int64_t n, double worst, bool largest, int32_t* places) {
  return HWY_DYNAMIC_DISPATCH(FilterTopKDoubles)(x, n, worst, largest, places);
}
int64_t filter_topk(const int64_t* x, int64_t n, int64_t worst, bool largest, int32_t* places) {
  return HWY_DYNAMIC_DISPATCH(FilterTopKIntegers)(x, n, worst, largest, places);
}
int64_t filter_topk(const uint64_t* x, int64_t n, uint64_t worst, bool largest, int32_t* places) {
  return HWY_DYNAMIC_DISPATCH(FilterTopKNaturals)(x, n, worst, largest, places);
}

}  // namespace sardonyx::kernels
#endif
