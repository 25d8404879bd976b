#include "kernels/conv/depthwise_transposed.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise_transposed.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

#ifndef SARDONYX_KERNELS_CONV_DEPTHWISE_TRANSPOSED_TERMS
#define SARDONYX_KERNELS_CONV_DEPTHWISE_TRANSPOSED_TERMS
namespace sardonyx::kernels {
namespace {

// What reaches one position of an axis: x[at], x[at - 1] and so on, at the taps tap, tap + stride
// and so on.
struct Reach {
  int64_t at = 0, tap = 0, count = 0;
};

struct UpAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, pad = 0;

  Reach reach(int64_t o) const {
    if (o + pad < 0) return {};
    const int64_t phase = (o + pad) % stride, window = (o + pad) / stride;
    const int64_t skipped = std::max<int64_t>(0, window - (in - 1));
    const int64_t taps = phase < kernel ? (kernel - 1 - phase) / stride + 1 : 0;
    return {window - skipped, phase + skipped * stride,
            std::max<int64_t>(0, std::min(taps, window + 1) - skipped)};
  }
};

// One line of Y, of one image.
struct UpLine {
  Reach depth, row;
  const UpAxis* axes;  // three
  int64_t channels;
  const float *x, *weights, *bias;
  float* y;
};

}  // namespace
}  // namespace sardonyx::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

// Vector j of V; the last one has the lanes of the mask. A function, since g++ 12 for Windows ends
// with an internal error where it is a lambda.
template <int V, class Mask>
HWY_INLINE Vector LoadOf(const float* from, int j, Mask last) {
  const Floats d;
  from += j * static_cast<int64_t>(hn::Lanes(d));
  return j == V - 1 ? masked::Load(last, d, from) : hn::LoadU(d, from);
}

template <int V, class Mask>
HWY_INLINE void UpVectors(const UpLine& l, const Reach& column, int64_t c, Mask last, float* y) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sum[V];
  for (int j = 0; j < V; ++j)
    sum[j] = l.bias == nullptr ? hn::Zero(d) : LoadOf<V>(l.bias + c, j, last);
  const UpAxis* a = l.axes;
  for (int64_t k = 0; k < l.depth.count && column.count > 0; ++k) {
    for (int64_t r = 0; r < l.row.count; ++r) {
      const int64_t image = (l.depth.at - k) * a[1].in + l.row.at - r;
      const int64_t kernel =
          (l.depth.tap + k * a[0].stride) * a[1].kernel + l.row.tap + r * a[1].stride;
      const float* x = l.x + (image * a[2].in + column.at) * l.channels + c;
      const float* w = l.weights + (kernel * a[2].kernel + column.tap) * l.channels + c;
      for (int64_t t = 0; t < column.count; ++t) {
        for (int j = 0; j < V; ++j)
          sum[j] = hn::MulAdd(LoadOf<V>(w, j, last), LoadOf<V>(x, j, last), sum[j]);
        x -= l.channels;
        w += a[2].stride * l.channels;
      }
    }
  }
  for (int j = 0; j < V - 1; ++j) hn::StoreU(sum[j], d, y + c + j * lanes);
  masked::Store(sum[V - 1], last, d, y + c + (V - 1) * lanes);
}

void UpOneLine(const UpLine& l) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::FirstN(d, hn::Lanes(d));
  float* y = l.y;
  for (int64_t o = 0; o < l.axes[2].out; ++o, y += l.channels) {
    const Reach column = l.axes[2].reach(o);
    int64_t c = 0;
    for (; c + 4 * lanes <= l.channels; c += 4 * lanes) UpVectors<4>(l, column, c, all, y);
    for (; c + lanes <= l.channels; c += lanes) UpVectors<1>(l, column, c, all, y);
    const auto some = hn::FirstN(d, static_cast<size_t>(l.channels - c));
    if (c < l.channels) UpVectors<1>(l, column, c, some, y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(UpOneLine);

std::string_view refuses_depthwise_transposed(const ConvParams& shape) {
  if (shape.group != shape.in_channels || shape.group != shape.out_channels)
    return "several channels in a group";
  for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i)
    if (shape.dilation[i] != 1) return "dilated kernel";
  return {};
}

void pack_depthwise_transposed(int64_t channels, int64_t taps, const float* weights,
                               float* packed) {
  for (int64_t t = 0; t < taps; ++t)
    for (int64_t c = 0; c < channels; ++c) *packed++ = weights[c * taps + t];
}

void depthwise_transposed(const ConvParams& shape, const float* x, const float* packed,
                          const float* bias, float* y, ThreadPool& pool) {
  UpAxis axes[3];
  int64_t ins = shape.out_channels, outs = shape.out_channels, terms = 1;
  for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i) {
    UpAxis& axis = axes[3 - static_cast<size_t>(shape.rank) + i];
    axis = {shape.in[i], shape.out[i], shape.kernel[i], shape.stride[i], shape.pad_begin[i]};
    ins *= axis.in, outs *= axis.out;
    terms *= (axis.kernel - 1) / axis.stride + 1;
  }
  if (outs == 0) return;
  const int64_t lines = axes[0].out * axes[1].out, line = outs / lines;
  const auto run = [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / lines, at = i % lines;
      HWY_DYNAMIC_DISPATCH(UpOneLine)
      ({axes[0].reach(at / axes[1].out), axes[1].reach(at % axes[1].out), axes, shape.out_channels,
        x + n * ins, packed, bias, y + i * line});
    }
  };
  constexpr int64_t worth_a_task = 16384;  // multiply-adds
  const int64_t grain = std::max<int64_t>(1, worth_a_task / (line * terms));
  if (shape.batch * lines <= grain) return run(0, shape.batch * lines, 0);
  pool.parallel_for(shape.batch * lines, grain, run);
}

}  // namespace sardonyx::kernels
#endif
