#include "kernels/conv/depthwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/conv/lanes-inl.h"
#include "kernels/gemm/blocking.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE TileVec TileSet(float value) { return TileBroadcast(&value); }

// min(max(v, low), high); NaN stays NaN.
HWY_INLINE TileVec TileClamp(TileVec v, TileVec low, TileVec high) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  return math::MinOrNaN(high, math::MaxOrNaN(low, v));
#else
  v = v < low ? low : v;
  return v > high ? high : v;
#endif
}

// What becomes of each sum.
struct Finish {
  explicit Finish(const DepthwiseJob& job)
      : alpha(TileSet(job.alpha)),
        bias(TileSet(job.bias)),
        low(TileSet(job.low)),
        high(TileSet(job.high)) {}
  HWY_INLINE TileVec operator()(TileVec sum) const {
    return TileClamp(TileMulAdd(alpha, sum, bias), low, high);
  }
  TileVec alpha, bias, low, high;
};

// The output lanes whose input column column * stride + shift is inside the row. known_stride 0:
// any.
template <int known_stride>
HWY_INLINE LanePair<known_stride> LanesInside(const ConvGeometry& g, int64_t column, int64_t shift,
                                              int64_t count) {
  const int64_t stride = known_stride == 0 ? g.stride[2] : known_stride;
  const int64_t first = column * stride + shift;
  const int64_t begin = first < 0 ? (-first + stride - 1) / stride : 0;
  const int64_t room = g.in[2] - first;
  const int64_t end = room <= 0 ? 0 : std::min(count, (room + stride - 1) / stride);
  return LanePair<known_stride>(std::min(begin, end), end);
}

// The inputs of one vector of output columns in one row, for each of the kernel's columns.
template <int size, int stride, bool inside>
HWY_INLINE void LoadRow(const float* from, const LanePair<stride> (&lanes)[size],
                        TileVec (&row)[size]) {
  if constexpr (inside && stride == 2) {
#pragma GCC unroll 8
    for (int w = 0; w < size; w += 2) {
      const TileVec low = TileLoad(from + w), high = TileLoad(from + w + tile_lanes);
      row[w] = EvenLanes(low, high);
      if (w + 1 < size) row[w + 1] = OddLanes(low, high);
    }
  } else {
#pragma GCC unroll 8
    for (int w = 0; w < size; ++w) {
      row[w] = inside ? LoadEvery<stride>(from + w) : LoadEvery(lanes[w], from + w);
    }
  }
}

// One vector of output columns in all rows. Inside: all columns of the input that it looks at
// exist.
template <int size, int stride, bool inside>
void RowsOfColumn(const DepthwiseJob& job, int64_t begin, int64_t end, int64_t column) {
  constexpr int step = static_cast<int>(depthwise_row_step);
  constexpr int reach = (step - 1) * stride + size;  // rows of input
  const ConvGeometry& g = *job.geometry;
  TileVec weights[size * size];
#pragma GCC unroll 32
  for (int i = 0; i < size * size; ++i) weights[i] = TileBroadcast(job.weights + i);
  const Finish finish(job);
  const int64_t count = std::min<int64_t>(tile_lanes, g.out[2] - column);
  const LaneRange stored(0, count);
  LanePair<stride> lanes[size];
  if constexpr (!inside) {
    for (int w = 0; w < size; ++w) lanes[w] = LanesInside<stride>(g, column, w - g.pad[2], count);
  }
  for (int64_t row = begin; row < end; row += step) {
    TileVec sums[step];
#pragma GCC unroll 8
    for (int r = 0; r < step; ++r) sums[r] = TileZero();
    const int64_t in_row = row * stride - g.pad[1];
    const float* from = job.plane + in_row * g.in[2] + column * stride - g.pad[2];
    const auto add_row = [&](int i) HWY_ATTR {
      TileVec x[size];
      LoadRow<size, stride, inside>(from + i * g.in[2], lanes, x);
#pragma GCC unroll 8
      for (int r = 0; r < step; ++r) {
        const int h = i - r * stride;
        if (h < 0 || h >= size) continue;
#pragma GCC unroll 8
        for (int w = 0; w < size; ++w) sums[r] = TileMulAdd(weights[h * size + w], x[w], sums[r]);
      }
    };
    const int64_t first = std::max<int64_t>(0, -in_row);
    const int64_t last = std::min<int64_t>(reach, g.in[1] - in_row);
    // Columns at the border and the portable target do without the code for this.
    if (inside && !is_portable && first == 0 && last == reach) {
#pragma GCC unroll 16
      for (int i = 0; i < reach; ++i) add_row(i);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < reach; ++i) {
        if (i >= first && i < last) add_row(i);
      }
    }
    float* to = job.out + (row - job.begin) * job.out_stride + column;
#pragma GCC unroll 8
    for (int r = 0; r < step; ++r, to += job.out_stride) {
      if (row + r >= end) break;
      if (inside) {
        TileStoreVec(finish(sums[r]), to);
      } else {
        StoreLanes(stored, finish(sums[r]), to);
      }
    }
  }
}

template <int size, int stride>
void Rows(const DepthwiseJob& job) {
  const ConvGeometry& g = *job.geometry;
  // Columns from which whole vectors look at existing columns only.
  const int64_t first = (std::max<int64_t>(g.pad[2], 0) + stride - 1) / stride;
  const int64_t reach = (tile_lanes - 1) * stride + size + (stride == 2 ? 1 : 0);
  const int64_t room = g.in[2] + g.pad[2] - reach;
  const int64_t last = room < 0 ? -1 : std::min(room / stride, g.out[2] - tile_lanes);
  // Rows that stay in the first-level cache while the columns go by.
  constexpr int64_t near_floats = 6 << 10;
  const int64_t near = std::max<int64_t>(
      near_floats / (std::max<int64_t>(g.in[2], 1) * stride * depthwise_row_step), 1);
  for (int64_t row = job.begin; row < job.end; row += near * depthwise_row_step) {
    const int64_t end = std::min(row + near * depthwise_row_step, job.end);
    for (int64_t column = 0; column < g.out[2]; column += tile_lanes) {
      if (column >= first && column <= last) {
        RowsOfColumn<size, stride, true>(job, row, end, column);
      } else {
        RowsOfColumn<size, stride, false>(job, row, end, column);
      }
    }
  }
}

template <int size>
void RowsOfSize(const DepthwiseJob& job) {
  job.geometry->stride[2] == 2 ? Rows<size, 2>(job) : Rows<size, 1>(job);
}

constexpr int any_vectors = 4;

// any_vectors vectors of output columns of one row, from `columns` of them that exist.
// stride 0: any.
template <int stride>
HWY_INLINE void AnyColumns(const DepthwiseJob& job, int64_t depth, int64_t row, int64_t column,
                           int64_t columns, float* to) {
  const ConvGeometry& g = *job.geometry;
  const int64_t step = stride == 0 ? g.stride[2] : stride;
  const int vectors = static_cast<int>((columns + tile_lanes - 1) / tile_lanes);
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
        for (int v = 0; v < vectors; ++v) {
          const int64_t count = std::min<int64_t>(columns - v * tile_lanes, tile_lanes);
          const int64_t at = first + v * tile_lanes * step;
          const bool inside = count == tile_lanes && at >= 0 && at + tile_lanes * step <= g.in[2];
          if (stride != 0 && inside) {
            sums[v] =
                TileMulAdd(factor, LoadEvery < stride == 0 ? 1 : stride > (line + at), sums[v]);
          } else {
            const auto lanes = LanesInside<stride>(g, column + v * tile_lanes, shift, count);
            sums[v] = TileMulAdd(factor, LoadEvery(lanes, line + at, step), sums[v]);
          }
        }
      }
    }
  }
  const Finish finish(job);
  for (int v = 0; v < vectors; ++v) {
    const int64_t count = std::min<int64_t>(columns - v * tile_lanes, tile_lanes);
    StoreLanes(LaneRange(0, count), finish(sums[v]), to + v * tile_lanes);
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

// The input under `columns` columns of output, from `column` on, in one line of the image: one
// phase (every stride-th pixel) after the other, zeros where there is no pixel.
void LayPhases(const ConvGeometry& g, const PhaseBlock& block, const float* line, int64_t column,
               int64_t columns, float* to) {
  const int64_t stride = g.stride[2];
  const int64_t length = round_up(columns, tile_lanes) + block.reach;
  for (int64_t phase = 0; phase < block.phases; ++phase, to += block.phase_floats) {
    const int64_t first = column * stride + phase - g.pad[2];
    const int64_t begin = std::min(length, first < 0 ? divide_up(-first, stride) : 0);
    const int64_t end =
        std::clamp(g.in[2] > first ? divide_up(g.in[2] - first, stride) : 0, begin, length);
    std::fill(to, to + begin, 0.0f);
    std::fill(to + end, to + length, 0.0f);
    const float* from = line + first;
    switch (stride) {
      case 1: std::copy(from + begin, from + end, to + begin); break;
      case 2:
        for (int64_t i = begin; i < end; ++i) to[i] = from[i * 2];
        break;
      case 3:
        for (int64_t i = begin; i < end; ++i) to[i] = from[i * 3];
        break;
      case 4:
        for (int64_t i = begin; i < end; ++i) to[i] = from[i * 4];
        break;
      default:
        for (int64_t i = begin; i < end; ++i) to[i] = from[i * stride];
    }
  }
}

// Adds the taps of one line of the kernel to `vectors` vectors of sums.
template <int vectors>
HWY_INLINE void AddTaps(const ConvGeometry& g, const PhaseBlock& block, const float* phases,
                        const float* weights, float* to) {
  TileVec sums[vectors];
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) sums[v] = TileLoad(to + v * tile_lanes);
  const int64_t stride = g.stride[2];
  int64_t phase = 0, at = 0;  // of the tap: its place is at * stride + phase
  const int64_t phase_step = g.dilation[2] % stride, at_step = g.dilation[2] / stride;
  for (int64_t tap = 0; tap < g.kernel[2]; ++tap) {
    const float* from = phases + phase * block.phase_floats + at;
    const TileVec weight = TileBroadcast(weights + tap);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
      sums[v] = TileMulAdd(weight, TileLoad(from + v * tile_lanes), sums[v]);
    phase += phase_step, at += at_step;
    if (phase >= stride) phase -= stride, ++at;
  }
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) TileStoreVec(sums[v], to + v * tile_lanes);
}

void AddLine(const ConvGeometry& g, const PhaseBlock& block, const float* phases,
             const float* weights, int64_t columns, float* sums) {
  constexpr int most = 8;  // chains of sums that hide the latency of a multiply-add
  int64_t column = 0;
  for (; column + (most - 1) * tile_lanes < columns; column += most * tile_lanes)
    AddTaps<most>(g, block, phases + column, weights, sums + column);
  for (; column + tile_lanes < columns; column += 2 * tile_lanes)
    AddTaps<2>(g, block, phases + column, weights, sums + column);
  if (column < columns) AddTaps<1>(g, block, phases + column, weights, sums + column);
}

// Each line of the input is laid out by phases before its taps are added, a block of columns at a
// time: every load is then a whole vector.
void Phases(const DepthwiseJob& job) {
  const ConvGeometry& g = *job.geometry;
  const PhaseBlock block(g);
  float *sums = job.phases, *phases = sums + block.sum_floats();
  const Finish finish(job);
  for (int64_t out_row = job.begin; out_row < job.end; ++out_row) {
    const int64_t front = out_row / g.out[1] * g.stride[0] - g.pad[0];
    const int64_t top = out_row % g.out[1] * g.stride[1] - g.pad[1];
    float* to = job.out + (out_row - job.begin) * job.out_stride;
    for (int64_t column = 0; column < g.out[2]; column += block.columns) {
      const int64_t columns = std::min(block.columns, g.out[2] - column);
      std::fill(sums, sums + round_up(columns, tile_lanes), 0.0f);
      const float* weights = job.weights;
      for (int64_t kd = 0; kd < g.kernel[0]; ++kd) {
        for (int64_t kh = 0; kh < g.kernel[1]; ++kh, weights += g.kernel[2]) {
          const int64_t d = front + kd * g.dilation[0], h = top + kh * g.dilation[1];
          if (d < 0 || d >= g.in[0] || h < 0 || h >= g.in[1]) continue;
          const float* line = job.plane + (d * g.in[1] + h) * g.in[2];
          LayPhases(g, block, line, column, columns, phases);
          AddLine(g, block, phases, weights, columns, sums);
        }
      }
      for (int64_t i = 0; i < columns; i += tile_lanes) {
        const TileVec y = finish(TileLoad(sums + i));
        if (columns - i >= tile_lanes)
          TileStoreVec(y, to + column + i);
        else
          StoreLanes(LaneRange(0, columns - i), y, to + column + i);
      }
    }
  }
}

void DepthwiseRows(const DepthwiseJob& job) {
  const ConvGeometry& g = *job.geometry;
  if (g.kernel[2] == 3) return RowsOfSize<3>(job);
  if constexpr (is_portable) {
    return g.stride[2] == 2 ? Any<2>(job) : Any<1>(job);
  } else {
    g.kernel[2] == 5 ? RowsOfSize<5>(job) : RowsOfSize<7>(job);
  }
}

void DepthwiseAny(const DepthwiseJob& job) {
  if (PhaseBlock::pays(*job.geometry)) return Phases(job);
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
