#include "kernels/conv/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/conv/lanes-inl.h"
#include "kernels/gemm/transpose-inl.h"

// The transforms evaluate polynomials at 0, p, -p, q, -q and infinity. With p = 3/4 and q = 3/2
// the error stays below a third of what 1 and 2 give, and all constants are exact. Tiles of 2x2
// need no second pair of points, and have 1 for p.
#ifndef SARDONYX_KERNELS_CONV_WINOGRAD_POINTS_
#define SARDONYX_KERNELS_CONV_WINOGRAD_POINTS_
namespace sardonyx::kernels {
constexpr float point_p = 0.75f;
constexpr float point_q = 1.5f;
}  // namespace sardonyx::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE TileVec TileAdd(TileVec a, TileVec b) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  return hn::Add(a, b);
#else
  return a + b;
#endif
}
HWY_INLINE TileVec TileSub(TileVec a, TileVec b) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  return hn::Sub(a, b);
#else
  return a - b;
#endif
}
HWY_INLINE TileVec TileMin(TileVec a, TileVec b) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  return hn::Min(a, b);
#else
  for (int i = 0; i < tile_lanes; ++i) a[i] = std::min(a[i], b[i]);
  return a;
#endif
}
HWY_INLINE TileVec TileMax(TileVec a, TileVec b) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  return hn::Max(a, b);
#else
  for (int i = 0; i < tile_lanes; ++i) a[i] = std::max(a[i], b[i]);
  return a;
#endif
}
HWY_INLINE TileVec TileScale(float factor, TileVec v, TileVec plus) {
  return TileMulAdd(TileBroadcast(&factor), v, plus);
}

// Inputs in a line to as many values.
HWY_INLINE void TransformInput(const TileVec (&d)[6], TileVec (&t)[6]) {
  constexpr float pp = point_p * point_p, qq = point_q * point_q;
  t[0] = TileScale(pp * qq, d[0], TileScale(-(pp + qq), d[2], d[4]));
  t[5] = TileScale(pp * qq, d[1], TileScale(-(pp + qq), d[3], d[5]));
  const TileVec even_p = TileScale(-qq, d[2], d[4]), odd_p = TileScale(-qq, d[1], d[3]);
  t[1] = TileScale(point_p, odd_p, even_p);
  t[2] = TileScale(-point_p, odd_p, even_p);
  const TileVec even_q = TileScale(-pp, d[2], d[4]), odd_q = TileScale(-pp, d[1], d[3]);
  t[3] = TileScale(point_q, odd_q, even_q);
  t[4] = TileScale(-point_q, odd_q, even_q);
}

HWY_INLINE void TransformInput(const TileVec (&d)[4], TileVec (&t)[4]) {
  t[0] = TileSub(d[0], d[2]);
  t[1] = TileAdd(d[2], d[1]);
  t[2] = TileSub(d[2], d[1]);
  t[3] = TileSub(d[3], d[1]);
}

// Six values back to four outputs in a line.
HWY_INLINE void TransformOutput(const TileVec (&m)[6], TileVec (&y)[4]) {
  constexpr float p = point_p, q = point_q;
  const TileVec sum_p = TileAdd(m[1], m[2]), difference_p = TileSub(m[1], m[2]);
  const TileVec sum_q = TileAdd(m[3], m[4]), difference_q = TileSub(m[3], m[4]);
  const TileVec none = TileZero();
  y[0] = TileAdd(m[0], TileAdd(sum_p, sum_q));
  y[1] = TileScale(p, difference_p, TileScale(q, difference_q, none));
  y[2] = TileScale(p * p, sum_p, TileScale(q * q, sum_q, none));
  y[3] = TileScale(p * p * p, difference_p, TileScale(q * q * q, difference_q, m[5]));
}

HWY_INLINE void TransformOutput(const TileVec (&m)[4], TileVec (&y)[2]) {
  y[0] = TileAdd(m[0], TileAdd(m[1], m[2]));
  y[1] = TileAdd(TileSub(m[1], m[2]), m[3]);
}

// Some pixels of a line of the image, for as many channels as there are lanes, channel by channel
// side by side: out[pixel * lanes + channel]. Writes up to a vector's worth of pixels more.
HWY_INLINE void TransposeLine(const float* line, int64_t channel_stride, int64_t channels,
                              int64_t pixels, float* out) {
  for (int64_t x = 0; x < pixels; x += tile_lanes) {
    const LaneRange used(0, std::min<int64_t>(tile_lanes, pixels - x));
    TileVec v[tile_lanes];
#pragma GCC unroll 16
    for (int i = 0; i < tile_lanes; ++i) {
      v[i] = i < channels ? LoadLanes(used, line + i * channel_stride + x) : TileZero();
    }
    TransposeVecs(v);
#pragma GCC unroll 16
    for (int i = 0; i < tile_lanes; ++i) TileStoreVec(v[i], out + (x + i) * tile_lanes);
  }
}

HWY_INLINE void ZeroLine(float* out, int64_t pixels) {
  for (int64_t i = 0; i < pixels; ++i) TileStoreVec(TileZero(), out + i * tile_lanes);
}

constexpr int64_t LinePixels(int64_t outputs, int64_t tiles) { return outputs * tiles + 2; }
int64_t LineEnergies(int64_t tiles) { return tiles * 2 * tile_lanes; }

// Sums of a transformed tile's pixels such that each pixel counts in one of four. In the larger
// tiles these are values of the transform: 0 and infinity take every second pixel of a line. In the
// smaller ones a line's halves are the sums of two values.
template <int inputs>
HWY_INLINE void Quarters(const float* tile, int64_t plane_stride, TileVec (&q)[4]) {
  const auto value = [&](int y, int x)
                         HWY_ATTR { return TileLoad(tile + (y * inputs + x) * plane_stride); };
  constexpr int last = inputs - 1;
  if constexpr (inputs == 6) {
    q[0] = value(0, 0), q[1] = value(0, last), q[2] = value(last, 0), q[3] = value(last, last);
  } else {
    TileVec upper[3], lower[3];
    for (int i = 0; i < 3; ++i) {
      const int x = i == 2 ? last : i;
      const TileVec both = value(1, x);
      upper[i] = TileAdd(value(0, x), both);
      lower[i] = TileAdd(value(last, x), both);
    }
    q[0] = TileAdd(upper[0], upper[1]), q[1] = TileAdd(upper[2], upper[1]);
    q[2] = TileAdd(lower[0], lower[1]), q[3] = TileAdd(lower[2], lower[1]);
  }
}

// A tile's energies (WinogradInput), channel by channel.
struct LaneEnergies {
  TileVec all, quiet;

  template <int inputs>
  HWY_INLINE void Add(const float* tile, int64_t plane_stride) {
    TileVec q[4];
    Quarters<inputs>(tile, plane_stride, q);
    const TileVec none = TileZero();
#pragma GCC unroll 4
    for (TileVec& value : q) value = TileMulAdd(value, value, none);
    all = TileAdd(all, TileAdd(TileAdd(q[0], q[1]), TileAdd(q[2], q[3])));
    const TileVec low = TileMin(q[0], q[1]), other_low = TileMin(q[2], q[3]);
    const TileVec high = TileMin(TileMax(q[0], q[1]), TileMax(q[2], q[3]));
    quiet =
        TileAdd(quiet, TileAdd(TileMin(low, other_low), TileMin(TileMax(low, other_low), high)));
  }
  HWY_INLINE void Store(float* p) const {
    TileStoreVec(all, p);
    TileStoreVec(quiet, p + tile_lanes);
  }
};

void SumLanes(const WinogradInput& job) {
  for (int64_t tile = 0; tile < job.tiles; ++tile) {
    const float* lanes = job.energy_lanes + tile * 2 * tile_lanes;
    float all = 0, quiet = 0;
    for (int i = 0; i < tile_lanes; ++i) all += lanes[i], quiet += lanes[tile_lanes + i];
    job.all_energy[tile] = all;
    job.quiet_energy[tile] = quiet;
  }
}

// load(y, x) gives a vector of channels of one of the tile's pixels, of which there are `inputs` in
// a line.
template <int inputs, class Load>
HWY_INLINE void TransformTile(Load&& load, float* out, int64_t plane_stride) {
  TileVec half[inputs][inputs];
  for (int x = 0; x < inputs; ++x) {
    TileVec d[inputs], t[inputs];
#pragma GCC unroll 6
    for (int y = 0; y < inputs; ++y) d[y] = load(y, x);
    TransformInput(d, t);
#pragma GCC unroll 6
    for (int y = 0; y < inputs; ++y) half[y][x] = t[y];
  }
  for (int y = 0; y < inputs; ++y) {
    TileVec t[inputs];
    TransformInput(half[y], t);
#pragma GCC unroll 6
    for (int x = 0; x < inputs; ++x) TileStoreVec(t[x], out + (y * inputs + x) * plane_stride);
  }
}

// One tile with channels last. Edge: some of its pixels are outside the image.
template <int outputs, bool edge>
void TileNhwc(const WinogradInput& job, int64_t tile) {
  const int64_t left = job.left + tile * outputs;
  const int64_t line = job.line_stride;
  const float* corner = job.image + job.top * line + left * job.pixel_stride;
  float* out = job.out + tile * job.tile_stride;
  LaneEnergies energies{TileZero(), TileZero()};
  for (int64_t c = 0; c < job.channels; c += tile_lanes) {
    const bool whole = c + tile_lanes <= job.channels;
    const LaneRange used(0, std::min<int64_t>(tile_lanes, job.channels - c));
    const auto load = [&](int y, int x) HWY_ATTR {
      if (edge &&
          (job.top + y < 0 || job.top + y >= job.height || left + x < 0 || left + x >= job.width)) {
        return TileZero();
      }
      const float* p = corner + y * line + x * job.pixel_stride + c;
      return whole ? TileLoad(p) : LoadLanes(used, p);
    };
    TransformTile<outputs + 2>(load, out + c, job.plane_stride);
    energies.Add<outputs + 2>(out + c, job.plane_stride);
  }
  energies.Store(job.energy_lanes + tile * 2 * tile_lanes);
}

template <int outputs>
void InputNhwc(const WinogradInput& job) {
  constexpr int inputs = outputs + 2;
  const bool edge_rows = job.top < 0 || job.top + inputs > job.height;
  for (int64_t tile = 0; tile < job.tiles; ++tile) {
    const int64_t left = job.left + tile * outputs;
    if (edge_rows || left < 0 || left + inputs > job.width) {
      TileNhwc<outputs, true>(job, tile);
    } else {
      TileNhwc<outputs, false>(job, tile);
    }
  }
}

template <int outputs>
void InputOf(const WinogradInput& job) {
  if (job.pixel_stride != 0) return InputNhwc<outputs>(job);
  const int64_t pixels = LinePixels(outputs, job.tiles);
  const int64_t line_floats = (pixels + tile_lanes) * tile_lanes;
  const int64_t begin = std::clamp<int64_t>(-job.left, 0, pixels);
  const int64_t end = std::clamp<int64_t>(job.width - job.left, begin, pixels);
  std::fill_n(job.energy_lanes, LineEnergies(job.tiles), 0.0f);
  for (int64_t c = 0; c < job.channels; c += tile_lanes) {
    for (int64_t y = 0; y < outputs + 2; ++y) {
      float* line = job.lines + y * line_floats;
      const int64_t row = job.top + y;
      if (row < 0 || row >= job.height || begin == end) {
        ZeroLine(line, pixels);
        continue;
      }
      ZeroLine(line, begin);
      TransposeLine(job.image + (c * job.height + row) * job.width + job.left + begin,
                    job.height * job.width, job.channels - c, end - begin,
                    line + begin * tile_lanes);
      ZeroLine(line + end * tile_lanes, pixels - end);
    }
    for (int64_t tile = 0; tile < job.tiles; ++tile) {
      const float* corner = job.lines + tile * outputs * tile_lanes;
      const auto load = [&](int y, int x) HWY_ATTR {
        return TileLoad(corner + y * line_floats + x * tile_lanes);
      };
      float* out = job.out + tile * job.tile_stride + c;
      TransformTile<outputs + 2>(load, out, job.plane_stride);
      float* lanes = job.energy_lanes + tile * 2 * tile_lanes;
      LaneEnergies energies{TileLoad(lanes), TileLoad(lanes + tile_lanes)};
      energies.Add<outputs + 2>(out, job.plane_stride);
      energies.Store(lanes);
    }
  }
}

void Input(const WinogradInput& job) {
  job.outputs == 2 ? InputOf<2>(job) : InputOf<4>(job);
  SumLanes(job);
}

int64_t LineFloats(int64_t outputs, int64_t tiles) {
  return winograd_inputs(outputs) * (LinePixels(outputs, tiles) + tile_lanes) * tile_lanes;
}

template <int outputs>
void OutputTile(const float* sums, int64_t plane_stride, float* out, int64_t row_floats,
                int64_t channels) {
  constexpr int inputs = outputs + 2;
  TileVec half[outputs][inputs];
  for (int x = 0; x < inputs; ++x) {
    TileVec m[inputs], y[outputs];
#pragma GCC unroll 6
    for (int i = 0; i < inputs; ++i) m[i] = TileLoad(sums + (i * inputs + x) * plane_stride);
    TransformOutput(m, y);
#pragma GCC unroll 4
    for (int i = 0; i < outputs; ++i) half[i][x] = y[i];
  }
  for (int i = 0; i < outputs; ++i) {
    TileVec y[outputs];
    TransformOutput(half[i], y);
#pragma GCC unroll 4
    for (int x = 0; x < outputs; ++x) TileStoreVec(y[x], out + i * row_floats + x * channels);
  }
}

template <int outputs>
void OutputOf(const WinogradOutput& job) {
  for (int64_t tile = 0; tile < job.tiles; ++tile) {
    for (int64_t c = 0; c < job.channels; c += tile_lanes) {
      OutputTile<outputs>(job.sums + tile * job.channels + c, job.plane_stride,
                          job.out + tile * outputs * job.channels + c,
                          job.row_pixels * job.channels, job.channels);
    }
  }
}

void Output(const WinogradOutput& job) { job.outputs == 2 ? OutputOf<2>(job) : OutputOf<4>(job); }

// The weights of one input channel that TransformWeights made these of, for `width` output
// channels.
template <int inputs>
void RestoreWeights(const float* transformed, int64_t plane_stride, int64_t width,
                    float (&taps)[9][max_tile_columns]) {
  constexpr double p = point_p, q = point_q;
  constexpr auto at_0 = static_cast<float>(inputs == 4 ? 1 : p * p * q * q);
  constexpr auto at_p = static_cast<float>(inputs == 4 ? 1 : p * (p * p - q * q));
  for (int64_t i = 0; i < width; ++i) {
    const auto restore = [&](float u0, float u1, float u2, float last, float* g, int apart) {
      g[0] = at_0 * u0;
      g[apart] = at_p * (u1 - u2);
      g[2 * apart] = last;
    };
    float half[3][4];  // by lines of the kernel
    for (int k = 0; k < 4; ++k) {
      const int x = k == 3 ? inputs - 1 : k;
      const auto u = [&](int y) { return transformed[(y * inputs + x) * plane_stride + i]; };
      restore(u(0), u(1), u(2), u(inputs - 1), &half[0][k], 4);
    }
    float g[9], largest = 0;
    for (int y = 0; y < 3; ++y)
      restore(half[y][0], half[y][1], half[y][2], half[y][3], g + y * 3, 1);
    for (const float tap : g) largest = std::max(largest, std::abs(tap));
    for (int t = 0; t < 9; ++t) taps[t][i] = std::abs(g[t]) < 0x1p-20f * largest ? 0 : g[t];
  }
}

template <int outputs>
void DirectOf(const WinogradInput& job, int64_t tile, const float* weights, int64_t width,
              float* out, int64_t row_floats) {
  constexpr int inputs = outputs + 2;
  const int64_t left = job.left + tile * outputs;
  const int64_t pixel_stride = job.pixel_stride != 0 ? job.pixel_stride : 1;
  const int64_t line_stride = job.pixel_stride != 0 ? job.line_stride : job.width;
  const int64_t channel_stride = job.pixel_stride != 0 ? 1 : job.height * job.width;
  for (int y = 0; y < outputs; ++y) std::fill_n(out + y * row_floats, outputs * width, 0.0f);
  float taps[9][max_tile_columns];
  for (int64_t c = 0; c < job.channels; ++c) {
    RestoreWeights<inputs>(weights + c * width, job.channels * width, width, taps);
    float pixels[inputs][inputs];
    for (int y = 0; y < inputs; ++y) {
      for (int x = 0; x < inputs; ++x) {
        const int64_t row = job.top + y, column = left + x;
        const bool inside = row >= 0 && row < job.height && column >= 0 && column < job.width;
        pixels[y][x] =
            inside ? job.image[c * channel_stride + row * line_stride + column * pixel_stride] : 0;
      }
    }
    for (int y = 0; y < outputs; ++y) {
      for (int x = 0; x < outputs; ++x) {
        for (int64_t i = 0; i < width; i += tile_lanes) {
          float* to = out + y * row_floats + x * width + i;
          TileVec sum = TileLoad(to);
          for (int t = 0; t < 9; ++t) {
            sum = TileMulAdd(TileBroadcast(&pixels[y + t / 3][x + t % 3]), TileLoad(taps[t] + i),
                             sum);
          }
          TileStoreVec(sum, to);
        }
      }
    }
  }
}

void Direct(const WinogradInput& job, int64_t tile, const float* weights, int64_t width, float* out,
            int64_t row_floats) {
  job.outputs == 2 ? DirectOf<2>(job, tile, weights, width, out, row_floats)
                   : DirectOf<4>(job, tile, weights, width, out, row_floats);
}

// Three weights in a line to six or four values, for several kernels at once.
constexpr int weight_lanes = 8;
using Weights = double[weight_lanes];

HWY_INLINE void TransformWeights(const Weights& g0, const Weights& g1, const Weights& g2,
                                 Weights (&u)[6]) {
  constexpr double p = point_p, q = point_q, pp = p * p, qq = q * q;
  constexpr double at_0 = 1 / (pp * qq), at_p = 1 / (2 * pp * (pp - qq)),
                   at_q = 1 / (2 * qq * (qq - pp));
  for (int i = 0; i < weight_lanes; ++i) {
    u[0][i] = at_0 * g0[i];
    u[1][i] = at_p * (g0[i] + p * g1[i] + pp * g2[i]);
    u[2][i] = at_p * (g0[i] - p * g1[i] + pp * g2[i]);
    u[3][i] = at_q * (g0[i] + q * g1[i] + qq * g2[i]);
    u[4][i] = at_q * (g0[i] - q * g1[i] + qq * g2[i]);
    u[5][i] = g2[i];
  }
}

HWY_INLINE void TransformWeights(const Weights& g0, const Weights& g1, const Weights& g2,
                                 Weights (&u)[4]) {
  for (int i = 0; i < weight_lanes; ++i) {
    u[0][i] = g0[i];
    u[1][i] = 0.5 * (g0[i] + g1[i] + g2[i]);
    u[2][i] = 0.5 * (g0[i] - g1[i] + g2[i]);
    u[3][i] = g2[i];
  }
}

template <int inputs>
void KernelsOf(const float* weights, int64_t channels, int64_t count, int64_t width, float* out) {
  for (int64_t m = 0; m < width; m += weight_lanes) {
    const int64_t used = std::min<int64_t>(weight_lanes, width - m);
    for (int64_t c = 0; c < channels; ++c) {
      Weights g[3][3] = {};
      for (int64_t i = 0; i < std::min(used, count - m); ++i) {
        const float* kernel = weights + ((m + i) * channels + c) * 9;
        for (int t = 0; t < 9; ++t) g[t / 3][t % 3][i] = kernel[t];
      }
      Weights half[3][inputs];
      for (int x = 0; x < 3; ++x) TransformWeights(g[0][x], g[1][x], g[2][x], half[x]);
      for (int y = 0; y < inputs; ++y) {
        Weights u[inputs];
        TransformWeights(half[0][y], half[1][y], half[2][y], u);
        for (int x = 0; x < inputs; ++x) {
          float* to = out + ((y * inputs + x) * channels + c) * width + m;
          for (int64_t i = 0; i < used; ++i) to[i] = static_cast<float>(u[x][i]);
        }
      }
    }
  }
}

void TransformKernels(int64_t outputs, const float* weights, int64_t channels, int64_t count,
                      int64_t width, float* out) {
  outputs == 2 ? KernelsOf<4>(weights, channels, count, width, out)
               : KernelsOf<6>(weights, channels, count, width, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(Input);
HWY_EXPORT(Output);
HWY_EXPORT(LineFloats);
HWY_EXPORT(LineEnergies);
HWY_EXPORT(Direct);
HWY_EXPORT(TransformKernels);

void winograd_input(const WinogradInput& job) { HWY_DYNAMIC_DISPATCH(Input)(job); }
void winograd_output(const WinogradOutput& job) { HWY_DYNAMIC_DISPATCH(Output)(job); }
int64_t winograd_line_floats(int64_t outputs, int64_t tiles) {
  return HWY_DYNAMIC_DISPATCH(LineFloats)(outputs, tiles);
}
int64_t winograd_energy_floats(int64_t tiles) { return HWY_DYNAMIC_DISPATCH(LineEnergies)(tiles); }
void winograd_direct(const WinogradInput& job, int64_t tile, const float* weights, int64_t width,
                     float* out, int64_t row_floats) {
  HWY_DYNAMIC_DISPATCH(Direct)(job, tile, weights, width, out, row_floats);
}
void winograd_weights(int64_t outputs, const float* weights, int64_t channels, int64_t count,
                      int64_t width, float* out) {
  HWY_DYNAMIC_DISPATCH(TransformKernels)(outputs, weights, channels, count, width, out);
}

}  // namespace sardonyx::kernels
#endif
