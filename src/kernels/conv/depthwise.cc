#include "kernels/conv/depthwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/conv/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE TileVec TileSet(float value) { return TileBroadcast(&value); }

// min(max(v, low), high); NaN stays NaN.
HWY_INLINE TileVec TileClamp(TileVec v, TileVec low, TileVec high) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return hn::Min(high, hn::Max(low, v));  // the second operand wins where one is NaN
#elif HWY_TARGET == HWY_NEON
  v = hn::IfThenElse(hn::Lt(v, low), low, v);
  return hn::IfThenElse(hn::Gt(v, high), high, v);
#else
  v = v < low ? low : v;
  return v > high ? high : v;
#endif
}

HWY_INLINE void Finish(const DepthwiseJob& job, TileVec sum, int64_t count, float* to) {
  const TileVec v = TileClamp(TileMulAdd(TileSet(job.alpha), sum, TileSet(job.bias)),
                              TileSet(job.low), TileSet(job.high));
  if (count >= tile_lanes) {
    TileStoreVec(v, to);
  } else {
    StoreLanes(LaneRange(0, count), v, to);
  }
}

// The output lanes whose input column column * stride + shift is inside the row.
template <int stride>
HWY_INLINE LanePair<stride> LanesInside(const ConvGeometry& g, int64_t column, int64_t shift,
                                        int64_t count) {
  const int64_t first = column * stride + shift;
  const int64_t begin = first < 0 ? (-first + stride - 1) / stride : 0;
  const int64_t room = g.in[2] - first;
  const int64_t end = room <= 0 ? 0 : std::min(count, (room + stride - 1) / stride);
  return LanePair<stride>(std::min(begin, end), end);
}

// One vector of output columns in `step` neighbouring rows. Inside: all columns of the input that
// it looks at exist.
template <int size, int stride, bool inside>
HWY_INLINE void RowsOfColumn(const DepthwiseJob& job, const TileVec (&weights)[size * size],
                             int64_t row, int64_t column, int64_t rows) {
  constexpr int step = static_cast<int>(depthwise_row_step);
  const ConvGeometry& g = *job.geometry;
  const int64_t count = std::min<int64_t>(tile_lanes, g.out[2] - column);
  LanePair<stride> lanes[size];
  if constexpr (!inside) {
    for (int w = 0; w < size; ++w) lanes[w] = LanesInside<stride>(g, column, w - g.pad[2], count);
  }
  TileVec sums[step];
  for (TileVec& sum : sums) sum = TileZero();
  const int64_t in_row = row * stride - g.pad[1];
  const float* from = job.plane + in_row * g.in[2] + column * stride - g.pad[2];
#pragma GCC unroll 16
  for (int i = 0; i < (step - 1) * stride + size; ++i, from += g.in[2]) {
    if (in_row + i < 0 || in_row + i >= g.in[1]) continue;
#pragma GCC unroll 8
    for (int w = 0; w < size; ++w) {
      const TileVec v = inside ? LoadEvery<stride>(from + w) : LoadEvery(lanes[w], from + w);
#pragma GCC unroll 8
      for (int r = 0; r < step; ++r) {
        const int h = i - r * stride;
        if (h >= 0 && h < size) sums[r] = TileMulAdd(weights[h * size + w], v, sums[r]);
      }
    }
  }
  float* to = job.out + (row - job.begin) * job.out_stride + column;
#pragma GCC unroll 8
  for (int r = 0; r < step; ++r) {
    if (r < rows) Finish(job, sums[r], count, to + r * job.out_stride);
  }
}

template <int size, int stride>
void Rows(const DepthwiseJob& job) {
  const ConvGeometry& g = *job.geometry;
  TileVec weights[size * size];
  for (int i = 0; i < size * size; ++i) weights[i] = TileBroadcast(job.weights + i);
  // Columns from which whole vectors look at existing columns only.
  const int64_t first = (std::max<int64_t>(g.pad[2], 0) + stride - 1) / stride;
  const int64_t reach = (tile_lanes - 1) * stride + size + (stride == 2 ? 1 : 0);
  const int64_t last = std::min((g.in[2] + g.pad[2] - reach) / stride, g.out[2] - tile_lanes);
  for (int64_t row = job.begin; row < job.end; row += depthwise_row_step) {
    const int64_t rows = job.end - row;
    for (int64_t column = 0; column < g.out[2]; column += tile_lanes) {
      if (column >= first && column <= last && g.in[2] + g.pad[2] >= reach) {
        RowsOfColumn<size, stride, true>(job, weights, row, column, rows);
      } else {
        RowsOfColumn<size, stride, false>(job, weights, row, column, rows);
      }
    }
  }
}

void DepthwiseRows(const DepthwiseJob& job) {
  const bool wide = job.geometry->kernel[2] == 5;
  const bool strided = job.geometry->stride[2] == 2;
  if (wide) {
    strided ? Rows<5, 2>(job) : Rows<5, 1>(job);
  } else {
    strided ? Rows<3, 2>(job) : Rows<3, 1>(job);
  }
}

constexpr int any_vectors = 4;

// any_vectors vectors of output columns of one row, from `columns` of them that exist.
// stride 0: any.
template <int stride>
HWY_INLINE void AnyColumns(const DepthwiseJob& job, int64_t depth, int64_t row, int64_t column,
                           int64_t columns, float* to) {
  const ConvGeometry& g = *job.geometry;
  const int64_t step = stride == 0 ? g.stride[2] : stride;
  TileVec sums[any_vectors];
  for (TileVec& sum : sums) sum = TileZero();
  const float* weight = job.weights;
  for (int64_t kd = 0; kd < g.kernel[0]; ++kd) {
    const int64_t d = depth * g.stride[0] - g.pad[0] + kd * g.dilation[0];
    for (int64_t kh = 0; kh < g.kernel[1]; ++kh, weight += g.kernel[2]) {
      const int64_t h = row * g.stride[1] - g.pad[1] + kh * g.dilation[1];
      if (d < 0 || d >= g.in[0] || h < 0 || h >= g.in[1]) continue;
      const float* line = job.plane + (d * g.in[1] + h) * g.in[2];
      for (int64_t kw = 0; kw < g.kernel[2]; ++kw) {
        const int64_t shift = kw * g.dilation[2] - g.pad[2];
        const int64_t first = column * step + shift;
        const TileVec factor = TileBroadcast(weight + kw);
        const int64_t last = first + (any_vectors * tile_lanes - 1) * step + step;
        if (stride != 0 && columns >= any_vectors * tile_lanes && first >= 0 && last < g.in[2]) {
          for (int v = 0; v < any_vectors; ++v) {
            sums[v] = TileMulAdd(
                factor, LoadEvery<stride == 0 ? 1 : stride>(line + first + v * tile_lanes * step),
                sums[v]);
          }
          continue;
        }
        for (int v = 0; v < any_vectors; ++v) {
          const int64_t count = std::clamp<int64_t>(columns - v * tile_lanes, 0, tile_lanes);
          const int64_t at = column + v * tile_lanes;
          if constexpr (stride != 0) {
            const auto lanes = LanesInside<stride>(g, at, shift, count);
            sums[v] = TileMulAdd(factor, LoadEvery(lanes, line + at * step + shift), sums[v]);
          } else {
            float values[tile_lanes] = {};
            for (int64_t i = 0; i < count; ++i) {
              const int64_t w = (at + i) * step + shift;
              if (w >= 0 && w < g.in[2]) values[i] = line[w];
            }
            sums[v] = TileMulAdd(factor, TileLoad(values), sums[v]);
          }
        }
      }
    }
  }
  for (int v = 0; v < any_vectors; ++v) {
    const int64_t count = columns - v * tile_lanes;
    if (count > 0) Finish(job, sums[v], count, to + v * tile_lanes);
  }
}

template <int stride>
void Any(const DepthwiseJob& job) {
  const ConvGeometry& g = *job.geometry;
  for (int64_t row = job.begin; row < job.end; ++row) {
    float* to = job.out + (row - job.begin) * job.out_stride;
    for (int64_t column = 0; column < g.out[2]; column += any_vectors * tile_lanes) {
      const int64_t columns = std::min<int64_t>(any_vectors * tile_lanes, g.out[2] - column);
      AnyColumns<stride>(job, row / g.out[1], row % g.out[1], column, columns, to + column);
    }
  }
}

void DepthwiseAny(const DepthwiseJob& job) {
  switch (job.geometry->stride[2]) {
    case 1: return Any<1>(job);
    case 2: return Any<2>(job);
    default: return Any<0>(job);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(DepthwiseRows);
HWY_EXPORT(DepthwiseAny);

void depthwise_rows(const DepthwiseJob& job) { HWY_DYNAMIC_DISPATCH(DepthwiseRows)(job); }
void depthwise_any(const DepthwiseJob& job) { HWY_DYNAMIC_DISPATCH(DepthwiseAny)(job); }

}  // namespace sardonyx::kernels
#endif
