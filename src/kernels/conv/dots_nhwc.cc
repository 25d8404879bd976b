// Convolution with channels last to so few output channels that they would leave vectors empty:
// dot products along what lies side by side under a window, pixels of a line and their channels.
#include <algorithm>

#include "kernels/conv/path.h"
#include "kernels/gemm/blocking.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/dots_nhwc.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/dot_products-inl.h"

#ifndef SARDONYX_KERNELS_CONV_DOTS_LAST_CC_
#define SARDONYX_KERNELS_CONV_DOTS_LAST_CC_
namespace sardonyx::kernels {
namespace {

// One line of output pixels.
struct DotsLine {
  const ConvGeometry& g;
  const float* image;
  const float* weights;
  int64_t front, top;  // of its windows
  float* sums;         // pixels x output channels

  int64_t channels() const { return g.group_in; }
  // Terms that lie side by side: those of a kernel's line, or of one of its taps.
  int64_t taps_together() const { return g.dilation[2] == 1 ? g.kernel[2] : 1; }
  // The input line under the kernel's line (d, h); null where it is outside.
  const float* input(int64_t d, int64_t h) const {
    const int64_t depth = front + d * g.dilation[0], row = top + h * g.dilation[1];
    if (depth < 0 || depth >= g.in[0] || row < 0 || row >= g.in[1]) return nullptr;
    return image + (depth * g.in[1] + row) * g.in[2] * channels();
  }
};

}  // namespace
}  // namespace sardonyx::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON

// Pixels whose sums registers hold, beside a vector of each output channel's weights.
constexpr int PixelsTogether(int outputs) {
  const int room = has_32_registers ? 31 : 15;
  return std::clamp((room - outputs) / outputs, 1, 8);
}

// `pixels` neighbouring output pixels from `column` on. Where not `inside`, it is one, whose window
// may reach beyond the line.
template <int outputs, int pixels, bool inside>
HWY_INLINE void Dots(const DotsLine& l, int64_t column) {
  const TileTag d;
  const ConvGeometry& g = l.g;
  TileVec sums[pixels][outputs];
#pragma GCC unroll 8
  for (int p = 0; p < pixels; ++p) {
#pragma GCC unroll 8
    for (int m = 0; m < outputs; ++m) sums[p][m] = hn::Zero(d);
  }
  const int64_t left = column * g.stride[2] - g.pad[2], channels = l.channels();
  const int64_t step = g.stride[2] * channels, together = l.taps_together();
  const float* weights = l.weights;
  for (int64_t depth = 0; depth < g.kernel[0]; ++depth) {
    for (int64_t h = 0; h < g.kernel[1]; ++h, weights += g.kernel[2] * channels) {
      const float* line = l.input(depth, h);
      if (line == nullptr) continue;
      for (int64_t w = 0; w < g.kernel[2]; w += together) {
        const int64_t x = left + w * g.dilation[2];
        const int64_t first = inside ? 0 : std::clamp<int64_t>(-x, 0, together);
        const int64_t last = inside ? together : std::clamp(g.in[2] - x, first, together);
        AddProducts(line + (x + first) * channels, step, weights + (w + first) * channels, g.terms,
                    (last - first) * channels, sums);
      }
    }
  }
  float* to = l.sums + column * outputs;
#pragma GCC unroll 8
  for (int m = 0; m < outputs; ++m) {
#pragma GCC unroll 2
    for (int p = 0; p < pixels; p += 4) {
      const auto sum = [&](int i) HWY_ATTR { return sums[std::min(p + i, pixels - 1)][m]; };
      alignas(16) float four[4];
      hn::Store(FourSums(d, sum(0), sum(1), sum(2), sum(3)), hn::Full128<float>(), four);
      for (int i = 0; i < std::min(4, pixels - p); ++i) to[(p + i) * outputs + m] = four[i];
    }
  }
}

template <int outputs>
void LineOf(const DotsLine& l) {
  constexpr int together = PixelsTogether(outputs);
  const ConvGeometry& g = l.g;
  // Output pixels whose windows lie inside.
  const int64_t stride = g.stride[2],
                room = g.in[2] + g.pad[2] - (g.kernel[2] - 1) * g.dilation[2] - 1;
  const int64_t begin =
      std::clamp<int64_t>((std::max<int64_t>(g.pad[2], 0) + stride - 1) / stride, 0, g.out[2]);
  const int64_t end = room < 0 ? begin : std::clamp<int64_t>(room / stride + 1, begin, g.out[2]);
  int64_t column = 0;
  for (; column < begin; ++column) Dots<outputs, 1, false>(l, column);
  for (; column + together <= end; column += together) Dots<outputs, together, true>(l, column);
  for (; column < end; ++column) Dots<outputs, 1, true>(l, column);
  for (; column < g.out[2]; ++column) Dots<outputs, 1, false>(l, column);
}

void DotsNhwcLine(const DotsLine& l) {
  switch (l.g.group_out) {
    case 1: return LineOf<1>(l);
    case 2: return LineOf<2>(l);
    case 3: return LineOf<3>(l);
    case 4: return LineOf<4>(l);
    case 5: return LineOf<5>(l);
    case 6: return LineOf<6>(l);
    case 7: return LineOf<7>(l);
    default: return LineOf<8>(l);
  }
}

#else
void DotsNhwcLine(const DotsLine&) {}  // never chosen
#endif

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

constexpr int64_t max_outputs = 8;

int64_t line_floats(const ConvGeometry& g) { return round_up(g.out[2] * g.group_out, 16); }

}  // namespace

HWY_EXPORT(DotsNhwcLine);

std::string_view refuses_dots_nhwc(const ConvGeometry& g) {
  const int64_t lanes = tile_kernels().lanes;
  if (tile_kernels().portable) return "no vectors";
  if (g.group != 1) return "several groups";
  if (g.shuffle != 1) return "channels come shuffled";
  if (g.taps == 1) return "the kernel has one tap";
  if (g.terms <= 0) return "nothing to compute";
  if (g.group_out > std::min(max_outputs, lanes / 2)) return "output channels fill vectors";
  // A vector's lanes are added up once for each sum, which costs as much as some products.
  constexpr int64_t adding_up = 4;
  const int64_t dots =
      g.group_out * (g.terms / g.near_terms * divide_up(g.near_terms, lanes) + adding_up);
  constexpr int64_t worth = 2;
  if (worth * dots > g.terms) return "terms side by side do not fill vectors";
  return {};
}

void pack_dots(const ConvGeometry& g, const float* weights, float* packed) {
  // [output channel][tap][input channel]
  for (int64_t m = 0; m < g.group_out; ++m) {
    for (int64_t tap = 0; tap < g.taps; ++tap) {
      for (int64_t c = 0; c < g.group_in; ++c) *packed++ = weights[m * g.terms + c * g.taps + tap];
    }
  }
}

int64_t dots_nhwc_worker_floats(const ConvGeometry& g) { return 2 * line_floats(g); }

void run_dots_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const ConvGeometry& g = call.g;
  const int64_t lines = g.batch * g.out[0] * g.out[1], outputs = g.group_out;
  const int64_t work = std::max<int64_t>(1, g.out[2] * outputs * g.terms);
  for_tasks(pool, lines, divide_up(task_work, work), [&](int64_t line, int worker) {
    float *sums = spaces.space(worker), *bias = sums + line_floats(g);
    HWY_DYNAMIC_DISPATCH(DotsNhwcLine)
    ({g, call.image_nhwc(line / g.out[1] / g.out[0], 0), call.weights,
      line / g.out[1] % g.out[0] * g.stride[0] - g.pad[0], line % g.out[1] * g.stride[1] - g.pad[1],
      sums});
    // All pixels of the line are stored as the columns of one.
    TileStore store = call.place_nhwc(0, 0, outputs, line * g.out[2], 1);
    store.sums = sums;
    store.columns = g.out[2] * outputs;
    for (int64_t i = 0; store.bias != nullptr && i < store.columns; ++i)
      bias[i] = store.bias[i % outputs];
    if (store.bias != nullptr) store.bias = bias;
    tile_kernels().store(store);
  });
}

}  // namespace sardonyx::kernels
#endif
