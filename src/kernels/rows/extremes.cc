#include "kernels/rows/extremes.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/extremes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using FloatVec = hn::Vec<Floats>;

// Which lanes of `v` take the place of the best so far.
template <bool largest, bool select_last>
HWY_INLINE auto Better(FloatVec v, FloatVec best) {
  const auto beyond = largest ? hn::Gt(v, best) : hn::Lt(v, best);
  const auto to_nan = hn::And(hn::IsNaN(v), hn::Not(hn::IsNaN(best)));
  const auto better = hn::Or(hn::And(beyond, hn::Not(hn::IsNaN(best))), to_nan);
  if constexpr (select_last) {
    const auto both_nan = hn::And(hn::IsNaN(v), hn::IsNaN(best));
    return hn::Or(better, hn::Or(hn::Eq(v, best), both_nan));
  } else {
    return better;
  }
}

// Of n vectors, lane by lane.
template <bool largest, bool select_last, class Load>
HWY_INLINE void Walk(int64_t n, const Load& load, FloatVec& best,
                     hn::Vec<hn::RebindToSigned<Floats>>& where) {
  const hn::RebindToSigned<Floats> whole;
  best = load(0);
  where = hn::Zero(whole);
  for (int64_t i = 1; i < n; ++i) {
    const auto v = load(i);
    const auto better = Better<largest, select_last>(v, best);
    best = hn::IfThenElse(better, v, best);
    where = hn::IfThenElse(hn::RebindMask(whole, better), hn::Set(whole, static_cast<int32_t>(i)),
                           where);
  }
}

template <bool largest, bool select_last>
void Columns(const float* x, int64_t stride, int64_t n, int64_t width, int64_t* y) {
  const Floats d;
  const hn::RebindToSigned<Floats> whole;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < width; j += lanes) {
    const int64_t some = std::min(lanes, width - j);
    const auto mask = hn::FirstN(d, static_cast<size_t>(some));
    FloatVec best;
    hn::Vec<decltype(whole)> where;
    if (some == lanes) {
      Walk<largest, select_last>(
          n, [&](int64_t i) HWY_ATTR { return hn::LoadU(d, x + i * stride + j); }, best, where);
    } else {
      Walk<largest, select_last>(
          n, [&](int64_t i) HWY_ATTR { return masked::Load(mask, d, x + i * stride + j); }, best,
          where);
    }
    alignas(64) int32_t at[hn::MaxLanes(Floats())];
    hn::Store(where, whole, at);
    for (int64_t k = 0; k < some; ++k) y[j + k] = at[k];
  }
}

// Each lane finds the first (or last) of its own elements; the place is the least (or greatest) of
// those lanes that have the row's extreme.
template <bool largest, bool select_last>
HWY_INLINE int64_t Row(const float* x, int64_t n) {
  const Floats d;
  const hn::RebindToSigned<Floats> whole;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t steps = n / lanes, rest = n % lanes;
  const auto some = hn::FirstN(d, static_cast<size_t>(rest));
  const auto beyond = hn::Set(d, largest ? -std::numeric_limits<float>::infinity()
                                         : std::numeric_limits<float>::infinity());
  FloatVec best;
  hn::Vec<decltype(whole)> where = hn::Zero(whole);
  auto candidates = hn::FirstN(d, static_cast<size_t>(HWY_MIN(n, lanes)));
  if (steps > 0) {
    Walk<largest, select_last>(
        steps, [&](int64_t i) HWY_ATTR { return hn::LoadU(d, x + i * lanes); }, best, where);
  } else {
    best = hn::IfThenElse(some, masked::Load(some, d, x), beyond);
  }
  if (steps > 0 && rest > 0) {
    const auto v = masked::Load(some, d, x + steps * lanes);
    const auto better = hn::And(some, Better<largest, select_last>(v, best));
    best = hn::IfThenElse(better, v, best);
    where = hn::IfThenElse(hn::RebindMask(whole, better),
                           hn::Set(whole, static_cast<int32_t>(steps)), where);
  }
  const auto nan = hn::IsNaN(best);
  if (HWY_UNLIKELY(!hn::AllFalse(d, nan))) {
    candidates = nan;
  } else {
    const auto top = largest ? hn::MaxOfLanes(d, best) : hn::MinOfLanes(d, best);
    candidates = hn::And(candidates, hn::Eq(best, top));
  }
  const auto places =
      hn::Add(hn::Mul(where, hn::Set(whole, static_cast<int32_t>(lanes))), hn::Iota(whole, 0));
  const auto chosen = hn::RebindMask(whole, candidates);
  if constexpr (select_last)
    return hn::GetLane(hn::MaxOfLanes(whole, hn::IfThenElseZero(chosen, places)));
  return hn::GetLane(
      hn::MinOfLanes(whole, hn::IfThenElse(chosen, places, hn::Set(whole, INT32_MAX))));
}

template <bool largest, bool select_last>
void Rows(const float* x, int64_t rows, int64_t n, int64_t* y) {
  for (int64_t r = 0; r < rows; ++r) y[r] = Row<largest, select_last>(x + r * n, n);
}

void ExtremeOfRows(bool largest, bool select_last, const float* x, int64_t rows, int64_t n,
                   int64_t* y) {
  if (largest)
    return select_last ? Rows<true, true>(x, rows, n, y) : Rows<true, false>(x, rows, n, y);
  return select_last ? Rows<false, true>(x, rows, n, y) : Rows<false, false>(x, rows, n, y);
}

void ExtremeOfColumns(bool largest, bool select_last, const float* x, int64_t stride, int64_t n,
                      int64_t width, int64_t* y) {
  if (largest) {
    return select_last ? Columns<true, true>(x, stride, n, width, y)
                       : Columns<true, false>(x, stride, n, width, y);
  }
  return select_last ? Columns<false, true>(x, stride, n, width, y)
                     : Columns<false, false>(x, stride, n, width, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(ExtremeOfRows);
HWY_EXPORT(ExtremeOfColumns);

void extreme_of_rows(bool largest, bool select_last, const float* x, int64_t rows, int64_t n,
                     int64_t* y) {
  HWY_DYNAMIC_DISPATCH(ExtremeOfRows)(largest, select_last, x, rows, n, y);
}
void extreme_of_columns(bool largest, bool select_last, const float* x, int64_t stride, int64_t n,
                        int64_t width, int64_t* y) {
  HWY_DYNAMIC_DISPATCH(ExtremeOfColumns)(largest, select_last, x, stride, n, width, y);
}

}  // namespace sardonyx::kernels
#endif
