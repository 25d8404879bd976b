#include "kernels/conv/depthwise_nhwc.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise_nhwc.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/conv/lanes-inl.h"
#include "kernels/gemm/blocking.h"
#include "kernels/gemm/microkernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE TileVec Clamp3(TileVec v, TileVec low, TileVec high) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  return math::MinOrNaN(high, math::MaxOrNaN(low, v));
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

// What is computed of a line, or of two, at once: some pixels, some channels.
struct Piece {
  int64_t begin, end;    // pixels
  int64_t first, last;   // channels
  float* out;            // of the first pixel and channel
  int64_t out_distance;  // floats between pixels
  int64_t out_line;      // and between lines
};

struct Line {
  Line(const DepthwiseNhwcJob& job, int64_t index)
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

  const DepthwiseNhwcJob& job;
  const ConvGeometry& g;
  int64_t channels;
  int64_t front, top;
};

// In a register from here on: the compiler does not read the memory again for each use.
HWY_INLINE TileVec Held(TileVec v) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  asm("" : "+v"(v.raw));
#elif HWY_TARGET == HWY_NEON
  asm("" : "+w"(v.raw));
#endif
  return v;
}

constexpr int max_step = is_portable ? 2 : has_32_registers ? depthwise_step : 4;

// Which of the columns under a few neighbouring windows lie outside the image: half a window, as
// usual pads have it, or whatever a mask says.
constexpr bool knows_usual_pads = !is_portable;
enum class Border : uint8_t { none, left, right, both, any };

template <int size, int reach, Border border>
constexpr bool IsOutside(int x) {
  constexpr bool left = border == Border::left || border == Border::both;
  constexpr bool right = border == Border::right || border == Border::both;
  return (left && x < size / 2) || (right && x >= reach - size / 2);
}

// The columns inside, as a mask.
template <int size, int reach, Border border>
constexpr uint32_t InsideOf() {
  uint32_t inside = 0;
  for (int x = 0; x < reach; ++x) inside |= IsOutside<size, reach, border>(x) ? 0 : 1u << x;
  return inside;
}

// A window's columns under some neighbouring output pixels: those whose bit is set in `inside` lie
// in the image, where `border` does not tell.
template <int size, int stride, int step, Border border, bool partial>
struct Columns {
  static constexpr int reach = (step - 1) * stride + size;
  HWY_INLINE bool skips(int x) const {
    if (border == Border::any) return (inside & 1u << x) == 0;
    return IsOutside<size, reach, border>(x);
  }
  HWY_INLINE void weights(const float* at, TileVec (&w)[size]) const {
#pragma GCC unroll 8
    for (int k = 0; k < size; ++k) w[k] = Held(some.load(at + k * channels));
  }
  // The vector above column x times its weight, on top of the sum of each pixel that it belongs to.
  HWY_INLINE void add(int x, TileVec v, const TileVec (&w)[size], TileVec (&sums)[step]) const {
#pragma GCC unroll 8
    for (int i = 0; i < step; ++i) {
      const int k = x - i * stride;
      if (k >= 0 && k < size) sums[i] = TileMulAdd(w[k], v, sums[i]);
    }
  }
  const Channels<partial>& some;
  int64_t channels;
  uint32_t inside;
};

// On top of `sums`: those of `step` neighbouring output pixels, of the 16 (or so) channels at
// `from`. The code of one line serves for all: at most seven times would be much of it.
template <int size, int stride, int step, Border border, bool partial>
HWY_INLINE void SumPixels(const Columns<size, stride, step, border, partial>& columns,
                          const float* const (&from)[size], const float* weight,
                          TileVec (&sums)[1][step]) {
#pragma GCC unroll 1
  for (int y = 0; y < size; ++y, weight += size * columns.channels) {
    if (from[y] == nullptr) continue;
    TileVec w[size];
    columns.weights(weight, w);
#pragma GCC unroll 32
    for (int x = 0; x < columns.reach; ++x) {
      if (columns.skips(x)) continue;
      columns.add(x, Held(columns.some.load(from[y] + x * columns.channels)), w, sums[0]);
    }
  }
}

// The same of two lines one below the other, for which lines of input and weights are read once.
template <int size, int step, Border border, bool partial>
HWY_INLINE void SumPixels(const Columns<size, 1, step, border, partial>& columns,
                          const float* const (&from)[size + 1], const float* weight,
                          TileVec (&sums)[2][step]) {
  TileVec w[size][size];
#pragma GCC unroll 8
  for (int y = 0; y <= size; ++y, weight += size * columns.channels) {
    if (y < size) columns.weights(weight, w[y < size ? y : 0]);
    if (from[y] == nullptr) continue;
#pragma GCC unroll 32
    for (int x = 0; x < columns.reach; ++x) {
      if (columns.skips(x)) continue;
      const TileVec v = Held(columns.some.load(from[y] + x * columns.channels));
      if (y < size) columns.add(x, v, w[y < size ? y : 0], sums[0]);
      if (y > 0) columns.add(x, v, w[y > 0 ? y - 1 : 0], sums[1]);
    }
  }
}

// Adds `taps` neighbouring taps to the sums of `step` neighbouring pixels.
template <int taps, int step, bool partial>
HWY_INLINE void AddTaps(const Columns<taps, 1, step, Border::none, partial>& columns,
                        const float* weight, const float* from, TileVec (&sums)[step]) {
  TileVec w[taps];
  columns.weights(weight, w);
#pragma GCC unroll 16
  for (int x = 0; x < columns.reach; ++x)
    columns.add(x, Held(columns.some.load(from + x * columns.channels)), w, sums);
}

// `step` neighbouring output pixels of any window, a vector of channels or less.
template <int step, bool partial>
HWY_INLINE void AnyPixels(const Line& l, const Piece& piece, int64_t column, int64_t c) {
  const ConvGeometry& g = l.g;
  const Channels<partial> some(piece.last - c);
  const int64_t channels = l.channels, width = g.in[2], stride = g.stride[2],
                dilation = g.dilation[2], taps = g.kernel[2], distance = stride * channels;
  const int64_t left = column * stride - g.pad[2];
  const Columns<3, 1, step, Border::none, partial> three{some, channels, 0};
  const Columns<4, 1, step, Border::none, partial> four{some, channels, 0};
  const bool side_by_side = !is_portable && step > 1 && stride == 1 && dilation == 1;
  TileVec sums[step];
#pragma GCC unroll 8
  for (int i = 0; i < step; ++i) sums[i] = TileZero();
  const float* weight = l.job.weights + c;
  for (int64_t d = 0; d < g.kernel[0]; ++d) {
    for (int64_t h = 0; h < g.kernel[1]; ++h) {
      const float* line = l.line(d, h);
      if (line == nullptr) {
        weight += taps * channels;
        continue;
      }
      line += c;
      for (int64_t w = 0, x = left; w < taps;) {
        // Several taps at once read a column once for all pixels that it belongs to.
        const int64_t rest = taps - w, at_once = rest == 3 || rest == 6 ? 3 : 4;
        if (side_by_side && at_once <= rest && x >= 0 && x + step - 1 + at_once <= width) {
          if (at_once == 3) {
            AddTaps(three, weight, line + x * channels, sums);
          } else {
            AddTaps(four, weight, line + x * channels, sums);
          }
          w += at_once;
          x += at_once;
          weight += at_once * channels;
          continue;
        }
        const TileVec v = some.load(weight);
        if (x >= 0 && x + (step - 1) * stride < width) {
          const float* from = line + x * channels;
#pragma GCC unroll 8
          for (int i = 0; i < step; ++i)
            sums[i] = TileMulAdd(v, some.load(from + i * distance), sums[i]);
        } else if (x + (step - 1) * stride >= 0 && x < width) {
#pragma GCC unroll 8
          for (int i = 0; i < step; ++i) {
            const int64_t at = x + i * stride;
            if (at >= 0 && at < width)
              sums[i] = TileMulAdd(v, some.load(line + at * channels), sums[i]);
          }
        }
        ++w;
        x += dilation;
        weight += channels;
      }
    }
  }
  const TileVec bias = l.bias(some, c);
  float* to = piece.out + (column - piece.begin) * piece.out_distance + c - piece.first;
#pragma GCC unroll 8
  for (int i = 0; i < step; ++i) some.store(l.finish(sums[i], bias), to + i * piece.out_distance);
}

// All pixels of a piece, a vector of channels or less: its weights stay near.
template <bool partial>
void AnyLine(const Line& l, const Piece& piece, int64_t c) {
  constexpr int step = is_portable ? 2 : depthwise_step;
  int64_t column = piece.begin;
  if (piece.end - column >= step) {
    for (;; column = std::min(column + step, piece.end - step)) {
      AnyPixels<step, partial>(l, piece, column, c);
      if (column + step == piece.end) return;
    }
  }
  for (; column < piece.end; ++column) AnyPixels<1, partial>(l, piece, column, c);
}

void AnyPiece(const Line& l, const Piece& piece) {
  int64_t c = piece.first;
  for (; c + tile_lanes <= piece.last; c += tile_lanes) AnyLine<false>(l, piece, c);
  if (c < piece.last) AnyLine<true>(l, piece, c);
}

// `step` neighbouring pixels of two lines, of a window that is a column: a line of the input is
// read once for both.
template <int step, bool partial>
HWY_INLINE void ColumnPixels(const Line& l, const Piece& piece, int64_t column, int64_t c) {
  const ConvGeometry& g = l.g;
  const Channels<partial> some(piece.last - c);
  TileVec sums[2][step], weight = TileZero();
#pragma GCC unroll 8
  for (int i = 0; i < step; ++i) sums[0][i] = sums[1][i] = TileZero();
  for (int64_t h = 0; h <= g.kernel[1]; ++h) {
    const TileVec above = weight;  // the second line's
    if (h < g.kernel[1]) weight = some.load(l.job.weights + h * l.channels + c);
    const float* from = l.line(0, h);
    if (from == nullptr) continue;
    from += column * l.channels + c;
#pragma GCC unroll 8
    for (int i = 0; i < step; ++i) {
      const TileVec v = Held(some.load(from + i * l.channels));
      if (h < g.kernel[1]) sums[0][i] = TileMulAdd(weight, v, sums[0][i]);
      if (h > 0) sums[1][i] = TileMulAdd(above, v, sums[1][i]);
    }
  }
  const TileVec bias = l.bias(some, c);
  float* to = piece.out + (column - piece.begin) * piece.out_distance + c - piece.first;
#pragma GCC unroll 8
  for (int i = 0; i < step; ++i) {
    some.store(l.finish(sums[0][i], bias), to + i * piece.out_distance);
    some.store(l.finish(sums[1][i], bias), to + piece.out_line + i * piece.out_distance);
  }
}

template <bool partial>
void ColumnLines(const Line& l, const Piece& piece, int64_t c) {
  int64_t column = piece.begin;
  if (piece.end - column >= max_step) {
    for (;; column = std::min(column + max_step, piece.end - max_step)) {
      ColumnPixels<max_step, partial>(l, piece, column, c);
      if (column + max_step == piece.end) return;
    }
  }
  for (; column < piece.end; ++column) ColumnPixels<1, partial>(l, piece, column, c);
}

void ColumnPair(const Line& l, const Line&, const Piece& piece) {
  int64_t c = piece.first;
  for (; c + tile_lanes <= piece.last; c += tile_lanes) ColumnLines<false>(l, piece, c);
  if (c < piece.last) ColumnLines<true>(l, piece, c);
}

// The sums' way to the output. Where they are not scaled the bias is there before them, and what
// would change nothing is left out.
struct Finish {
  explicit Finish(const DepthwiseNhwcJob& job)
      : alpha(TileBroadcast(&job.alpha)),
        beta(TileBroadcast(&job.beta)),
        low(TileBroadcast(&job.low)),
        high(TileBroadcast(&job.high)),
        scales(job.alpha != 1),
        clips(job.low != -std::numeric_limits<float>::infinity() ||
              job.high != std::numeric_limits<float>::infinity()) {}

  template <int step>
  HWY_INLINE void operator()(TileVec (&sums)[step], TileVec offset) const {
    if (scales) {
#pragma GCC unroll 8
      for (int i = 0; i < step; ++i) sums[i] = TileMulAdd(alpha, sums[i], offset);
    }
    if (clips) {
#pragma GCC unroll 8
      for (int i = 0; i < step; ++i) sums[i] = Clamp3(sums[i], low, high);
    }
  }

  TileVec alpha, beta, low, high;
  bool scales, clips;
};

// The lines under `rows` lines of output; null where they are outside.
template <int size, int stride, int rows>
struct InputLines {
  static constexpr int count = (rows - 1) * stride + size;
  explicit InputLines(const Line& l) {
    for (int y = 0; y < count; ++y) at[y] = l.line(0, y);
  }
  const float* at[count];
};

// `step` neighbouring output pixels of `rows` lines; `count` of the piece's channels, from `first`
// on: whole vectors of them, or less than one.
template <int size, int stride, int step, int rows, Border border, bool partial>
HWY_INLINE void Pixels(const Line& l, const InputLines<size, stride, rows>& lines,
                       const Piece& piece, int64_t column, uint32_t inside, int64_t first,
                       int64_t count) {
  constexpr int under = InputLines<size, stride, rows>::count;
  // What the stores below might change, for all that the compiler knows, is read once.
  const int64_t channels = l.channels, distance = piece.out_distance, line = piece.out_line;
  const int64_t left = column * stride - l.g.pad[2];
  const Finish finish(l.job);
  const Channels<partial> some(count);
  const Columns<size, stride, step, border, partial> columns{some, channels, inside};
  const float* weight = l.job.weights + first;
  const float* bias = l.job.bias == nullptr ? nullptr : l.job.bias + first;
  float* to = piece.out + (column - piece.begin) * distance + first - piece.first;
  const float* from[under];
  for (int y = 0; y < under; ++y)
    from[y] = lines.at[y] == nullptr ? nullptr : lines.at[y] + left * channels + first;
  for (; count > 0; count -= tile_lanes) {
    const TileVec offset =
        bias == nullptr ? TileZero() : TileMulAdd(finish.beta, some.load(bias), TileZero());
    TileVec sums[rows][step];
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int i = 0; i < step; ++i) sums[r][i] = finish.scales ? TileZero() : offset;
    }
    SumPixels(columns, from, weight, sums);
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r) {
      finish(sums[r], offset);
#pragma GCC unroll 8
      for (int i = 0; i < step; ++i) some.store(sums[r][i], to + r * line + i * distance);
    }
    if constexpr (partial) return;
    for (int y = 0; y < under; ++y) from[y] = from[y] == nullptr ? nullptr : from[y] + tile_lanes;
    weight += tile_lanes;
    to += tile_lanes;
    if (bias != nullptr) bias += tile_lanes;
  }
}

// The same, with what lies outside the image found out, for all of the piece's channels.
template <int size, int stride, int step, int rows>
HWY_INLINE void AnyBorder(const Line& l, const InputLines<size, stride, rows>& lines,
                          const Piece& piece, int64_t column) {
  constexpr int reach = (step - 1) * stride + size;
  const int64_t left = column * stride - l.g.pad[2];
  uint32_t inside = 0;
  for (int x = 0; x < reach; ++x) {
    if (left + x >= 0 && left + x < l.g.in[2]) inside |= 1u << x;
  }
  const int64_t rest = (piece.last - piece.first) % tile_lanes;
  const int64_t whole = piece.last - piece.first - rest;
  const bool all = inside == InsideOf<size, reach, Border::none>();
  const auto vectors = [&](auto border) HWY_ATTR {
    Pixels<size, stride, step, rows, decltype(border)::value, false>(l, lines, piece, column,
                                                                     inside, piece.first, whole);
  };
  // Whether these are the columns inside; then computes them.
  const auto is = [&](auto border) HWY_ATTR {
    const bool same = inside == InsideOf<size, reach, decltype(border)::value>();
    if (same) vectors(border);
    return same;
  };
  // Of few pixels, and of the last channels of few, there is no code but for any border.
  bool done = whole == 0;
  if constexpr (step > 1) done = done || is(std::integral_constant<Border, Border::none>());
  if constexpr (step == max_step && knows_usual_pads) {
    done = done || is(std::integral_constant<Border, Border::left>()) ||
           is(std::integral_constant<Border, Border::right>()) ||
           is(std::integral_constant<Border, Border::both>());
  }
  if (!done) vectors(std::integral_constant<Border, Border::any>());
  if (rest == 0) return;
  const auto last = [&](auto border) HWY_ATTR {
    Pixels<size, stride, step, rows, decltype(border)::value, true>(l, lines, piece, column, inside,
                                                                    piece.first + whole, rest);
  };
  if constexpr (step == max_step) {
    if (all) return last(std::integral_constant<Border, Border::none>());
  }
  last(std::integral_constant<Border, Border::any>());
}

// The pixels from `column` to `end`, `step` at a time. The last ones may be computed twice, which
// takes less time than computing them one by one.
template <int size, int stride, int step, int rows>
HWY_INLINE void PixelsTo(int64_t end, const Line& l, const InputLines<size, stride, rows>& lines,
                         const Piece& piece, int64_t column) {
  for (;; column = std::min(column + step, end - step)) {
    AnyBorder<size, stride, step, rows>(l, lines, piece, column);
    if (column + step == end) return;
  }
}

template <int size, int stride>
void PieceOf(const Line& l, const Piece& piece) {
  const InputLines<size, stride, 1> lines(l);
  const int64_t pixels = piece.end - piece.begin;
  int64_t column = piece.begin;
  if (pixels >= max_step)
    return PixelsTo<size, stride, max_step>(piece.end, l, lines, piece, column);
  if constexpr (max_step > 4) {
    if (pixels >= 4) {
      const int64_t end = pixels == 5 ? column + 4 : piece.end;
      PixelsTo<size, stride, 4>(end, l, lines, piece, column);
      column = end;
    }
  }
  if (column < piece.end) PixelsTo<size, stride, 1>(piece.end, l, lines, piece, column);
}

// Two lines.
template <int size>
void PairOf(const Line& l, const Line& below, const Piece& piece) {
  if (piece.end - piece.begin >= max_step)
    return PixelsTo<size, 1, max_step>(piece.end, l, InputLines<size, 1, 2>(l), piece, piece.begin);
  PieceOf<size, 1>(l, piece);
  Piece second = piece;
  second.out += piece.out_line;
  PieceOf<size, 1>(below, second);
}

using PieceKernel = void (*)(const Line&, const Piece&);
using PairKernel = void (*)(const Line&, const Line&, const Piece&);
struct Kernels {
  PieceKernel one = nullptr;
  PairKernel pair = nullptr;  // where sums and weights of two lines find room in registers
};

template <int size>
Kernels KernelsOfSize(const ConvGeometry& g) {
  if (g.kernel[1] != size || g.kernel[2] != size) return {};
  if constexpr (is_portable && size > 3) return {};  // would be a tenth of a megabyte
  if (g.stride[2] == 2) return {PieceOf<size, 2>};
  if (g.stride[2] != 1) return {};
  constexpr int registers = has_32_registers ? 32 : 16;
  if constexpr (!is_portable && 2 * max_step + 2 * size < registers) {
    if (g.stride[1] == 1 && g.dilation[1] == 1) return {PieceOf<size, 1>, PairOf<size>};
  }
  return {PieceOf<size, 1>};
}

Kernels KernelsFor(const ConvGeometry& g) {
  const bool flat = g.kernel[0] == 1 && g.in[0] == 1 && g.out[0] == 1 && g.pad[0] == 0;
  if (flat && g.dilation[2] == 1) {
    if (const Kernels kernels = KernelsOfSize<3>(g); kernels.one != nullptr) return kernels;
    if (const Kernels kernels = KernelsOfSize<5>(g); kernels.one != nullptr) return kernels;
    if (const Kernels kernels = KernelsOfSize<7>(g); kernels.one != nullptr) return kernels;
  }
  // One pixel is no column: its lines share nothing, and two pieces may have no room in the space.
  const bool columns = g.kernel[1] > 1 && g.kernel[2] == 1 && g.pad[2] == 0 && g.stride[2] == 1 &&
                       g.in[2] == g.out[2];
  if (!is_portable && flat && columns && g.stride[1] == 1 && g.dilation[1] == 1)
    return {AnyPiece, ColumnPair};
  return {AnyPiece};
}

void StorePiece(const DepthwiseNhwcJob& job, int64_t line, const Piece& piece) {
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
void SumPiece(const DepthwiseNhwcJob& job, const Piece& piece, const float* from) {
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

// What is done to a line's piece once its sums are there.
void FinishPiece(const DepthwiseNhwcJob& job, int64_t line, const Piece& piece) {
  const ConvGeometry& g = *job.geometry;
  if (job.store != nullptr) StorePiece(job, line, piece);
  if (job.sums == nullptr) return;
  const float* stored = job.store == nullptr ? job.out : job.store->c;
  SumPiece(job, piece, stored + (line * g.out[2] + piece.begin) * g.group + job.first_channel);
}

void DepthwiseNhwc(const DepthwiseNhwcJob& job) {
  const ConvGeometry& g = *job.geometry;
  const Kernels kernels = KernelsFor(g);
  const int64_t count = job.end_channel - job.first_channel;
  const int64_t distance = round_up(count, tile_lanes);
  const int64_t columns = depthwise_columns_at_once(g, count);
  // Lines that come from farther than the second-level cache are better read one after the other.
  const bool near = job.held != 0 || g.in_pixels * g.group * 4 <= near_b_bytes;
  for (int64_t begin = 0; begin < g.out[2]; begin += columns) {
    const int64_t end = std::min(begin + columns, g.out[2]);
    for (int64_t line = 0; line < job.lines;) {
      Piece piece{begin,     end,      job.first_channel,       job.end_channel,
                  job.space, distance, (end - begin) * distance};
      if (job.store == nullptr) {
        piece.out = job.out + (line * g.out[2] + begin) * g.group + job.first_channel;
        piece.out_distance = g.group;
        piece.out_line = g.out[2] * g.group;
      }
      const bool pair = kernels.pair != nullptr && near && line + 1 < job.lines;
      if (pair) {
        kernels.pair(Line(job, line), Line(job, line + 1), piece);
      } else {
        kernels.one(Line(job, line), piece);
      }
      FinishPiece(job, line++, piece);
      piece.out += piece.out_line;
      if (pair) FinishPiece(job, line++, piece);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(DepthwiseNhwc);
void depthwise_nhwc_lines(const DepthwiseNhwcJob& job) { HWY_DYNAMIC_DISPATCH(DepthwiseNhwc)(job); }

}  // namespace sardonyx::kernels
#endif
