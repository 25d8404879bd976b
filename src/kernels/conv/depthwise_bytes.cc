#include "kernels/conv/depthwise_bytes.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise_bytes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/conv/byte_taps.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Floats hold every partial sum exactly: at most 256 products below 2^16.
template <class X>
void Pixel(const ByteTaps& at, const ConvBytes& job, int64_t channels, uint8_t* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<X, decltype(d)> dx;
  const hn::Rebind<uint8_t, decltype(d)> du8;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto x_zero = hn::Set(d, static_cast<float>(job.x_zero));
  const auto low = hn::Set(d, -1e9f), high = hn::Set(d, 1e9f);
  const auto zero = hn::Set(di, job.zero);
  HWY_ALIGN uint8_t bytes[hn::MaxLanes(d)];
  HWY_ALIGN float floats[hn::MaxLanes(d)] = {};
  HWY_ALIGN int32_t wholes[hn::MaxLanes(d)] = {};
  for (int64_t c = 0; c < channels; c += lanes) {
    const int64_t count = std::min(lanes, channels - c);
    const bool whole = count == lanes;
    const auto part = [&](const auto* from, auto* to) {
      if (whole) return from;
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof *from);
      return static_cast<decltype(from)>(to);
    };
    auto sum = hn::Zero(d);
    for (int64_t t = 0; t < at.count; ++t) {
      const auto* from = reinterpret_cast<const X*>(part(at.x[t] + c, bytes));
      const auto x = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(dx, from)));
      const auto w = hn::LoadU(d, part(at.weights[t] + c, floats));
      sum = hn::MulAdd(hn::Sub(x, x_zero), w, sum);
    }
    auto total = hn::ConvertTo(di, sum);
    if (job.bias) total = hn::Add(total, hn::LoadU(di, part(job.bias + c, wholes)));
    const auto scale = hn::LoadU(d, part(job.scale + c, floats));
    const auto value = hn::Mul(hn::ConvertTo(d, total), scale);
    const auto result = hn::Add(hn::NearestInt(hn::Min(high, hn::Max(low, value))), zero);
    uint8_t* to = whole ? out + c : bytes;
    if (job.y_type == ElementType::int8) {
      hn::StoreU(hn::DemoteTo(d8, result), d8, reinterpret_cast<int8_t*>(to));
    } else {
      hn::StoreU(hn::DemoteTo(du8, result), du8, to);
    }
    if (!whole) std::memcpy(out + c, bytes, static_cast<size_t>(count));
  }
}

void DepthwisePixel(const ByteTaps& at, const ConvBytes& job, int64_t channels, uint8_t* out) {
  if (job.x_type == ElementType::int8) return Pixel<int8_t>(at, job, channels, out);
  Pixel<uint8_t>(at, job, channels, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(DepthwisePixel);

void depthwise_bytes_line(const ConvGeometry& g, const ConvBytes& job, const uint8_t* image,
                          int64_t depth, int64_t row, uint8_t* out) {
  const auto* weights = reinterpret_cast<const float*>(job.weights);
  const int64_t front = depth * g.stride[0] - g.pad[0], top = row * g.stride[1] - g.pad[1];
  for (int64_t column = 0; column < g.out[2]; ++column, out += g.group) {
    const int64_t left = column * g.stride[2] - g.pad[2];
    ByteTaps at;
    int64_t tap = 0;
    for (int64_t d = 0; d < g.kernel[0]; ++d) {
      for (int64_t h = 0; h < g.kernel[1]; ++h) {
        for (int64_t w = 0; w < g.kernel[2]; ++w, ++tap) {
          const int64_t z = front + d * g.dilation[0], y = top + h * g.dilation[1],
                        x = left + w * g.dilation[2];
          if (z < 0 || z >= g.in[0] || y < 0 || y >= g.in[1] || x < 0 || x >= g.in[2]) continue;
          at.x[at.count] = image + ((z * g.in[1] + y) * g.in[2] + x) * g.group;
          at.weights[at.count++] = weights + tap * g.group;
        }
      }
    }
    HWY_DYNAMIC_DISPATCH(DepthwisePixel)(at, job, g.group, out);
  }
}

}  // namespace sardonyx::kernels
#endif
