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
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // NaN leaves the other one: on x86 the second counts where one is NaN.
  const auto least = [](V v, V low) HWY_ATTR {
    return HWY_ARCH_X86 ? hn::Min(v, low) : hn::IfThenElse(hn::Lt(v, low), v, low);
  };
  const auto most = [](V v, V high) HWY_ATTR {
    return HWY_ARCH_X86 ? hn::Max(v, high) : hn::IfThenElse(hn::Gt(v, high), v, high);
  };
  constexpr int vectors = 4;
  V low[vectors], high[vectors];
  for (int k = 0; k < vectors; ++k) low[k] = high[k] = hn::Zero(d);
  int64_t i = 0;
  for (; i + vectors * lanes <= n; i += vectors * lanes) {
    for (int k = 0; k < vectors; ++k) {
      const auto v = hn::LoadU(d, x + i + k * lanes);
      low[k] = least(v, low[k]);
      high[k] = most(v, high[k]);
    }
  }
  FloatRange range{
      hn::GetLane(hn::MinOfLanes(d, hn::Min(hn::Min(low[0], low[1]), hn::Min(low[2], low[3])))),
      hn::GetLane(
          hn::MaxOfLanes(d, hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3]))))};
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
