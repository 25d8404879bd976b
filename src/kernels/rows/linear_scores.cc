#include "kernels/rows/linear_scores.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/linear_scores.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Features of some rows that are doubles at a time.
constexpr int64_t piece = 256;

template <class D>
HWY_INLINE void ToDoubles(D d, const float* from, int64_t n, double* to) {
  const hn::Rebind<float, D> given;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(given, from + i)), d, to + i);
  for (; i < n; ++i) to[i] = static_cast<double>(from[i]);
}

// Lanes are targets: a vector of them, from t on, for `count` rows.
template <int count, class T, class D>
HWY_INLINE void ScoreRows(D d, const LinearTargets& linear, const T* x, int64_t t, float* scores) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t features = linear.features, padded = linear.padded();
  constexpr bool narrow = std::is_same_v<T, float>;
  alignas(64) double space[narrow ? count * piece : 1];
  hn::Vec<D> sums[count];
#pragma GCC unroll 8
  for (int r = 0; r < count; ++r) sums[r] = hn::LoadU(d, linear.start.data() + t);
  const double* weights = linear.weights.data() + t;
  for (int64_t first = 0; first < features; first += piece) {
    const int64_t n = std::min(piece, features - first);
    const double* rows[count];
    if constexpr (narrow) {
      const hn::CappedTag<double, 8> wide;
      if (n == features) {  // all rows lie together
        ToDoubles(wide, x, count * n, space);
      } else {
        for (int r = 0; r < count; ++r) ToDoubles(wide, x + r * features + first, n, space + r * n);
      }
      for (int r = 0; r < count; ++r) rows[r] = space + r * n;
    } else {
      for (int r = 0; r < count; ++r) rows[r] = x + r * features + first;
    }
    for (int64_t f = 0; f < n; ++f, weights += padded) {
      const auto weight = hn::LoadU(d, weights);
#pragma GCC unroll 8
      for (int r = 0; r < count; ++r) sums[r] = hn::MulAdd(hn::Set(d, rows[r][f]), weight, sums[r]);
    }
  }
  const hn::Rebind<float, D> result;
  const auto some = hn::FirstN(result, static_cast<size_t>(std::min(lanes, linear.targets - t)));
#pragma GCC unroll 8
  for (int r = 0; r < count; ++r) {
    masked::Store(hn::DemoteTo(result, sums[r]), some, result, scores + r * linear.targets + t);
  }
}

template <class T, class D>
void ScoreBy(D d, const LinearTargets& linear, const T* x, int64_t rows, float* scores) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t together = 8;
  for (int64_t r = 0; r < rows;) {
    const bool many = rows - r >= together;
    for (int64_t t = 0; t < linear.targets; t += lanes) {
      if (many) {
        ScoreRows<together>(d, linear, x, t, scores);
      } else {
        ScoreRows<1>(d, linear, x, t, scores);
      }
    }
    const int64_t done = many ? together : 1;
    r += done;
    x += done * linear.features;
    scores += done * linear.targets;
  }
}

// Lanes are features: the scores of one target for `count` rows.
template <int count, class T>
HWY_INLINE void DotRows(const double* weights, double start, const T* x, int64_t features,
                        float* scores, int64_t targets) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<T, decltype(d)> given;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto promoted = [&](auto v) HWY_ATTR {
    if constexpr (std::is_same_v<T, float>)
      return hn::PromoteTo(d, v);
    else
      return v;
  };
  hn::Vec<decltype(d)> sums[count];
#pragma GCC unroll 4
  for (int r = 0; r < count; ++r) sums[r] = hn::Zero(d);
  int64_t f = 0;
  for (; f + lanes <= features; f += lanes) {
    const auto weight = hn::LoadU(d, weights + f);
#pragma GCC unroll 4
    for (int r = 0; r < count; ++r)
      sums[r] = hn::MulAdd(promoted(hn::LoadU(given, x + r * features + f)), weight, sums[r]);
  }
  if (f < features) {
    const auto rest = static_cast<size_t>(features - f);
    const auto weight = masked::Load(hn::FirstN(d, rest), d, weights + f);
    const auto some = hn::FirstN(given, rest);
#pragma GCC unroll 4
    for (int r = 0; r < count; ++r) {
      sums[r] =
          hn::MulAdd(promoted(masked::Load(some, given, x + r * features + f)), weight, sums[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < count; ++r)
    scores[r * targets] = static_cast<float>(start + hn::GetLane(hn::SumOfLanes(d, sums[r])));
}

template <class T>
void ScoreByRows(const LinearTargets& linear, const T* x, int64_t rows, float* scores) {
  const int64_t features = linear.features, targets = linear.targets;
  for (int64_t t = 0; t < targets; ++t) {
    const double* weights = linear.weights.data() + t * features;
    const double start = linear.start[static_cast<size_t>(t)];
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4)
      DotRows<4>(weights, start, x + r * features, features, scores + r * targets + t, targets);
    for (; r < rows; ++r)
      DotRows<1>(weights, start, x + r * features, features, scores + r * targets + t, targets);
  }
}

// Vectors no wider than the targets need.
template <class T>
void Score(const LinearTargets& linear, const T* x, int64_t rows, float* scores) {
  if (linear.by_rows()) return ScoreByRows(linear, x, rows, scores);
  if (linear.targets <= 2) return ScoreBy(hn::CappedTag<double, 2>(), linear, x, rows, scores);
  if (linear.targets <= 4) return ScoreBy(hn::CappedTag<double, 4>(), linear, x, rows, scores);
  ScoreBy(hn::CappedTag<double, 8>(), linear, x, rows, scores);
}

void ScoreFloats(const LinearTargets& linear, const float* x, int64_t rows, float* scores) {
  Score(linear, x, rows, scores);
}
void ScoreDoubles(const LinearTargets& linear, const double* x, int64_t rows, float* scores) {
  Score(linear, x, rows, scores);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(ScoreFloats);
HWY_EXPORT(ScoreDoubles);

void LinearTargets::arrange(const std::vector<float>& coefficients,
                            const std::vector<float>& intercepts) {
  weights.assign(static_cast<size_t>(features * padded()), 0.0);
  start.assign(static_cast<size_t>(padded()), 0.0);
  for (int64_t t = 0; t < targets; ++t) {
    if (!intercepts.empty())
      start[static_cast<size_t>(t)] =
          intercepts[intercepts.size() == 1 ? 0 : static_cast<size_t>(t)];
    for (int64_t f = 0; f < features; ++f) {
      const int64_t place = by_rows() ? t * features + f : f * padded() + t;
      weights[static_cast<size_t>(place)] = coefficients[static_cast<size_t>(t * features + f)];
    }
  }
}

void linear_scores(const LinearTargets& linear, const float* x, int64_t rows, float* scores) {
  HWY_DYNAMIC_DISPATCH(ScoreFloats)(linear, x, rows, scores);
}
void linear_scores(const LinearTargets& linear, const double* x, int64_t rows, float* scores) {
  HWY_DYNAMIC_DISPATCH(ScoreDoubles)(linear, x, rows, scores);
}

}  // namespace sardonyx::kernels
#endif
