#include "kernels/pool/window.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/window.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

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

// Over all taps, of which there are `fixed` where that is not 0; `load` takes a place.
template <int fixed>
struct Total {
  template <class D, class Load>
  static HWY_INLINE hn::Vec<D> Of(D d, const Load& load, const float* const* taps, int64_t count,
                                  int64_t at, hn::Vec<D> scale) {
    hn::Vec<D> v = load(taps[0] + at);
    const int64_t n = fixed != 0 ? fixed : count;
    for (int64_t i = 1; i < n; ++i) v = add_of(v, load(taps[i] + at));
    (void)d;
    return hn::Mul(v, scale);
  }
};

// What is no number is rare, but must be seen: its sum with anything is none either.
template <int fixed>
struct Largest {
  template <class D, class Load>
  static HWY_INLINE hn::Vec<D> Of(D d, const Load& load, const float* const* taps, int64_t count,
                                  int64_t at, hn::Vec<D>) {
    const int64_t n = fixed != 0 ? fixed : count;
    hn::Vec<D> v = load(taps[0] + at), sum = v;
    for (int64_t i = 1; i < n; ++i) {
      const hn::Vec<D> next = load(taps[i] + at);
      v = hn::Max(next, v);
      sum = hn::Add(sum, next);
    }
    if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(sum)))) return v;
    v = load(taps[0] + at);
    for (int64_t i = 1; i < n; ++i) v = max_of(v, load(taps[i] + at));
    return v;
  }
};

template <class Join>
void Pixels(const float* const* taps, int64_t count, int64_t step, int64_t pixels, int64_t channels,
            float scale, float* y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  const int64_t whole = channels / lanes * lanes;
  const auto left = hn::FirstN(d, static_cast<size_t>(channels - whole));
  const auto load = [d](const float* p) HWY_ATTR { return hn::LoadU(d, p); };
  const auto load_left = [d, left](const float* p) HWY_ATTR { return masked::Load(left, d, p); };
  for (int64_t at = 0; pixels > 0; --pixels, at += step, y += channels) {
    for (int64_t c = 0; c < whole; c += lanes)
      hn::StoreU(Join::Of(d, load, taps, count, at + c, factor), d, y + c);
    if (whole < channels)
      masked::Store(Join::Of(d, load_left, taps, count, at + whole, factor), left, d, y + whole);
  }
}

template <template <int> class Join>
void PixelsOf(const float* const* taps, int64_t count, int64_t step, int64_t pixels,
              int64_t channels, float scale, float* y) {
  switch (count) {
    case 4: return Pixels<Join<4>>(taps, count, step, pixels, channels, scale, y);
    case 9: return Pixels<Join<9>>(taps, count, step, pixels, channels, scale, y);
    default: return Pixels<Join<0>>(taps, count, step, pixels, channels, scale, y);
  }
}

void PoolPixels(PoolKind kind, const float* const* taps, int64_t count, int64_t step,
                int64_t pixels, int64_t channels, float scale, float* y) {
  if (kind == PoolKind::max) {
    PixelsOf<Largest>(taps, count, step, pixels, channels, scale, y);
  } else {
    PixelsOf<Total>(taps, count, step, pixels, channels, scale, y);
  }
}

// `fixed` taps where that is not 0. Every pixel's last vector may take channels a second time.
template <int fixed, class D, class T>
HWY_INLINE void LargestBytes(D d, const T* const* taps, int64_t count, int64_t at, int64_t channels,
                             T* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t n = fixed != 0 ? fixed : count;
  for (int64_t c = 0; c < channels; c += lanes) {
    const int64_t from = HWY_MIN(c, channels - lanes);
    auto v = hn::LoadU(d, taps[0] + at + from);
    for (int64_t i = 1; i < n; ++i) v = hn::Max(v, hn::LoadU(d, taps[i] + at + from));
    hn::StoreU(v, d, y + from);
  }
}

template <int fixed, class D, class T>
void BytePixels(D d, const T* const* taps, int64_t count, int64_t step, int64_t pixels,
                int64_t channels, T* y) {
  for (int64_t at = 0; pixels > 0; --pixels, at += step, y += channels)
    LargestBytes<fixed>(d, taps, count, at, channels, y);
}

template <class T>
void MaxPixels(const T* const* taps, int64_t count, int64_t step, int64_t pixels, int64_t channels,
               T* y) {
  const hn::ScalableTag<T> all;
  const hn::CappedTag<T, 16> some;
  const hn::CappedTag<T, 1> one;
  if (channels < static_cast<int64_t>(hn::Lanes(some)))
    return BytePixels<0>(one, taps, count, step, pixels, channels, y);
  if (channels < static_cast<int64_t>(hn::Lanes(all)))
    return BytePixels<0>(some, taps, count, step, pixels, channels, y);
  if (count == 9) return BytePixels<9>(all, taps, count, step, pixels, channels, y);
  BytePixels<0>(all, taps, count, step, pixels, channels, y);
}

void MaxUnsigned(const uint8_t* const* taps, int64_t count, int64_t step, int64_t pixels,
                 int64_t channels, uint8_t* y) {
  MaxPixels(taps, count, step, pixels, channels, y);
}
void MaxSigned(const int8_t* const* taps, int64_t count, int64_t step, int64_t pixels,
               int64_t channels, int8_t* y) {
  MaxPixels(taps, count, step, pixels, channels, y);
}

// Outputs side by side, `load` their elements at a tap.
template <class Load>
HWY_INLINE void PlacesAt(const Load& load, const int32_t* taps, int64_t count, int64_t stride,
                         int64_t first, float* y, int64_t* places) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  auto best = load(taps[0]);
  auto found = hn::Set(di, taps[0]);
  for (int64_t t = 1; t < count; ++t) {
    const auto v = load(taps[t]);
    const auto better = hn::AndNot(hn::Le(v, best), hn::Eq(best, best));
    best = hn::IfThenElse(better, v, best);
    found = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, taps[t]), found);
  }
  hn::StoreU(best, d, y);
  alignas(64) int32_t at[hn::MaxLanes(di)];
  hn::Store(found, di, at);
  for (int64_t k = 0; k < static_cast<int64_t>(hn::Lanes(d)); ++k)
    places[k] = first + k * stride + at[k];
}

void PoolPlaces(const float* x, int64_t stride, const int32_t* taps, int64_t count, int64_t n,
                int64_t first, float* y, int64_t* places) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t k = 0;
  const auto all = [&](int64_t room, const auto& load) HWY_ATTR {
    for (; k + lanes + room <= n; k += lanes) {
      const float* from = x + k * stride;
      PlacesAt([&](int32_t tap) HWY_ATTR { return load(from + tap); }, taps, count, stride,
               first + k * stride, y + k, places + k);
    }
  };
  if (stride == 1) {
    all(0, [d](const float* from) HWY_ATTR { return hn::LoadU(d, from); });
#if HWY_TARGET != HWY_SCALAR
  } else if (stride == 2) {
    // The last pair may end behind the plane.
    all(1, [d, lanes](const float* from) HWY_ATTR {
      return hn::ConcatEven(d, hn::LoadU(d, from + lanes), hn::LoadU(d, from));
    });
#endif
  }
  for (; k < n; ++k) {
    const float* from = x + k * stride;
    int32_t found = taps[0];
    for (int64_t t = 1; t < count; ++t) {
      const float v = from[taps[t]], best = from[found];
      found = !(v <= best) && best == best ? taps[t] : found;
    }
    y[k] = from[found];
    places[k] = first + k * stride + found;
  }
}

void PoolPlanes(PoolKind kind, const float* x, int64_t planes, int64_t n, float* y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = n / lanes * lanes;
  const auto left = hn::FirstN(d, static_cast<size_t>(n - whole));
  const auto least = hn::Neg(hn::Inf(d));
  for (int64_t p = 0; p < planes; ++p, x += n) {
    // With vectors of one lane such a load reads even what is masked off.
    const auto rest = whole < n ? masked::Load(left, d, x + whole) : hn::Zero(d);
    auto sum = rest;
    for (int64_t i = 0; i < whole; i += lanes) sum = hn::Add(sum, hn::LoadU(d, x + i));
    y[p] = hn::GetLane(hn::SumOfLanes(d, sum));
    if (kind == PoolKind::average) continue;
    // The sum tells of what is no number.
    auto best = hn::IfThenElse(left, rest, least);
    for (int64_t i = 0; i < whole; i += lanes) best = hn::Max(best, hn::LoadU(d, x + i));
    if (HWY_UNLIKELY(y[p] != y[p])) {
      best = least;
      for (int64_t i = 0; i < n; ++i) best = max_of(best, hn::Set(d, x[i]));
    }
    y[p] = hn::GetLane(hn::MaxOfLanes(d, best));
    if (hn::GetLane(best) != hn::GetLane(best)) y[p] = hn::GetLane(best);
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

HWY_EXPORT(PoolPlaces);
void pool_places(const float* x, int64_t stride, const int32_t* taps, int64_t count, int64_t n,
                 int64_t first, float* y, int64_t* places) {
  HWY_DYNAMIC_DISPATCH(PoolPlaces)(x, stride, taps, count, n, first, y, places);
}

HWY_EXPORT(PoolPlanes);
void pool_planes(PoolKind kind, const float* x, int64_t planes, int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(PoolPlanes)(kind, x, planes, n, y);
}

HWY_EXPORT(PoolPixels);
void pool_pixels(PoolKind kind, const float* const* taps, int64_t count, int64_t step,
                 int64_t pixels, int64_t channels, float scale, float* y) {
  HWY_DYNAMIC_DISPATCH(PoolPixels)(kind, taps, count, step, pixels, channels, scale, y);
}

HWY_EXPORT(MaxUnsigned);
HWY_EXPORT(MaxSigned);
void max_pixels(const uint8_t* const* taps, int64_t count, int64_t step, int64_t pixels,
                int64_t channels, uint8_t* y) {
  HWY_DYNAMIC_DISPATCH(MaxUnsigned)(taps, count, step, pixels, channels, y);
}
void max_pixels(const int8_t* const* taps, int64_t count, int64_t step, int64_t pixels,
                int64_t channels, int8_t* y) {
  HWY_DYNAMIC_DISPATCH(MaxSigned)(taps, count, step, pixels, channels, y);
}

}  // namespace sardonyx::kernels
#endif
