// Vectors of floats rounded to bytes, compiled once for each instruction set.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_CONVERT_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_CONVERT_BYTES_INL_H_
#undef SARDONYX_KERNELS_CONVERT_BYTES_INL_H_
#else
#define SARDONYX_KERNELS_CONVERT_BYTES_INL_H_
#endif

#include <hwy/highway.h>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace sardonyx {
namespace HWY_NAMESPACE {
namespace bytes {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
using IntTag = hn::RebindToSigned<Tag>;

// saturate(round(v) + zero) as T, uint8_t or int8_t: ties to even, NaN gives the lowest value.
template <class T>
class Rounder {
 public:
  explicit HWY_INLINE Rounder(int32_t zero)
      : low_(hn::Set(Tag(), static_cast<float>(hwy::LimitsMin<T>() - zero))),
        high_(hn::Set(Tag(), static_cast<float>(hwy::LimitsMax<T>() - zero))),
        zero_(hn::Set(IntTag(), zero)) {}

  // The nearest value that rounds to what v does.
  HWY_INLINE Vec clip(Vec v) const {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    return hn::Min(hn::Max(v, low_), high_);  // the second operand where one is NaN
#else
    return hn::Min(hn::IfThenElse(hn::Gt(v, low_), v, low_), high_);
#endif
  }
  // Of a clipped value: the last bits of the sum are the integer.
  static HWY_INLINE Vec round(Vec clipped) { return hn::Add(clipped, hn::Set(Tag(), rounder)); }

  // Multiplying by 1 / scale is off by less than 2^-11 for quotients near the range; only those
  // that come so near the middle between two integers must be divided. `factor`: byte_factor.
  template <int vectors>
  HWY_INLINE void divide(float scale, float factor, const Vec* v, Vec* rounded) const {
    const Tag d;
    const auto near_middle = hn::Set(d, 0.5f - 0x1p-11f);
    auto farthest = hn::Zero(d);
    for (int i = 0; i < vectors; ++i) {
      const auto q = clip(hn::Mul(v[i], hn::Set(d, factor)));
      rounded[i] = round(q);
      farthest = hn::Max(farthest, hn::Abs(hn::Sub(q, whole(rounded[i]))));
    }
    if (HWY_LIKELY(factor != 0 && hn::AllFalse(d, hn::Gt(farthest, near_middle)))) return;
    for (int i = 0; i < vectors; ++i) rounded[i] = round(clip(hn::Div(v[i], hn::Set(d, scale))));
  }

  HWY_INLINE void store(Vec rounded, T* to) const {
    const hn::Rebind<uint8_t, Tag> du8;
    const hn::RebindToUnsigned<Tag> du;
    const auto moved = hn::Add(hn::BitCast(IntTag(), rounded), zero_);
    hn::StoreU(hn::TruncateTo(du8, hn::BitCast(du, moved)), du8, reinterpret_cast<uint8_t*>(to));
  }

 private:
  static HWY_INLINE Vec whole(Vec rounded) { return hn::Sub(rounded, hn::Set(Tag(), rounder)); }

  static constexpr float rounder = 12582912.0f;  // 1.5 * 2^23 leaves no room for a fraction
  Vec low_, high_;
  hn::Vec<IntTag> zero_;
};

// (x - zero) * scale of bytes.
class Scaler {
 public:
  HWY_INLINE Scaler(float scale, int32_t zero)
      : scale_(hn::Set(Tag(), scale)), zero_(hn::Set(IntTag(), zero)) {}

  template <class T>
  HWY_INLINE Vec load(const T* from) const {
    const auto whole = hn::PromoteTo(IntTag(), hn::LoadU(hn::Rebind<T, Tag>(), from));
    return hn::Mul(hn::ConvertTo(Tag(), hn::Sub(whole, zero_)), scale_);
  }

 private:
  Vec scale_;
  hn::Vec<IntTag> zero_;
};

}  // namespace bytes
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx
HWY_AFTER_NAMESPACE();

#endif
