// Tiles of float16, bfloat16 and float8 from and to float32.
#include "kernels/convert/low_precision.h"
#include "kernels/convert/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert/float16.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Float16 has no arithmetic here, so its tiles move as uint16_t and are bit-cast. Highway's
// emulation of vectors converts neither infinities nor the sign of zero.
void Float16ToFloat(const uint16_t* x, float* y, int64_t n) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint16_t, decltype(d)> du;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(du, x + i))), d, y + i);
  }
#endif
  for (; i < n; ++i) y[i] = half_to_float(x[i]);
}

void FloatToFloat16(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint16_t, decltype(d)> du;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::BitCast(du, hn::DemoteTo(dh, hn::LoadU(d, x + i))), du, y + i);
  }
#endif
  for (; i < n; ++i) y[i] = float_to_half(x[i]);
}

void Bfloat16ToFloat(const uint16_t* x, float* y, int64_t n) {
  int64_t i = 0;
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> d32;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) {
    const auto wide = hn::PromoteTo(d32, hn::LoadU(d16, x + i));
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(wide)), d, y + i);
  }
  for (; i < n; ++i) y[i] = bfloat16_to_float(x[i]);
}

void FloatToBfloat16(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto bits = hn::BitCast(du, v);
    const auto high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(du, 1));
    const auto near = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff))));
    const auto quiet = hn::Or(high, hn::Set(du, 0x40));
    const auto code = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, near);
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, code)), d16, y + i);
  }
  for (; i < n; ++i) y[i] = float_to_bfloat16(x[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

HWY_EXPORT(Float16ToFloat);
HWY_EXPORT(FloatToFloat16);
HWY_EXPORT(Bfloat16ToFloat);
HWY_EXPORT(FloatToBfloat16);

template <class Format>
void decode_bytes(const uint8_t* x, float* y, int64_t n) {
  static const auto table = [] {
    struct Values {
      float of[256];
    } values;
    for (uint32_t i = 0; i < 256; ++i) values.of[i] = Format::decode(i);
    return values;
  }();
  for (int64_t i = 0; i < n; ++i) y[i] = table.of[x[i]];
}

template <class Format>
void encode_bytes(const float* x, uint8_t* y, int64_t n, bool saturate) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<uint8_t>(Format::encode(x[i], saturate));
}

}  // namespace

void half_to_floats(const uint16_t* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Float16ToFloat)(x, y, n);
}
void floats_to_half(const float* x, uint16_t* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FloatToFloat16)(x, y, n);
}
void bfloat16_to_floats(const uint16_t* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Bfloat16ToFloat)(x, y, n);
}
void floats_to_bfloat16(const float* x, uint16_t* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FloatToBfloat16)(x, y, n);
}

void float8_to_floats(ElementType type, const uint8_t* x, float* y, int64_t n) {
  switch (type) {
    case ElementType::float8e4m3fn: return decode_bytes<Float8e4m3fn>(x, y, n);
    case ElementType::float8e4m3fnuz: return decode_bytes<Float8e4m3fnuz>(x, y, n);
    case ElementType::float8e5m2: return decode_bytes<Float8e5m2>(x, y, n);
    case ElementType::float8e5m2fnuz: return decode_bytes<Float8e5m2fnuz>(x, y, n);
    case ElementType::float4e2m1: return decode_bytes<Float4e2m1>(x, y, n);
    case ElementType::float6e2m3: return decode_bytes<Float6e2m3>(x, y, n);
    case ElementType::float6e3m2: return decode_bytes<Float6e3m2>(x, y, n);
    default:
      for (int64_t i = 0; i < n; ++i) y[i] = e8m0_to_float(x[i]);
  }
}

void floats_to_float8(ElementType type, const float* x, uint8_t* y, int64_t n,
                      const CastOptions& options) {
  const bool saturate = options.saturate;
  switch (type) {
    case ElementType::float8e4m3fn: return encode_bytes<Float8e4m3fn>(x, y, n, saturate);
    case ElementType::float8e4m3fnuz: return encode_bytes<Float8e4m3fnuz>(x, y, n, saturate);
    case ElementType::float8e5m2: return encode_bytes<Float8e5m2>(x, y, n, saturate);
    case ElementType::float8e5m2fnuz: return encode_bytes<Float8e5m2fnuz>(x, y, n, saturate);
    case ElementType::float4e2m1: return encode_bytes<Float4e2m1>(x, y, n, saturate);
    case ElementType::float6e2m3: return encode_bytes<Float6e2m3>(x, y, n, saturate);
    case ElementType::float6e3m2: return encode_bytes<Float6e3m2>(x, y, n, saturate);
    default: {
      const bool up = options.round_mode == RoundMode::up;
      const bool nearest = options.round_mode == RoundMode::nearest;
      for (int64_t i = 0; i < n; ++i) y[i] = float_to_e8m0(x[i], saturate, up, nearest);
    }
  }
}

}  // namespace sardonyx::kernels
#endif
