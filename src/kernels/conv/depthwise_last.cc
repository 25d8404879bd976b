#include "kernels/conv/depthwise_last.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise_last.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/conv/lanes-inl.h"
#include "kernels/gemm/blocking.h"
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

HWY_INLINE TileVec TileAdd(TileVec a, TileVec b) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  return hn::Add(a, b);
#else
  return a + b;
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

// What is computed of one line at once: some pixels, some channels.
struct Piece {
  int64_t begin, end;    // pixels
  int64_t first, last;   // channels
  float* out;            // of the first pixel and channel
  int64_t out_distance;  // floats between pixels
};

struct Line {
  Line(const DepthwiseLastJob& job, int64_t index)
      : job(job),
        g(*job.geometry),
        channels(g.group),
        front(job.depth * g.stride[0] - g.pad[0]),
        top((job.row + index) * g.stride[1] - g.pad[1]) {}

  // The input line under the kernel's line (d, h); null where it is outside.
  const float* line(int64_t d, int64_t h) const {
    const int64_t depth = front + d * g.dilation[0], row = top + h * g.dilation[1];
    if (depth < 0 || depth >= g.in[0] || row < 0 || row >= g.in[1]) return nullptr;
    const int64_t at = job.held == 0 ? depth * g.in[1] + row : row % job.held;
    return job.image + at * g.in[2] * channels;
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

// In a register from here on: the compiler does not read the memory again for each use.
HWY_INLINE TileVec Held(TileVec v) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// The sums of `step` neighbouring output pixels of the 16 (or so) channels at `from`. Of the
// window's columns those whose bit is set in `inside` lie in the image; where not `border`, all do.
template <int size, int stride, int step, bool border, bool partial>
HWY_INLINE void SumPixels(const Channels<partial>& some, const float* const (&from)[size],
                          const float* weight, int64_t channels, uint32_t inside,
                          TileVec (&sums)[step]) {
  constexpr int reach = (step - 1) * stride + size;
#pragma GCC unroll 8
  for (int i = 0; i < step; ++i) sums[i] = TileZero();
#pragma GCC unroll 8
  for (int h = 0; h < size; ++h, weight += size * channels) {
    if (from[h] == nullptr) continue;
    TileVec w[size];
#pragma GCC unroll 8
    for (int k = 0; k < size; ++k) w[k] = Held(some.load(weight + k * channels));
#pragma GCC unroll 32
    for (int x = 0; x < reach; ++x) {
      if (border && (inside & 1u << x) == 0) continue;
      const TileVec v = Held(some.load(from[h] + x * channels));
#pragma GCC unroll 8
      for (int i = 0; i < step; ++i) {
        const int k = x - i * stride;
        if (k >= 0 && k < size) sums[i] = TileMulAdd(w[k], v, sums[i]);
      }
    }
  }
}

// One output pixel of any window, some channels.
template <bool partial>
HWY_INLINE void AnyPixel(const Line& l, const Piece& piece, int64_t column, int64_t c) {
  const ConvGeometry& g = l.g;
  const Channels<partial> some(piece.last - c);
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
  some.store(l.finish(sum, l.bias(some, c)),
             piece.out + (column - piece.begin) * piece.out_distance + c - piece.first);
}

void AnyPixels(const Line& l, const Piece& piece) {
  for (int64_t column = piece.begin; column < piece.end; ++column) {
    int64_t c = piece.first;
    for (; c + tile_lanes <= piece.last; c += tile_lanes) AnyPixel<false>(l, piece, column, c);
    if (c < piece.last) AnyPixel<true>(l, piece, column, c);
  }
}

// `step` neighbouring output pixels, the piece's channels. At a border their windows reach beyond
// the line's columns.
template <int size, int stride, int step, bool border>
HWY_INLINE void Pixels(const Line& l, const float* const (&lines)[size], const Piece& piece,
                       int64_t column) {
  // What the stores below might change, for all that the compiler knows, is read once.
  const int64_t channels = l.channels, distance = piece.out_distance;
  const int64_t left = column * stride - l.g.pad[2];
  uint32_t inside = 0;
  for (int x = 0; border && x < (step - 1) * stride + size; ++x) {
    if (left + x >= 0 && left + x < l.g.in[2]) inside |= 1u << x;
  }
  const TileVec alpha = TileBroadcast(&l.job.alpha), beta = TileBroadcast(&l.job.beta);
  const TileVec low = TileBroadcast(&l.job.low), high = TileBroadcast(&l.job.high);
  const float* weight = l.job.weights + piece.first;
  const float* bias = l.job.bias == nullptr ? nullptr : l.job.bias + piece.first;
  float* to = piece.out + (column - piece.begin) * distance;
  const float* from[size];
  for (int h = 0; h < size; ++h)
    from[h] = lines[h] == nullptr ? nullptr : lines[h] + left * channels + piece.first;
  const auto vector = [&](const auto& some) HWY_ATTR {
    TileVec sums[step];
    SumPixels<size, stride, step, border>(some, from, weight, channels, inside, sums);
    const TileVec offset =
        bias == nullptr ? TileZero() : TileMulAdd(beta, some.load(bias), TileZero());
#pragma GCC unroll 8
    for (int i = 0; i < step; ++i)
      some.store(Clamp3(TileMulAdd(alpha, sums[i], offset), low, high), to + i * distance);
  };
  int64_t count = piece.last - piece.first;
  for (; count >= tile_lanes; count -= tile_lanes) {
    vector(Channels<false>(tile_lanes));
    for (int h = 0; h < size; ++h) from[h] = from[h] == nullptr ? nullptr : from[h] + tile_lanes;
    weight += tile_lanes;
    to += tile_lanes;
    if (bias != nullptr) bias += tile_lanes;
  }
  if (count > 0) vector(Channels<true>(count));
}

// Output pixels from `column` on, `step` at a time while there are so many, then fewer.
template <int size, int stride, int step>
HWY_INLINE void PixelsTo(const Line& l, const float* const (&lines)[size], const Piece& piece,
                         int64_t column) {
  constexpr int reach = (step - 1) * stride + size;
  for (; column + step <= piece.end; column += step) {
    const int64_t left = column * stride - l.g.pad[2];
    if (left >= 0 && left + reach <= l.g.in[2]) {
      Pixels<size, stride, step, false>(l, lines, piece, column);
    } else {
      Pixels<size, stride, step, true>(l, lines, piece, column);
    }
  }
  if constexpr (step > 1) PixelsTo<size, stride, (step + 1) / 2>(l, lines, piece, column);
}

constexpr int most_step = tile_lanes == 16 ? depthwise_step : 4;

template <int size, int stride>
void PieceOf(const Line& l, const Piece& piece) {
  const float* lines[size];
  for (int h = 0; h < size; ++h) lines[h] = l.line(0, h);
  PixelsTo<size, stride, most_step>(l, lines, piece, piece.begin);
}

using PieceKernel = void (*)(const Line&, const Piece&);

template <int size>
PieceKernel KernelOfSize(const ConvGeometry& g) {
  if (g.kernel[1] != size || g.kernel[2] != size) return nullptr;
  return g.stride[2] == 1 ? PieceOf<size, 1> : g.stride[2] == 2 ? PieceOf<size, 2> : nullptr;
}

PieceKernel KernelFor(const ConvGeometry& g) {
  const bool flat = g.kernel[0] == 1 && g.in[0] == 1 && g.out[0] == 1 && g.pad[0] == 0;
  if (flat && g.dilation[2] == 1) {
    if (const PieceKernel kernel = KernelOfSize<3>(g)) return kernel;
    if (const PieceKernel kernel = KernelOfSize<5>(g)) return kernel;
    if (const PieceKernel kernel = KernelOfSize<7>(g)) return kernel;
  }
  return AnyPixels;
}

void StorePiece(const DepthwiseLastJob& job, int64_t line, const Piece& piece) {
  const ConvGeometry& g = *job.geometry;
  const int64_t at = (line * g.out[2] + piece.begin) * g.group + piece.first;
  TileStore store = *job.store;
  store.sums = piece.out;
  store.sums_stride = piece.out_distance;
  store.rows = piece.end - piece.begin;
  store.columns = piece.last - piece.first;
  store.c += at;
  if (store.bias != nullptr) store.bias += piece.first;
  if (store.residual != nullptr) store.residual += at;
  tile_kernels().store(store);
}

// Adds the outputs of `vectors` vectors of channels side by side, from c on, to their sums.
template <int vectors, bool partial>
HWY_INLINE void SumChannels(const Channels<partial>& some, const float* from, int64_t distance,
                            int64_t pixels, float* sums) {
  TileVec sum[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) sum[v] = TileZero();
  for (int64_t i = 0; i < pixels; ++i, from += distance) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sum[v] = TileAdd(sum[v], some.load(from + v * tile_lanes));
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    float* to = sums + v * tile_lanes;
    some.store(TileAdd(some.load(to), sum[v]), to);
  }
}

// Adds up the outputs of a piece, which begin at `from`.
void SumPiece(const DepthwiseLastJob& job, const Piece& piece, const float* from) {
  const int64_t distance = job.geometry->group, pixels = piece.end - piece.begin;
  float* sums = job.sums + piece.first;
  int64_t count = piece.last - piece.first;
  for (; count >= 4 * tile_lanes; count -= 4 * tile_lanes) {
    SumChannels<4>(Channels<false>(tile_lanes), from, distance, pixels, sums);
    from += 4 * tile_lanes;
    sums += 4 * tile_lanes;
  }
  for (; count >= tile_lanes; count -= tile_lanes) {
    SumChannels<1>(Channels<false>(tile_lanes), from, distance, pixels, sums);
    from += tile_lanes;
    sums += tile_lanes;
  }
  if (count > 0) SumChannels<1>(Channels<true>(count), from, distance, pixels, sums);
}

void DepthwiseLast(const DepthwiseLastJob& job) {
  const ConvGeometry& g = *job.geometry;
  const PieceKernel kernel = KernelFor(g);
  const int64_t count = job.end_channel - job.first_channel;
  const int64_t distance = round_up(count, tile_lanes);
  const int64_t columns = depthwise_columns_at_once(g, count);
  for (int64_t begin = 0; begin < g.out[2]; begin += columns) {
    for (int64_t line = 0; line < job.lines; ++line) {
      Piece piece{begin,
                  std::min(begin + columns, g.out[2]),
                  job.first_channel,
                  job.end_channel,
                  job.space,
                  distance};
      if (job.store == nullptr) {
        piece.out = job.out + (line * g.out[2] + begin) * g.group + job.first_channel;
        piece.out_distance = g.group;
      }
      kernel(Line(job, line), piece);
      if (job.store != nullptr) StorePiece(job, line, piece);
      if (job.sums != nullptr) {
        const float* stored = job.store == nullptr ? job.out : job.store->c;
        SumPiece(job, piece, stored + (line * g.out[2] + begin) * g.group + job.first_channel);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(DepthwiseLast);
void depthwise_last_lines(const DepthwiseLastJob& job) { HWY_DYNAMIC_DISPATCH(DepthwiseLast)(job); }

}  // namespace sardonyx::kernels
#endif
