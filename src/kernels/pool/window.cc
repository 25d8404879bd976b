#include "kernels/pool/window.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/window.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr auto add_of = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
constexpr auto max_of = [](auto a, auto b) HWY_ATTR {
  return hn::IfThenElse(hn::Or(hn::IsNaN(b), hn::Gt(b, a)), b, a);
};

// Outputs [begin, end) of one window column whose elements begin at x and are `stride` apart.
template <class Op>
HWY_INLINE void Column(const float* x, int64_t stride, float* y, int64_t n, const Op& op) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2) {
    // The last pair may end behind the row; one element is left to the loop below.
    for (; i + lanes < n; i += lanes) {
      const auto a = hn::LoadU(d, x + 2 * i);
      const auto b = hn::LoadU(d, x + 2 * i + lanes);
      hn::StoreU(op(hn::LoadU(d, y + i), hn::ConcatEven(d, b, a)), d, y + i);
    }
  }
#endif
  if (stride == 1) {
    for (; i + lanes <= n; i += lanes) {
      hn::StoreU(op(hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, y + i);
    }
  }
  const hn::CappedTag<float, 1> one;
  for (; i < n; ++i) {
    y[i] = hn::GetLane(op(hn::Set(one, y[i]), hn::Set(one, x[i * stride])));
  }
}

template <class Op>
HWY_INLINE void Row(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                    int64_t pad, const float* x, float* y, const Op& op) {
  // Window columns that no output has inside the row are passed over, however many they are.
  const int64_t last = (out - 1) * stride;
  const int64_t from = pad > last ? (pad - last + dilation - 1) / dilation : 0;
  const int64_t to = std::min(kernel, (in + pad + dilation - 1) / dilation);
  for (int64_t j = from; j < to; ++j) {
    const int64_t shift = j * dilation - pad;  // of output 0's element
    const int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const int64_t end = std::min(out, shift >= in ? 0 : (in - 1 - shift) / stride + 1);
    if (begin < end) Column(x + begin * stride + shift, stride, y + begin, end - begin, op);
  }
}

void PoolRow(PoolKind kind, int64_t in, int64_t out, int64_t kernel, int64_t stride,
             int64_t dilation, int64_t pad, const float* x, float* y) {
  if (kind == PoolKind::max) {
    Row(in, out, kernel, stride, dilation, pad, x, y, max_of);
  } else {
    Row(in, out, kernel, stride, dilation, pad, x, y, add_of);
  }
}

// The operation over all taps; `load` takes a place.
template <class Load, class Op>
HWY_INLINE auto Join(const Load& load, const float* const* taps, int64_t count, int64_t c,
                     const Op& op) {
  auto v = load(taps[0] + c);
  for (int64_t i = 1; i < count; ++i) v = op(v, load(taps[i] + c));
  return v;
}

template <class Op>
HWY_INLINE void Pixel(const float* const* taps, int64_t count, int64_t channels, float scale,
                      float* y, const Op& op) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  const auto whole = [d](const float* p) HWY_ATTR { return hn::LoadU(d, p); };
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) {
    hn::StoreU(hn::Mul(Join(whole, taps, count, c, op), factor), d, y + c);
  }
  if (c == channels) return;
  const auto left = hn::FirstN(d, static_cast<size_t>(channels - c));
  const auto some = [d, left](const float* p) HWY_ATTR { return hn::MaskedLoad(left, d, p); };
  hn::BlendedStore(hn::Mul(Join(some, taps, count, c, op), factor), left, d, y + c);
}

void PoolPixel(PoolKind kind, const float* const* taps, int64_t count, int64_t channels,
               float scale, float* y) {
  if (kind == PoolKind::max) {
    Pixel(taps, count, channels, 1.0f, y, max_of);
  } else {
    Pixel(taps, count, channels, scale, y, add_of);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(PoolRow);

void pool_row(PoolKind kind, int64_t in, int64_t out, int64_t kernel, int64_t stride,
              int64_t dilation, int64_t pad, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(PoolRow)(kind, in, out, kernel, stride, dilation, pad, x, y);
}

HWY_EXPORT(PoolPixel);
void pool_pixel(PoolKind kind, const float* const* taps, int64_t count, int64_t channels,
                float scale, float* y) {
  HWY_DYNAMIC_DISPATCH(PoolPixel)(kind, taps, count, channels, scale, y);
}

}  // namespace sardonyx::kernels
#endif
