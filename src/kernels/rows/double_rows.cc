#include "kernels/rows/double_rows.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/double_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/double_math-inl.h"
#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = sardonyx::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using DoubleVec = hn::Vec<Doubles>;

// Lanes joined in pairs, halves of a vector first.
template <class Join>
double JoinLanes(DoubleVec v, const Join& join) {
  const Doubles d;
  alignas(64) double lanes[hn::MaxLanes(Doubles())];
  hn::Store(v, d, lanes);
  for (size_t half = hn::Lanes(d) / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] = join(lanes[i], lanes[i + half]);
  }
  return lanes[0];
}

// Four vectors side by side, so that none waits for an operation to end. What is beyond n is
// `neutral`.
template <class Step, class Join, class JoinLane>
double FoldDoubles(const double* x, int64_t n, double neutral, const Step& step, const Join& join,
                   const JoinLane& join_lane) {
  const Doubles d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const DoubleVec start = hn::Set(d, neutral);
  DoubleVec v0 = start, v1 = start, v2 = start, v3 = start;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    v0 = step(v0, hn::LoadU(d, x + i));
    v1 = step(v1, hn::LoadU(d, x + i + lanes));
    v2 = step(v2, hn::LoadU(d, x + i + 2 * lanes));
    v3 = step(v3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) v0 = step(v0, hn::LoadU(d, x + i));
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    v1 = hn::IfThenElse(some, step(v1, masked::Load(some, d, x + i)), v1);
  }
  return JoinLanes(join(join(v0, v1), join(v2, v3)), join_lane);
}

constexpr auto add_vectors = [](DoubleVec a, DoubleVec b) HWY_ATTR { return hn::Add(a, b); };
constexpr auto add_lanes = [](double a, double b) { return a + b; };
constexpr auto larger_vector = [](DoubleVec a, DoubleVec b) HWY_ATTR {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Gt(a, b), a, b));
};
constexpr auto smaller_vector = [](DoubleVec a, DoubleVec b) HWY_ATTR {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Lt(a, b), a, b));
};

double DoubleRowSum(const double* x, int64_t n) {
  return FoldDoubles(x, n, 0, add_vectors, add_vectors, add_lanes);
}
double DoubleRowSumSquares(const double* x, double center, int64_t n) {
  const DoubleVec middle = hn::Set(Doubles(), center);
  const auto step = [=](DoubleVec sum, DoubleVec v) HWY_ATTR {
    const DoubleVec off = hn::Sub(v, middle);
    return hn::MulAdd(off, off, sum);
  };
  return FoldDoubles(x, n, 0, step, add_vectors, add_lanes);
}
// The instructions for the larger and the smaller lose a NaN: whether there was one is noted apart.
template <class Better>
HWY_INLINE double ExtremeOfDoubles(const double* x, int64_t n, double neutral,
                                   const Better& better) {
  const Doubles d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const DoubleVec start = hn::Set(d, neutral);
  DoubleVec best[4] = {start, start, start, start};
  auto nan = hn::IsNaN(start);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const DoubleVec v0 = hn::LoadU(d, x + i), v1 = hn::LoadU(d, x + i + lanes),
                    v2 = hn::LoadU(d, x + i + 2 * lanes), v3 = hn::LoadU(d, x + i + 3 * lanes);
    nan = hn::Or(
        nan, hn::Or(hn::Or(hn::IsNaN(v0), hn::IsNaN(v1)), hn::Or(hn::IsNaN(v2), hn::IsNaN(v3))));
    best[0] = better(best[0], v0);
    best[1] = better(best[1], v1);
    best[2] = better(best[2], v2);
    best[3] = better(best[3], v3);
  }
  for (; i < n; i += lanes) {
    const auto some = hn::FirstN(d, static_cast<size_t>(HWY_MIN(lanes, n - i)));
    const DoubleVec v = hn::IfThenElse(some, masked::Load(some, d, x + i), start);
    nan = hn::Or(nan, hn::IsNaN(v));
    best[0] = better(best[0], v);
  }
  if (!hn::AllFalse(d, nan)) return std::numeric_limits<double>::quiet_NaN();
  const DoubleVec top = better(better(best[0], best[1]), better(best[2], best[3]));
  return JoinLanes(top, [&](double a, double b) HWY_ATTR {
    const hn::CappedTag<double, 1> one;
    return hn::GetLane(better(hn::Set(one, a), hn::Set(one, b)));
  });
}
double DoubleRowMax(const double* x, int64_t n) {
  return ExtremeOfDoubles(x, n, -std::numeric_limits<double>::infinity(),
                          [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}
double DoubleRowMin(const double* x, int64_t n) {
  return ExtremeOfDoubles(x, n, std::numeric_limits<double>::infinity(),
                          [](auto a, auto b) HWY_ATTR { return hn::Min(a, b); });
}
double DoubleRowSumExp(const double* x, double center, int64_t n) {
  const DoubleVec middle = hn::Set(Doubles(), center);
  const auto step = [=](DoubleVec sum, DoubleVec v)
                        HWY_ATTR { return hn::Add(sum, sm::Exp(Doubles(), hn::Sub(v, middle))); };
  return FoldDoubles(x, n, 0, step, add_vectors, add_lanes);
}

double DoubleRowExp(const double* x, double center, double* y, int64_t n) {
  const Doubles d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const DoubleVec middle = hn::Set(d, center);
  DoubleVec sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const DoubleVec v = sm::Exp(d, hn::Sub(hn::LoadU(d, x + i), middle));
    hn::StoreU(v, d, y + i);
    sum = hn::Add(sum, v);
  }
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const DoubleVec v = sm::Exp(d, hn::Sub(masked::Load(some, d, x + i), middle));
    masked::Store(v, some, d, y + i);
    sum = hn::Add(sum, hn::IfThenElseZero(some, v));
  }
  return JoinLanes(sum, add_lanes);
}

// So many rows are read side by side, in pieces as long as they are.
constexpr int64_t rows_together = 8;
template <int64_t rows, class Join>
HWY_INLINE void JoinRows(const double* x, int64_t stride, double* y, int64_t n, const Join& join) {
  const Doubles d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto joined = [&](const auto& load, int64_t i) HWY_ATTR {
    DoubleVec v = load(y + i);
#pragma GCC unroll 8
    for (int64_t r = 0; r < rows; ++r) v = join(v, load(x + r * stride + i));
    return v;
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(joined([&](const double* p) HWY_ATTR { return hn::LoadU(d, p); }, i), d, y + i);
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto load = [&](const double* p) HWY_ATTR { return masked::Load(some, d, p); };
    masked::Store(joined(load, i), some, d, y + i);
  }
}
template <class Join>
HWY_INLINE void JoinColumns(const double* x, int64_t stride, int64_t rows, double* y, int64_t n,
                            const Join& join) {
  int64_t r = 0;
  for (; r + rows_together <= rows; r += rows_together)
    JoinRows<rows_together>(x + r * stride, stride, y, n, join);
  for (; r < rows; ++r) JoinRows<1>(x + r * stride, stride, y, n, join);
}
void DoubleColumnSums(const double* x, int64_t stride, int64_t rows, double* y, int64_t n) {
  JoinColumns(x, stride, rows, y, n, add_vectors);
}
void DoubleColumnMaxima(const double* x, int64_t stride, int64_t rows, double* y, int64_t n) {
  JoinColumns(x, stride, rows, y, n, larger_vector);
}
void DoubleColumnMinima(const double* x, int64_t stride, int64_t rows, double* y, int64_t n) {
  JoinColumns(x, stride, rows, y, n, smaller_vector);
}

void DoubleColumnExp(const double* x, const double* centers, double* y, double* sums, int64_t n) {
  const Doubles d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const DoubleVec off = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, centers + i));
    const DoubleVec power = sm::Exp(d, off);
    if (y != nullptr) hn::StoreU(power, d, y + i);
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), power), d, sums + i);
  }
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const DoubleVec off = hn::Sub(masked::Load(some, d, x + i), masked::Load(some, d, centers + i));
    const DoubleVec power = sm::Exp(d, off);
    if (y != nullptr) masked::Store(power, some, d, y + i);
    masked::Store(hn::Add(masked::Load(some, d, sums + i), power), some, d, sums + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(DoubleRowSum);
HWY_EXPORT(DoubleRowSumSquares);
HWY_EXPORT(DoubleRowMax);
HWY_EXPORT(DoubleRowMin);
HWY_EXPORT(DoubleRowSumExp);
HWY_EXPORT(DoubleRowExp);
HWY_EXPORT(DoubleColumnSums);
HWY_EXPORT(DoubleColumnMaxima);
HWY_EXPORT(DoubleColumnMinima);
HWY_EXPORT(DoubleColumnExp);

double row_sum(const double* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(DoubleRowSum)(x, n); }
double row_sum_squares(const double* x, double center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(DoubleRowSumSquares)(x, center, n);
}
double row_max(const double* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(DoubleRowMax)(x, n); }
double row_min(const double* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(DoubleRowMin)(x, n); }
double row_sum_exp(const double* x, double center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(DoubleRowSumExp)(x, center, n);
}
double row_exp(const double* x, double center, double* y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(DoubleRowExp)(x, center, y, n);
}
void column_sums(const double* x, int64_t stride, int64_t rows, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(DoubleColumnSums)(x, stride, rows, y, n);
}
void column_maxima(const double* x, int64_t stride, int64_t rows, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(DoubleColumnMaxima)(x, stride, rows, y, n);
}
void column_minima(const double* x, int64_t stride, int64_t rows, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(DoubleColumnMinima)(x, stride, rows, y, n);
}
void column_exp(const double* x, const double* centers, double* y, double* sums, int64_t n) {
  HWY_DYNAMIC_DISPATCH(DoubleColumnExp)(x, centers, y, sums, n);
}

}  // namespace sardonyx::kernels
#endif
