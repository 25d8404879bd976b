#include "kernels/convert/byte_scale.h"

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

template <int vectors, class T>
HWY_INLINE void VectorsToBytes(const bytes::Rounder<T>& rounder, float scale, float factor,
                               const float* x, T* y) {
  const bytes::Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  bytes::Vec v[vectors];
  for (int i = 0; i < vectors; ++i) v[i] = hn::LoadU(d, x + i * lanes);
  rounder.template store_quotients<vectors>(v, scale, factor, y);
}

template <class T>
void ToBytes(const ByteScale& how, float factor, const float* x, T* y, int64_t n) {
  const bytes::Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bytes::Rounder<T> rounder(how.zero);
  constexpr int vectors = 4;
  int64_t i = 0;
  for (; i + vectors * lanes <= n; i += vectors * lanes)
    VectorsToBytes<vectors>(rounder, how.scale, factor, x + i, y + i);
  for (; i + lanes <= n; i += lanes) VectorsToBytes<1>(rounder, how.scale, factor, x + i, y + i);
  if (i >= n) return;
  HWY_ALIGN float some[hn::MaxLanes(d)] = {};
  HWY_ALIGN T rest[hn::MaxLanes(d)];
  std::memcpy(some, x + i, static_cast<size_t>(n - i) * sizeof(float));
  VectorsToBytes<1>(rounder, how.scale, factor, some, rest);
  std::memcpy(y + i, rest, static_cast<size_t>(n - i));
}

template <class T>
void ToFloats(const ByteScale& how, const T* x, float* y, int64_t n) {
  const bytes::Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bytes::Scaler scaler(how.scale, how.zero);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(scaler.load(x + i), d, y + i);
  if (i >= n) return;
  HWY_ALIGN T rest[hn::MaxLanes(d)] = {};
  HWY_ALIGN float some[hn::MaxLanes(d)];
  std::memcpy(rest, x + i, static_cast<size_t>(n - i));
  hn::Store(scaler.load(rest), d, some);
  std::memcpy(y + i, some, static_cast<size_t>(n - i) * sizeof(float));
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

float byte_factor(float scale) {
  const float inverse = 1 / scale;
  return std::isnormal(inverse) && std::isnormal(scale) ? inverse : 0;
}

void floats_to_bytes(const ByteScale& how, const float* x, void* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FloatsToBytes)(how, byte_factor(how.scale), x, y, n);
}

FloatRange range_with_zero(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(RangeWithZero)(x, n);
}

void bytes_to_floats(const ByteScale& how, const void* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(BytesToFloats)(how, x, y, n);
}

}  // namespace sardonyx::kernels
#endif
