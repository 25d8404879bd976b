// Convolution with channels last of groups so small that several fill a vector: every term takes a
// vector of input channels, one of each group repeated over the group's lanes.
#include "kernels/conv/grouped_nhwc.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/grouped_nhwc.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/microkernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
constexpr int lanes = static_cast<int>(hn::MaxLanes(Tag()));
constexpr int together = has_32_registers ? 8 : 4;  // pixels

struct Line {
  const DepthwiseNhwcJob& job;
  const ConvGeometry& g;
  int64_t channels, front, top;

  // The input line under the kernel's line (d, h); null where it is outside.
  const float* input(int64_t d, int64_t h) const {
    const int64_t depth = front + d * g.dilation[0], row = top + h * g.dilation[1];
    if (depth < 0 || depth >= g.in[0] || row < 0 || row >= g.in[1]) return nullptr;
    return job.image + (depth * g.in[1] + row) * g.in[2] * channels;
  }
};

// Where the lanes of a vector find channel k of their group of `size`.
template <int size>
struct Spreading {
  Spreading() {
    for (int k = 0; k < size; ++k) {
      for (int lane = 0; lane < lanes; ++lane) from[k][lane] = lane / size * size + k;
    }
  }
  HWY_INLINE Vec operator()(const float* at, Vec v, int k) const {
    if constexpr (size == lanes) return hn::Set(Tag(), at[k]);
    return hn::TableLookupLanes(v, hn::SetTableIndices(Tag(), from[k]));
  }
  alignas(64) int32_t from[size][lanes];
};

// `pixels` neighbouring output pixels from `column` on, a vector of channels from c on. Where not
// `inside`, it is one pixel, whose window may reach beyond the line.
template <int size, int pixels, bool inside>
HWY_INLINE void Pixels(const Line& l, const Spreading<size>& spread, int64_t column, int64_t c) {
  const Tag d;
  const ConvGeometry& g = l.g;
  Vec sums[pixels];
#pragma GCC unroll 8
  for (int i = 0; i < pixels; ++i) sums[i] = hn::Zero(d);
  const int64_t left = column * g.stride[2] - g.pad[2], step = g.stride[2] * l.channels;
  const float* weight = l.job.weights + c * g.taps * size;
  for (int64_t depth = 0; depth < g.kernel[0]; ++depth) {
    for (int64_t h = 0; h < g.kernel[1]; ++h, weight += g.kernel[2] * size * lanes) {
      const float* line = l.input(depth, h);
      if (line == nullptr) continue;
      for (int64_t w = 0; w < g.kernel[2]; ++w) {
        const int64_t x = left + w * g.dilation[2];
        if (!inside && (x < 0 || x >= g.in[2])) continue;
        const float* from = line + x * l.channels + c;
        Vec inputs[pixels];
#pragma GCC unroll 8
        for (int i = 0; i < pixels; ++i) inputs[i] = hn::LoadU(d, from + i * step);
#pragma GCC unroll 16
        for (int k = 0; k < size; ++k) {
          const Vec factor = hn::LoadU(d, weight + (w * size + k) * lanes);
#pragma GCC unroll 8
          for (int i = 0; i < pixels; ++i)
            sums[i] = hn::MulAdd(spread(from + i * step, inputs[i], k), factor, sums[i]);
        }
      }
    }
  }
  const DepthwiseNhwcJob& job = l.job;
  const Vec bias =
      job.bias ? hn::Mul(hn::Set(d, job.beta), hn::LoadU(d, job.bias + c)) : hn::Zero(d);
  float* to = job.out + column * l.channels + c;
#pragma GCC unroll 8
  for (int i = 0; i < pixels; ++i) {
    const Vec y = hn::MulAdd(hn::Set(d, job.alpha), sums[i], bias);
    hn::StoreU(math::LowerTo(d, math::RaiseTo(d, y, job.low), job.high), d, to + i * l.channels);
  }
}

template <int size>
void LineOf(const Line& l) {
  const ConvGeometry& g = l.g;
  const Spreading<size> spread;
  // Output pixels whose windows lie inside.
  const int64_t stride = g.stride[2],
                room = g.in[2] + g.pad[2] - (g.kernel[2] - 1) * g.dilation[2] - 1;
  const int64_t begin =
      std::clamp<int64_t>((std::max<int64_t>(g.pad[2], 0) + stride - 1) / stride, 0, g.out[2]);
  const int64_t end = room < 0 ? begin : std::clamp<int64_t>(room / stride + 1, begin, g.out[2]);
  for (int64_t c = 0; c < l.channels; c += lanes) {
    int64_t column = 0;
    for (; column < begin; ++column) Pixels<size, 1, false>(l, spread, column, c);
    for (; column + together <= end; column += together)
      Pixels<size, together, true>(l, spread, column, c);
    for (; column < end; ++column) Pixels<size, 1, true>(l, spread, column, c);
    for (; column < g.out[2]; ++column) Pixels<size, 1, false>(l, spread, column, c);
  }
}

void GroupedNhwc(const DepthwiseNhwcJob& job) {
  const ConvGeometry& g = *job.geometry;
  const Line l{job, g, g.group * g.group_in, job.depth * g.stride[0] - g.pad[0],
               job.row * g.stride[1] - g.pad[1]};
  switch (g.group_in) {
    case 2: return LineOf<2>(l);
    case 4: return LineOf<4>(l);
    case 8:
      if constexpr (lanes >= 8) return LineOf<8>(l);
      return;
    default: return;
  }
}

#else
void GroupedNhwc(const DepthwiseNhwcJob&) {}  // never chosen
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(GroupedNhwc);
void grouped_nhwc_line(const DepthwiseNhwcJob& job) { HWY_DYNAMIC_DISPATCH(GroupedNhwc)(job); }

}  // namespace sardonyx::kernels
#endif
