#include "kernels/rows/row_math.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/row_math.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/loops-inl.h"
#include "kernels/rows/fold-inl.h"
#include "kernels/simd/masked-inl.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = sardonyx::HWY_NAMESPACE;

// What `step` makes of `first` and the elements of a row, one after the other, in four strands that
// are combined at the end.
template <class Step, class Combine>
HWY_INLINE float FoldRow(const float* x, int64_t n, float first, const Step& step,
                         const Combine& combine) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto start = hn::Set(d, first);
  auto a = start, b = start, c = start, e = start;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = step(d, a, hn::LoadU(d, x + i));
    b = step(d, b, hn::LoadU(d, x + i + lanes));
    c = step(d, c, hn::LoadU(d, x + i + 2 * lanes));
    e = step(d, e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = step(d, a, hn::LoadU(d, x + i));
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    b = hn::IfThenElse(some, step(d, b, masked::Load(some, d, x + i)), b);
  }
  if (n < 4 * lanes) return Fold(d, combine(d, a, b), combine);
  return Fold(d, combine(d, combine(d, a, b), combine(d, c, e)), combine);
}
template <class Combine>
HWY_INLINE float FoldRow(const float* x, int64_t n, float first, const Combine& combine) {
  return FoldRow(x, n, first, combine, combine);
}

float RowSum(const float* x, int64_t n) { return FoldRow(x, n, 0.0f, add_of); }
float RowProduct(const float* x, int64_t n) { return FoldRow(x, n, 1.0f, mul_of); }
// The instructions for the larger and the smaller lose a NaN: whether there was one is noted apart.
template <class Better, class Last>
HWY_INLINE float ExtremeOfRow(const float* x, int64_t n, float neutral, const Better& better,
                              const Last& last) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto start = hn::Set(d, neutral);
  auto a = start, b = start;
  auto nan = hn::IsNaN(start);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto v = hn::LoadU(d, x + i), w = hn::LoadU(d, x + i + lanes);
    nan = hn::Or(nan, hn::Or(hn::IsNaN(v), hn::IsNaN(w)));
    a = better(a, v);
    b = better(b, w);
  }
  if (i + lanes <= n) {
    const auto v = hn::LoadU(d, x + i);
    nan = hn::Or(nan, hn::IsNaN(v));
    a = better(a, v);
    i += lanes;
  }
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto v = hn::IfThenElse(some, masked::Load(some, d, x + i), start);
    nan = hn::Or(nan, hn::IsNaN(v));
    b = better(b, v);
  }
  if (!hn::AllFalse(d, nan)) return std::numeric_limits<float>::quiet_NaN();
  return hn::GetLane(last(d, better(a, b)));
}
float RowMax(const float* x, int64_t n) {
  return ExtremeOfRow(
      x, n, -std::numeric_limits<float>::infinity(),
      [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); },
      [](auto d, auto v) HWY_ATTR { return hn::MaxOfLanes(d, v); });
}
float RowMin(const float* x, int64_t n) {
  return ExtremeOfRow(
      x, n, std::numeric_limits<float>::infinity(),
      [](auto a, auto b) HWY_ATTR { return hn::Min(a, b); },
      [](auto d, auto v) HWY_ATTR { return hn::MinOfLanes(d, v); });
}
float RowSumAbs(const float* x, int64_t n) {
  const auto step = [](auto, auto sum, auto v) HWY_ATTR { return hn::Add(sum, hn::Abs(v)); };
  return FoldRow(x, n, 0.0f, step, add_of);
}
float RowSumSquares(const float* x, float center, int64_t n) {
  const auto step = [center](auto d, auto sum, auto v) HWY_ATTR {
    const auto off = hn::Sub(v, hn::Set(d, center));
    return hn::MulAdd(off, off, sum);
  };
  return FoldRow(x, n, 0.0f, step, add_of);
}
float RowSumExp(const float* x, float center, int64_t n) {
  const auto step = [center](auto d, auto sum, auto v) HWY_ATTR {
    return hn::Add(sum, sm::Exp(d, hn::Sub(v, hn::Set(d, center))));
  };
  return FoldRow(x, n, 0.0f, step, add_of);
}

template <class Fold>
HWY_INLINE void EachRow(const float* x, int64_t stride, int64_t rows, float* y, const Fold& fold) {
  for (int64_t r = 0; r < rows; ++r) y[r] = fold(x + r * stride);
}
void FoldRows(ColumnOp op, const float* x, int64_t stride, int64_t rows, int64_t n, float* y) {
  switch (op) {
    case ColumnOp::sum:
      return EachRow(x, stride, rows, y, [n](const float* v) { return RowSum(v, n); });
    case ColumnOp::sum_abs:
      return EachRow(x, stride, rows, y, [n](const float* v) { return RowSumAbs(v, n); });
    case ColumnOp::sum_squares:
      return EachRow(x, stride, rows, y, [n](const float* v) { return RowSumSquares(v, 0, n); });
    case ColumnOp::product:
      return EachRow(x, stride, rows, y, [n](const float* v) { return RowProduct(v, n); });
    case ColumnOp::max:
      return EachRow(x, stride, rows, y, [n](const float* v) { return RowMax(v, n); });
    case ColumnOp::min:
      return EachRow(x, stride, rows, y, [n](const float* v) { return RowMin(v, n); });
  }
}

float RowExp(const float* x, float center, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, center);
  auto a = hn::Zero(d), b = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto v = sm::Exp(d, hn::Sub(hn::LoadU(d, x + i), shift));
    const auto w = sm::Exp(d, hn::Sub(hn::LoadU(d, x + i + lanes), shift));
    hn::StoreU(v, d, y + i);
    hn::StoreU(w, d, y + i + lanes);
    a = hn::Add(a, v);
    b = hn::Add(b, w);
  }
  for (; i < n; i += lanes) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto v = sm::Exp(d, hn::Sub(masked::Load(some, d, x + i), shift));
    masked::Store(v, some, d, y + i);
    a = hn::Add(a, hn::IfThenElseZero(some, v));
  }
  return Fold(d, hn::Add(a, b), add_of);
}

void RowAffine(const float* x, float a, float b, float* y, int64_t n) {
  MapRow(x, y, n,
         [a, b](auto d, auto v) HWY_ATTR { return hn::MulAdd(v, hn::Set(d, a), hn::Set(d, b)); });
}

void RowShift(const float* x, float a, float b, float* y, int64_t n) {
  MapRow(x, y, n, [a, b](auto d, auto v) HWY_ATTR {
    return hn::Sub(hn::Sub(v, hn::Set(d, a)), hn::Set(d, b));
  });
}

void RowAddBias(const float* bias, float* y, int64_t n) {
  MapRows(y, bias, y, n, [](auto d, auto v, auto b) HWY_ATTR {
    const auto least = hn::Set(d, -std::numeric_limits<float>::infinity());
    return hn::IfThenElse(hn::Eq(b, least), b, hn::Add(v, b));
  });
}

void RowKeep(const bool* keep, float other, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> numbers;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = reinterpret_cast<const uint8_t*>(keep);
  const auto rest = hn::Set(d, other);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto kept = hn::PromoteTo(numbers, hn::LoadU(bytes, from + i));
    const auto keeps = hn::RebindMask(d, hn::Ne(kept, hn::Zero(numbers)));
    hn::StoreU(hn::IfThenElse(keeps, hn::LoadU(d, y + i), rest), d, y + i);
  }
  for (; i < n; ++i) y[i] = keep[i] ? y[i] : other;
}

template <bool scaled, bool biased>
HWY_INLINE void NormalizeWith(const float* x, float center, float factor, const float* scale,
                              const float* bias, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, center);
  const auto times = hn::Set(d, factor);
  const auto normal = [&](auto v, const auto& load) HWY_ATTR {
    v = hn::Mul(hn::Sub(v, shift), times);
    if constexpr (scaled && biased) return hn::MulAdd(v, load(scale), load(bias));
    if constexpr (scaled) return hn::Mul(v, load(scale));
    if constexpr (biased) return hn::Add(v, load(bias));
    return v;
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto load = [&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); };
    hn::StoreU(normal(load(x), load), d, y + i);
  }
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto load = [&](const float* p) HWY_ATTR { return masked::Load(some, d, p + i); };
    masked::Store(normal(load(x), load), some, d, y + i);
  }
}

void RowNormalize(const float* x, float center, float factor, const float* scale, const float* bias,
                  float* y, int64_t n) {
  if (scale != nullptr && bias != nullptr) {
    NormalizeWith<true, true>(x, center, factor, scale, bias, y, n);
  } else if (scale != nullptr) {
    NormalizeWith<true, false>(x, center, factor, scale, bias, y, n);
  } else if (bias != nullptr) {
    NormalizeWith<false, true>(x, center, factor, scale, bias, y, n);
  } else {
    NormalizeWith<false, false>(x, center, factor, scale, bias, y, n);
  }
}

template <bool scaled, bool biased>
HWY_INLINE RowMoments NormalizeAhead(const NormalizedRow& row, int64_t n) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V shift = hn::Set(d, row.center), times = hn::Set(d, row.factor),
          next_shift = hn::Set(d, row.next_center);
  V sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  V squares0 = sum0, squares1 = sum0, squares2 = sum0, squares3 = sum0;
  const float *x = row.x, *scale = row.scale, *bias = row.bias, *next = row.next,
              *second_next = row.second_next;
  float* y = row.y;
  const auto normal = [&](const auto& load) HWY_ATTR {
    const V v = hn::Mul(hn::Sub(load(x), shift), times);
    if constexpr (scaled && biased) return hn::MulAdd(v, load(scale), load(bias));
    if constexpr (scaled) return hn::Mul(v, load(scale));
    if constexpr (biased) return hn::Add(v, load(bias));
    return v;
  };
  const auto one = [&](int64_t i, V& sum, V& squares) HWY_ATTR {
    const auto load = [i, d](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); };
    const V off = hn::Sub(load(next), next_shift);
    squares = hn::MulAdd(off, off, squares);
    sum = hn::Add(sum, load(second_next));
    hn::StoreU(normal(load), d, y + i);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    one(i, sum0, squares0);
    one(i + lanes, sum1, squares1);
    one(i + 2 * lanes, sum2, squares2);
    one(i + 3 * lanes, sum3, squares3);
  }
  for (; i + lanes <= n; i += lanes) one(i, sum0, squares0);
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto load = [i, d, some](const float* p)
                          HWY_ATTR { return masked::Load(some, d, p + i); };
    const V off = hn::Sub(load(next), next_shift);
    squares1 = hn::IfThenElse(some, hn::MulAdd(off, off, squares1), squares1);
    sum1 = hn::IfThenElse(some, hn::Add(sum1, load(second_next)), sum1);
    masked::Store(normal(load), some, d, y + i);
  }
  const auto total = [d](V a, V b, V c, V e) HWY_ATTR {
    return Fold(d, hn::Add(hn::Add(a, b), hn::Add(c, e)), add_of);
  };
  return {total(squares0, squares1, squares2, squares3), total(sum0, sum1, sum2, sum3)};
}

RowMoments RowNormalizeAhead(const NormalizedRow& row, int64_t n) {
  if (row.scale != nullptr)
    return row.bias != nullptr ? NormalizeAhead<true, true>(row, n)
                               : NormalizeAhead<true, false>(row, n);
  return row.bias != nullptr ? NormalizeAhead<false, true>(row, n)
                             : NormalizeAhead<false, false>(row, n);
}

// `vectors` vectors of columns, whose results stay in registers meanwhile; `last` lanes count in
// the last one unless they are whole.
template <int vectors, bool whole, class F>
HWY_INLINE void StepColumns(const float* x, int64_t stride, int64_t rows, float* y, int64_t last,
                            const F& f) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto some = hn::FirstN(d, static_cast<size_t>(last));
  const auto load = [&](const float* from, int i) HWY_ATTR {
    return whole || i + 1 < vectors ? hn::LoadU(d, from + i * lanes)
                                    : masked::Load(some, d, from + i * lanes);
  };
  hn::Vec<decltype(d)> v[vectors];
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) v[i] = load(y, i);
  for (int64_t row = 0; row < rows; ++row, x += stride) {
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) v[i] = f(d, v[i], load(x, i));
  }
#pragma GCC unroll 4
  for (int i = 0; i + 1 < vectors; ++i) hn::StoreU(v[i], d, y + i * lanes);
  if constexpr (whole)
    hn::StoreU(v[vectors - 1], d, y + (vectors - 1) * lanes);
  else
    masked::Store(v[vectors - 1], some, d, y + (vectors - 1) * lanes);
}

template <class F>
HWY_INLINE void StepNearRows(const float* x, int64_t stride, int64_t rows, float* y, int64_t n,
                             const F& f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    StepColumns<4, true>(x + i, stride, rows, y + i, lanes, f);
  if (i == n) return;
  const int64_t vectors = (n - i + lanes - 1) / lanes, last = n - i - (vectors - 1) * lanes;
  switch (vectors) {
    case 1: return StepColumns<1, false>(x + i, stride, rows, y + i, last, f);
    case 2: return StepColumns<2, false>(x + i, stride, rows, y + i, last, f);
    case 3: return StepColumns<3, false>(x + i, stride, rows, y + i, last, f);
    default: return StepColumns<4, false>(x + i, stride, rows, y + i, last, f);
  }
}

// Of rows that do not stay near a few are read at a time, each in one long piece.
template <class F>
HWY_INLINE void StepRows(const float* x, int64_t stride, int64_t rows, float* y, int64_t n,
                         const F& f) {
  constexpr int64_t near_floats = 32768, at_once = 8;
  const int64_t some = stride * rows > near_floats ? at_once : rows;
  for (; rows > 0; rows -= some, x += some * stride)
    StepNearRows(x, stride, std::min(some, rows), y, n, f);
}

void ColumnSteps(ColumnOp op, const float* x, int64_t stride, int64_t rows, float* y, int64_t n) {
  const auto step = [&](const auto& f) HWY_ATTR { StepRows(x, stride, rows, y, n, f); };
  switch (op) {
    case ColumnOp::sum: return step(add_of);
    case ColumnOp::product: return step(mul_of);
    case ColumnOp::max: return step(max_of);
    case ColumnOp::min: return step(min_of);
    case ColumnOp::sum_abs:
      return step([](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, hn::Abs(b)); });
    case ColumnOp::sum_squares:
      return step([](auto, auto a, auto b) HWY_ATTR { return hn::MulAdd(b, b, a); });
  }
}

template <bool stored>
HWY_INLINE void ExpOfColumns(const float* x, const float* centers, float* y, float* sums,
                             int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = sm::ExpNotPositive(d, hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, centers + i)));
    if constexpr (stored) hn::StoreU(v, d, y + i);
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), v), d, sums + i);
  }
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto load = [&](const float* from) HWY_ATTR { return masked::Load(some, d, from + i); };
    const auto v = sm::ExpNotPositive(d, hn::Sub(load(x), load(centers)));
    if constexpr (stored) masked::Store(v, some, d, y + i);
    masked::Store(hn::Add(load(sums), v), some, d, sums + i);
  }
}
void ColumnExp(const float* x, const float* centers, float* y, float* sums, int64_t n) {
  if (y != nullptr)
    ExpOfColumns<true>(x, centers, y, sums, n);
  else
    ExpOfColumns<false>(x, centers, nullptr, sums, n);
}

constexpr auto quotient = [](auto d, auto v, auto by) HWY_ATTR {
  return hn::IfThenElse(hn::Eq(by, hn::Zero(d)), hn::Zero(d), hn::Div(v, by));
};
void RowDivide(const float* x, float by, float* y, int64_t n) {
  MapRow(x, y, n, [by](auto d, auto v) HWY_ATTR { return quotient(d, v, hn::Set(d, by)); });
}
void ColumnDivide(const float* x, const float* by, float* y, int64_t n) {
  MapRows(x, by, y, n, quotient);
}
void ColumnScale(const float* x, const float* factors, float* y, int64_t n) {
  MapRows(x, factors, y, n, mul_of);
}
void ColumnShift(const float* x, const float* centers, const float* rests, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shifted = [&](const auto& load) HWY_ATTR {
    return hn::Sub(hn::Sub(load(x), load(centers)), load(rests));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto load = [&](const float* from) HWY_ATTR { return hn::LoadU(d, from + i); };
    hn::StoreU(shifted(load), d, y + i);
  }
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto load = [&](const float* from) HWY_ATTR { return masked::Load(some, d, from + i); };
    masked::Store(shifted(load), some, d, y + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(RowSum);
HWY_EXPORT(FoldRows);
HWY_EXPORT(RowSumAbs);
HWY_EXPORT(RowSumSquares);
HWY_EXPORT(RowProduct);
HWY_EXPORT(RowMax);
HWY_EXPORT(RowMin);
HWY_EXPORT(RowSumExp);
HWY_EXPORT(RowExp);
HWY_EXPORT(RowAffine);
HWY_EXPORT(RowShift);
HWY_EXPORT(RowAddBias);
HWY_EXPORT(RowKeep);
HWY_EXPORT(RowNormalize);
HWY_EXPORT(RowNormalizeAhead);
RowMoments row_normalize_ahead(const NormalizedRow& row, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(RowNormalizeAhead)(row, n);
}
HWY_EXPORT(ColumnSteps);
HWY_EXPORT(ColumnExp);
HWY_EXPORT(RowDivide);
HWY_EXPORT(ColumnDivide);
HWY_EXPORT(ColumnScale);
HWY_EXPORT(ColumnShift);

void fold_rows(ColumnOp op, const float* x, int64_t stride, int64_t rows, int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(FoldRows)(op, x, stride, rows, n, y);
}
float row_sum(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(RowSum)(x, n); }
float row_sum_abs(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(RowSumAbs)(x, n); }
float row_sum_squares(const float* x, float center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(RowSumSquares)(x, center, n);
}
float row_product(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(RowProduct)(x, n); }
float row_max(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(RowMax)(x, n); }
float row_min(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(RowMin)(x, n); }
float row_sum_exp(const float* x, float center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(RowSumExp)(x, center, n);
}
float row_exp(const float* x, float center, float* y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(RowExp)(x, center, y, n);
}
void row_shift(const float* x, float a, float b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RowShift)(x, a, b, y, n);
}
void row_affine(const float* x, float a, float b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RowAffine)(x, a, b, y, n);
}
void row_add_bias(const float* bias, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RowAddBias)(bias, y, n);
}
void row_keep(const bool* keep, float other, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RowKeep)(keep, other, y, n);
}
void row_normalize(const float* x, float center, float factor, const float* scale,
                   const float* bias, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RowNormalize)(x, center, factor, scale, bias, y, n);
}
void column_steps(ColumnOp op, const float* x, int64_t stride, int64_t rows, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ColumnSteps)(op, x, stride, rows, y, n);
}
void column_exp(const float* x, const float* centers, float* y, float* sums, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ColumnExp)(x, centers, y, sums, n);
}
void row_divide(const float* x, float by, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RowDivide)(x, by, y, n);
}
void column_divide(const float* x, const float* by, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ColumnDivide)(x, by, y, n);
}
void column_scale(const float* x, const float* factors, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ColumnScale)(x, factors, y, n);
}
void column_shift(const float* x, const float* centers, const float* rests, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ColumnShift)(x, centers, rests, y, n);
}

}  // namespace sardonyx::kernels
#endif
