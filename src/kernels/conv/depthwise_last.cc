#include "kernels/conv/depthwise_last.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise_last.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/conv/lanes-inl.h"
#include "kernels/gemm/microkernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE TileVec Clamp3(TileVec v, TileVec low, TileVec high) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  return hn::Min(high, hn::Max(low, v));  // the second operand wins where one is NaN
#else
  for (int i = 0; i < tile_lanes; ++i) {
    v[i] = v[i] < low[i] ? low[i] : v[i];
    v[i] = v[i] > high[i] ? high[i] : v[i];
  }
  return v;
#endif
}

// A vector of channels, or fewer where they end.
template <bool partial>
struct Channels {
  explicit Channels(int64_t count) : lanes(0, std::min<int64_t>(count, tile_lanes)) {}
  HWY_INLINE TileVec load(const float* p) const {
    if constexpr (partial) return LoadLanes(lanes, p);
    return TileLoad(p);
  }
  HWY_INLINE void store(TileVec v, float* p) const {
    if constexpr (partial) {
      StoreLanes(lanes, v, p);
    } else {
      TileStoreVec(v, p);
    }
  }
  LaneRange lanes;
};

struct Line {
  explicit Line(const DepthwiseLastJob& job)
      : job(job),
        g(*job.geometry),
        channels(g.group),
        front(job.depth * g.stride[0] - g.pad[0]),
        top(job.row * g.stride[1] - g.pad[1]) {}

  // The input line under the kernel's line (d, h); null where it is outside.
  const float* line(int64_t d, int64_t h) const {
    const int64_t depth = front + d * g.dilation[0], row = top + h * g.dilation[1];
    if (depth < 0 || depth >= g.in[0] || row < 0 || row >= g.in[1]) return nullptr;
    return job.image + (depth * g.in[1] + row) * g.in[2] * channels;
  }
  TileVec finish(TileVec sum, TileVec bias) const {
    sum = TileMulAdd(TileBroadcast(&job.alpha), sum, bias);
    return Clamp3(sum, TileBroadcast(&job.low), TileBroadcast(&job.high));
  }
  template <bool partial>
  TileVec bias(const Channels<partial>& some, int64_t c) const {
    if (job.bias == nullptr) return TileZero();
    return TileMulAdd(TileBroadcast(&job.beta), some.load(job.bias + c), TileZero());
  }

  const DepthwiseLastJob& job;
  const ConvGeometry& g;
  int64_t channels;
  int64_t front, top;
};

// `step` neighbouring output pixels. At a border their windows reach beyond the line's columns.
template <int size, int stride, int step, bool border, bool partial>
HWY_INLINE void Pixels(const Line& l, const float* const (&lines)[size], int64_t column,
                       int64_t c) {
  constexpr int reach = (step - 1) * stride + size;
  const Channels<partial> some(l.channels - c);
  const int64_t left = column * stride - l.g.pad[2];
  TileVec sums[step];
#pragma GCC unroll 8
  for (int i = 0; i < step; ++i) sums[i] = TileZero();
#pragma GCC unroll 8
  for (int h = 0; h < size; ++h) {
    if (lines[h] == nullptr) continue;
    const float* from = lines[h] + left * l.channels + c;
    const float* weight = l.job.weights + h * size * l.channels + c;
    TileVec w[size];
#pragma GCC unroll 8
    for (int k = 0; k < size; ++k) w[k] = some.load(weight + k * l.channels);
#pragma GCC unroll 32
    for (int x = 0; x < reach; ++x) {
      if (border && (left + x < 0 || left + x >= l.g.in[2])) continue;
      const TileVec v = some.load(from + x * l.channels);
#pragma GCC unroll 8
      for (int i = 0; i < step; ++i) {
        const int k = x - i * stride;
        if (k >= 0 && k < size) sums[i] = TileMulAdd(w[k], v, sums[i]);
      }
    }
  }
  const TileVec bias = l.bias(some, c);
  float* to = l.job.out + column * l.channels + c;
#pragma GCC unroll 8
  for (int i = 0; i < step; ++i) some.store(l.finish(sums[i], bias), to + i * l.channels);
}

// One output pixel of any window, some channels.
template <bool partial>
HWY_INLINE void AnyPixel(const Line& l, int64_t column, int64_t c) {
  const ConvGeometry& g = l.g;
  const Channels<partial> some(l.channels - c);
  const int64_t left = column * g.stride[2] - g.pad[2];
  TileVec sum = TileZero();
  const float* weight = l.job.weights + c;
  for (int64_t d = 0; d < g.kernel[0]; ++d) {
    for (int64_t h = 0; h < g.kernel[1]; ++h, weight += g.kernel[2] * l.channels) {
      const float* line = l.line(d, h);
      if (line == nullptr) continue;
      for (int64_t w = 0; w < g.kernel[2]; ++w) {
        const int64_t x = left + w * g.dilation[2];
        if (x < 0 || x >= g.in[2]) continue;
        sum = TileMulAdd(some.load(weight + w * l.channels), some.load(line + x * l.channels + c),
                         sum);
      }
    }
  }
  some.store(l.finish(sum, l.bias(some, c)), l.job.out + column * l.channels + c);
}

void AnyPixels(const Line& l, int64_t begin, int64_t end) {
  for (int64_t column = begin; column < end; ++column) {
    int64_t c = 0;
    for (; c + tile_lanes <= l.channels; c += tile_lanes) AnyPixel<false>(l, column, c);
    if (c < l.channels) AnyPixel<true>(l, column, c);
  }
}

template <int size, int stride, int step, bool border>
HWY_INLINE void PixelsOfAllChannels(const Line& l, const float* const (&lines)[size],
                                    int64_t column) {
  int64_t c = 0;
  for (; c + tile_lanes <= l.channels; c += tile_lanes) {
    Pixels<size, stride, step, border, false>(l, lines, column, c);
  }
  if (c < l.channels) Pixels<size, stride, step, border, true>(l, lines, column, c);
}

// Output pixels from `column` to `end`, `step` at a time while there are so many, then fewer.
template <int size, int stride, int step>
HWY_INLINE void PixelsTo(const Line& l, const float* const (&lines)[size], int64_t column,
                         int64_t end) {
  constexpr int reach = (step - 1) * stride + size;
  for (; column + step <= end; column += step) {
    const int64_t left = column * stride - l.g.pad[2];
    if (left >= 0 && left + reach <= l.g.in[2]) {
      PixelsOfAllChannels<size, stride, step, false>(l, lines, column);
    } else {
      PixelsOfAllChannels<size, stride, step, true>(l, lines, column);
    }
  }
  if constexpr (step > 1) PixelsTo<size, stride, (step + 1) / 2>(l, lines, column, end);
}

template <int size, int stride>
void LineOf(const Line& l) {
  const float* lines[size];
  for (int h = 0; h < size; ++h) lines[h] = l.line(0, h);
  // The widths of images are often multiples of seven.
  constexpr int step = tile_lanes == 16 ? 7 : 4;
  PixelsTo<size, stride, step>(l, lines, 0, l.g.out[2]);
}

template <int size>
bool LineOfSize(const Line& l) {
  if (l.g.kernel[1] != size || l.g.kernel[2] != size) return false;
  if (l.g.stride[2] == 1) return LineOf<size, 1>(l), true;
  if (l.g.stride[2] == 2) return LineOf<size, 2>(l), true;
  return false;
}

void DepthwiseLast(const DepthwiseLastJob& job) {
  const Line l(job);
  const bool flat = l.g.kernel[0] == 1 && l.front == job.depth && l.g.in[0] == l.g.out[0];
  const bool plain = flat && l.g.dilation[2] == 1 && l.g.in[0] == 1;
  if (plain && (LineOfSize<3>(l) || LineOfSize<5>(l) || LineOfSize<7>(l))) return;
  AnyPixels(l, 0, l.g.out[2]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(DepthwiseLast);
void depthwise_last_line(const DepthwiseLastJob& job) { HWY_DYNAMIC_DISPATCH(DepthwiseLast)(job); }

}  // namespace sardonyx::kernels
#endif
