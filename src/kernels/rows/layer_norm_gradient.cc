#include "kernels/rows/layer_norm_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/layer_norm_gradient.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/rows/grain.h"
#include "kernels/rows/row_math.h"
#include "kernels/simd/masked-inl.h"

#ifndef SARDONYX_KERNELS_ROWS_LAYER_NORM_GRADIENT
#define SARDONYX_KERNELS_ROWS_LAYER_NORM_GRADIENT
namespace sardonyx::kernels {

// Sums over a row: of (x - mean)^2, and of dy * scale by itself and times (x - mean).
template <class T>
struct RowSums {
  T squares = 0, flow = 0, along = 0;
};
// dx = ((dy * scale - flow) - (x - mean) * along) * inverse.
template <class T>
struct RowSlopes {
  T mean = 0, flow = 0, along = 0, inverse = 0;
};

}  // namespace sardonyx::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

RowSums<float> SumsOfRow(const float* x, const float* scale, const float* dy, float mean,
                         int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto middle = hn::Set(d, mean);
  auto squares = hn::Zero(d), flow = squares, along = squares;
  auto more_squares = squares, more_flow = squares, more_along = squares;
  const auto add = [&](auto off, auto part, auto& square, auto& sum, auto& dot) HWY_ATTR {
    square = hn::MulAdd(off, off, square);
    sum = hn::Add(sum, part);
    dot = hn::MulAdd(off, part, dot);
  };
  const auto at = [&](int64_t i, auto& square, auto& sum, auto& dot) HWY_ATTR {
    add(hn::Sub(hn::LoadU(d, x + i), middle),
        hn::Mul(hn::LoadU(d, dy + i), hn::LoadU(d, scale + i)), square, sum, dot);
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    at(i, squares, flow, along);
    at(i + lanes, more_squares, more_flow, more_along);
  }
  for (; i + lanes <= n; i += lanes) at(i, squares, flow, along);
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto off = hn::IfThenElseZero(some, hn::Sub(masked::Load(some, d, x + i), middle));
    add(off, hn::Mul(masked::Load(some, d, dy + i), masked::Load(some, d, scale + i)), more_squares,
        more_flow, more_along);
  }
  const auto total = [&](auto a, auto b)
                         HWY_ATTR { return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b))); };
  return {total(squares, more_squares), total(flow, more_flow), total(along, more_along)};
}

// Writes dx, and adds to dscale; either may be null.
void SlopesOfRow(const float* x, const float* scale, const float* dy, const RowSlopes<float>& row,
                 float* dx, float* dscale, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto middle = hn::Set(d, row.mean), less = hn::Set(d, row.flow),
             slope = hn::Set(d, row.along), times = hn::Set(d, row.inverse);
  const auto slope_of = [&](auto off, auto flow, auto factor) HWY_ATTR {
    return hn::Mul(hn::NegMulAdd(off, slope, hn::MulSub(flow, factor, less)), times);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto off = hn::Sub(hn::LoadU(d, x + i), middle), flow = hn::LoadU(d, dy + i);
    if (dscale != nullptr)
      hn::StoreU(hn::MulAdd(flow, hn::Mul(off, times), hn::LoadU(d, dscale + i)), d, dscale + i);
    if (dx != nullptr) hn::StoreU(slope_of(off, flow, hn::LoadU(d, scale + i)), d, dx + i);
  }
  if (i == n) return;
  const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
  const auto off = hn::Sub(masked::Load(some, d, x + i), middle),
             flow = masked::Load(some, d, dy + i);
  if (dscale != nullptr) {
    masked::Store(hn::MulAdd(flow, hn::Mul(off, times), masked::Load(some, d, dscale + i)), some, d,
                  dscale + i);
  }
  if (dx != nullptr)
    masked::Store(slope_of(off, flow, masked::Load(some, d, scale + i)), some, d, dx + i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

HWY_EXPORT(SumsOfRow);
HWY_EXPORT(SlopesOfRow);

RowSums<float> sums_of_row(const float* x, const float* scale, const float* dy, float mean,
                           int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumsOfRow)(x, scale, dy, mean, n);
}
RowSums<double> sums_of_row(const double* x, const double* scale, const double* dy, double mean,
                            int64_t n) {
  RowSums<double> sums;
  for (int64_t i = 0; i < n; ++i) {
    const double off = x[i] - mean, part = dy[i] * scale[i];
    sums.squares += off * off, sums.flow += part, sums.along += off * part;
  }
  return sums;
}

void slopes_of_row(const float* x, const float* scale, const float* dy, const RowSlopes<float>& row,
                   float* dx, float* dscale, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SlopesOfRow)(x, scale, dy, row, dx, dscale, n);
}
void slopes_of_row(const double* x, const double* scale, const double* dy,
                   const RowSlopes<double>& row, double* dx, double* dscale, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double off = x[i] - row.mean, flow = dy[i];
    if (dscale != nullptr) dscale[i] += flow * off * row.inverse;
    if (dx != nullptr) dx[i] = (flow * scale[i] - row.flow - off * row.along) * row.inverse;
  }
}

template <class T>
void one_row(const LayerNormGradient<T>& job, int64_t r, const T* scale, T* dscale) {
  const int64_t at = r * job.n;
  const T *x = job.x + at, *dy = job.dy + at;
  const auto count = static_cast<double>(job.n);
  const auto mean = static_cast<T>(static_cast<double>(row_sum(x, job.n)) / count);
  const RowSums<T> sums = sums_of_row(x, scale, dy, mean, job.n);
  const double inverse = 1 / std::sqrt(static_cast<double>(sums.squares) / count + job.epsilon);
  RowSlopes<T> row{mean, static_cast<T>(static_cast<double>(sums.flow) / count),
                   static_cast<T>(static_cast<double>(sums.along) / count * inverse * inverse),
                   static_cast<T>(inverse)};
  slopes_of_row(x, scale, dy, row, job.dx == nullptr ? nullptr : job.dx + at, dscale, job.n);
}

// Rows whose parts of dscale are added up by themselves; as many whatever the threads.
constexpr int64_t max_blocks = 32, min_rows = 8;
int64_t rows_of_block(int64_t rows) {
  return std::max(min_rows, (rows + max_blocks - 1) / max_blocks);
}
int64_t blocks_of(int64_t rows) { return (rows + rows_of_block(rows) - 1) / rows_of_block(rows); }

// Each row has scales of its own, which lie anywhere.
template <class T>
void rows_of_any_scale(const LayerNormGradient<T>& job, T* scratch) {
  T *scale = scratch, *dscale = scratch + job.n;
  if (job.dscale != nullptr) std::fill_n(job.dscale, job.scales, T{0});
  for (int64_t r = 0; r < job.rows; ++r) {
    const int64_t row = job.row_at[r];
    for (int64_t j = 0; j < job.n; ++j) scale[j] = job.scale[row + job.at[j]];
    std::fill_n(dscale, job.n, T{0});
    one_row(job, r, scale, dscale);
    if (job.dscale == nullptr) continue;
    for (int64_t j = 0; j < job.n; ++j) job.dscale[row + job.at[j]] += dscale[j];
  }
}

template <class T>
void all_rows(const LayerNormGradient<T>& job, T* scratch, ThreadPool& pool) {
  if (job.row_at != nullptr) return rows_of_any_scale(job, scratch);
  const int64_t n = job.n, in_block = rows_of_block(job.rows), blocks = blocks_of(job.rows);
  for_rows_of(blocks, 4 * in_block * n, pool, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      T* part = job.dscale == nullptr ? nullptr : scratch + b * n;
      if (part != nullptr) std::fill_n(part, n, T{0});
      for (int64_t r = b * in_block; r < std::min(job.rows, (b + 1) * in_block); ++r)
        one_row(job, r, job.scale, part);
    }
  });
  if (job.dscale == nullptr) return;
  std::fill_n(job.dscale, n, T{0});
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t j = 0; j < n; ++j) job.dscale[j] += scratch[b * n + j];
  }
}

}  // namespace

int64_t layer_norm_gradient_scratch(int64_t rows, int64_t n) {
  return std::max<int64_t>(2, blocks_of(rows)) * n;
}

void layer_norm_gradient(const LayerNormGradient<float>& job, float* scratch, ThreadPool& pool) {
  all_rows(job, scratch, pool);
}
void layer_norm_gradient(const LayerNormGradient<double>& job, double* scratch, ThreadPool& pool) {
  all_rows(job, scratch, pool);
}

}  // namespace sardonyx::kernels
#endif
