#include "kernels/convert/byte_scale.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert/byte_scale.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/convert/bytes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace bytes = sardonyx::HWY_NAMESPACE::bytes;

// Multiplying by 1 / scale is off by less than 2^-11 for quotients near the range; only those that
// come so near the middle between two integers must be divided. `factor` is 0 where the inverse is
// of no use.
template <class T, int vectors>
HWY_INLINE void RoundVectors(const bytes::Rounder<T>& rounder, float scale, float factor,
                             const float* x, T* y) {
  const bytes::Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto near_middle = hn::Set(d, 0.5f - 0x1p-11f);
  bytes::Vec rounded[vectors];
  auto farthest = hn::Zero(d);
  for (int i = 0; i < vectors; ++i) {
    const auto q = rounder.clip(hn::Mul(hn::LoadU(d, x + i * lanes), hn::Set(d, factor)));
    rounded[i] = rounder.round(q);
    farthest = hn::Max(farthest, hn::Abs(hn::Sub(q, rounder.whole(rounded[i]))));
  }
  if (HWY_UNLIKELY(factor == 0 || !hn::AllFalse(d, hn::Gt(farthest, near_middle)))) {
    for (int i = 0; i < vectors; ++i) {
      const auto q = hn::Div(hn::LoadU(d, x + i * lanes), hn::Set(d, scale));
      rounded[i] = rounder.round(rounder.clip(q));
    }
  }
  for (int i = 0; i < vectors; ++i) rounder.store(rounded[i], y + i * lanes);
}

template <class T>
void ToBytes(const ByteScale& how, float factor, const float* x, T* y, int64_t n) {
  const bytes::Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bytes::Rounder<T> rounder(how.zero);
  constexpr int vectors = 4;
  int64_t i = 0;
  for (; i + vectors * lanes <= n; i += vectors * lanes)
    RoundVectors<T, vectors>(rounder, how.scale, factor, x + i, y + i);
  for (; i + lanes <= n; i += lanes)
    RoundVectors<T, 1>(rounder, how.scale, factor, x + i, y + i);
  if (i == n) return;
  HWY_ALIGN float some[hn::MaxLanes(d)] = {};
  HWY_ALIGN T rest[hn::MaxLanes(d)];
  std::memcpy(some, x + i, static_cast<size_t>(n - i) * sizeof(float));
  RoundVectors<T, 1>(rounder, how.scale, factor, some, rest);
  std::memcpy(y + i, rest, static_cast<size_t>(n - i));
}

template <class T>
void ToFloats(const ByteScale& how, const T* x, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> db;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Set(di, how.zero);
  const auto scale = hn::Set(d, how.scale);
  const auto convert = [&](const T* from) HWY_ATTR {
    const auto whole = hn::Sub(hn::PromoteTo(di, hn::LoadU(db, from)), zero);
    return hn::Mul(hn::ConvertTo(d, whole), scale);
  };
  HWY_ALIGN T bytes[hn::MaxLanes(d)] = {};
  HWY_ALIGN float some[hn::MaxLanes(d)];
  for (int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, n - i));
    if (i + lanes <= n) {
      hn::StoreU(convert(x + i), d, y + i);
    } else {
      std::memcpy(bytes, x + i, count);
      hn::Store(convert(bytes), d, some);
      std::memcpy(y + i, some, count * sizeof(float));
    }
  }
}

FloatRange RangeWithZero(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> low[2] = {hn::Zero(d), hn::Zero(d)}, high[2] = {hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    for (int k = 0; k < 2; ++k) {
      const auto v = hn::LoadU(d, x + i + k * lanes);
      low[k] = hn::IfThenElse(hn::Lt(v, low[k]), v, low[k]);
      high[k] = hn::IfThenElse(hn::Gt(v, high[k]), v, high[k]);
    }
  }
  FloatRange range{hn::GetLane(hn::MinOfLanes(d, hn::Min(low[0], low[1]))),
                   hn::GetLane(hn::MaxOfLanes(d, hn::Max(high[0], high[1])))};
  for (; i < n; ++i) {
    range.low = x[i] < range.low ? x[i] : range.low;
    range.high = x[i] > range.high ? x[i] : range.high;
  }
  return range;
}

void FloatsToBytes(const ByteScale& how, float factor, const float* x, void* y, int64_t n) {
  if (how.type == ElementType::int8) return ToBytes(how, factor, x, static_cast<int8_t*>(y), n);
  ToBytes(how, factor, x, static_cast<uint8_t*>(y), n);
}

void BytesToFloats(const ByteScale& how, const void* x, float* y, int64_t n) {
  if (how.type == ElementType::int8) return ToFloats(how, static_cast<const int8_t*>(x), y, n);
  ToFloats(how, static_cast<const uint8_t*>(x), y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(RangeWithZero);
HWY_EXPORT(FloatsToBytes);
HWY_EXPORT(BytesToFloats);

void floats_to_bytes(const ByteScale& how, const float* x, void* y, int64_t n) {
  const float inverse = 1 / how.scale;
  const bool usable = std::isnormal(inverse) && std::isnormal(how.scale);
  HWY_DYNAMIC_DISPATCH(FloatsToBytes)(how, usable ? inverse : 0, x, y, n);
}

FloatRange range_with_zero(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(RangeWithZero)(x, n);
}

void bytes_to_floats(const ByteScale& how, const void* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(BytesToFloats)(how, x, y, n);
}

}  // namespace sardonyx::kernels
#endif
