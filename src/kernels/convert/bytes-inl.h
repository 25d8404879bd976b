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
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace sardonyx {
namespace HWY_NAMESPACE {
namespace bytes {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
using IntTag = hn::RebindToSigned<Tag>;

// saturate(round(v) + zero) as T, uint8_t or int8_t: ties to even, NaN gives the lowest value. Four
// vectors at a time are the fastest.
template <class T>
class Rounder {
 public:
  explicit HWY_INLINE Rounder(int32_t zero)
      : low_(hn::Set(Tag(), static_cast<float>(hwy::LimitsMin<T>() - zero))),
        high_(hn::Set(Tag(), static_cast<float>(hwy::LimitsMax<T>() - zero))),
        zero_(hn::Set(IntTag(), zero)) {}

  // Of vectors whose bytes lie side by side.
  template <int vectors>
  HWY_INLINE void store(const Vec* v, T* to) const {
    Whole whole[vectors];
    for (int i = 0; i < vectors; ++i) whole[i] = round<vectors>(v[i]);
    put<vectors>(whole, to);
  }

  // The byte that v becomes, less zero.
  HWY_INLINE Vec whole(Vec v) const { return value<1>(round<1>(v)); }

  // Of v / scale. Multiplying by 1 / scale is off by less than 2^-11 for quotients near the range;
  // only those that come so near the middle between two integers must be divided. `factor`:
  // byte_factor.
  template <int vectors>
  HWY_INLINE void store_quotients(const Vec* v, float scale, float factor, T* to) const {
    const Tag d;
    Whole whole[vectors];
    auto farthest = hn::Zero(d);
    for (int i = 0; i < vectors; ++i) {
      const auto q = clip<vectors>(hn::Mul(v[i], hn::Set(d, factor)));
      whole[i] = nearest<vectors>(q);
      const auto rest = hn::Abs(hn::Sub(q, value<vectors>(whole[i])));
      farthest = hn::Max(rest, farthest);  // on x86 the second where one is NaN
    }
    const auto near_middle = hn::Set(d, 0.5f - 0x1p-11f);
    if (HWY_UNLIKELY(factor == 0 || !hn::AllFalse(d, hn::Gt(farthest, near_middle)))) {
      for (int i = 0; i < vectors; ++i) whole[i] = round<vectors>(hn::Div(v[i], hn::Set(d, scale)));
    }
    put<vectors>(whole, to);
  }

 private:
  using Whole = hn::Vec<IntTag>;
  static constexpr float rounder = 12582912.0f;  // 1.5 * 2^23 leaves no room for a fraction

  // Whether integers are saturated while they are packed; otherwise they have been clipped, and
  // their last bytes count.
  template <int vectors>
  static constexpr bool packs = (HWY_TARGET == HWY_AVX3 && vectors == 4) ||
                                (HWY_TARGET == HWY_AVX2 && (vectors == 2 || vectors == 4));

  template <int vectors>
  HWY_INLINE Whole round(Vec v) const {
    return nearest<vectors>(clip<vectors>(v));
  }

  // The nearest value that rounds to the same byte, as far as that is needed.
  template <int vectors>
  HWY_INLINE Vec clip(Vec v) const {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    // The second operand where one is NaN, which as an integer is the lowest.
    if constexpr (packs<vectors>) return hn::Min(hn::Set(Tag(), 0x1p30f), v);
    return hn::Min(hn::Max(v, low_), high_);
#else
    return hn::Min(hn::IfThenElse(hn::Gt(v, low_), v, low_), high_);
#endif
  }

  template <int vectors>
  static HWY_INLINE Whole nearest(Vec clipped) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (packs<vectors>) return Whole{_mm512_cvtps_epi32(clipped.raw)};
#elif HWY_TARGET == HWY_AVX2
    if constexpr (packs<vectors>) return Whole{_mm256_cvtps_epi32(clipped.raw)};
#endif
    return hn::BitCast(IntTag(), hn::Add(clipped, hn::Set(Tag(), rounder)));
  }
  template <int vectors>
  static HWY_INLINE Vec value(Whole whole) {
    if constexpr (packs<vectors>) return hn::ConvertTo(Tag(), whole);
    return hn::Sub(hn::BitCast(Tag(), whole), hn::Set(Tag(), rounder));
  }

  template <int vectors>
  HWY_INLINE void put(const Whole* whole, T* to) const {
    if constexpr (packs<vectors>) {
      put_packed<vectors>(whole, to);
    } else {
      const hn::Rebind<uint8_t, Tag> du8;
      const hn::RebindToUnsigned<Tag> du;
      for (int i = 0; i < vectors; ++i, to += hn::Lanes(Tag())) {
        const auto moved = hn::BitCast(du, hn::Add(whole[i], zero_));
        hn::StoreU(hn::TruncateTo(du8, moved), du8, reinterpret_cast<uint8_t*>(to));
      }
    }
  }

  template <int vectors>
  HWY_INLINE void put_packed([[maybe_unused]] const Whole* whole, [[maybe_unused]] T* to) const {
#if HWY_TARGET == HWY_AVX3
    const auto zero = _mm512_packs_epi32(zero_.raw, zero_.raw);
    const auto low = _mm512_adds_epi16(_mm512_packs_epi32(whole[0].raw, whole[1].raw), zero);
    const auto high = _mm512_adds_epi16(_mm512_packs_epi32(whole[2].raw, whole[3].raw), zero);
    const auto mixed =
        std::is_same_v<T, int8_t> ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    // Each part of 16 bytes holds four bytes of every vector.
    const auto order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, mixed));
#elif HWY_TARGET == HWY_AVX2
    const auto zero = _mm256_packs_epi32(zero_.raw, zero_.raw);
    const auto two = [&](int i) HWY_ATTR {
      return _mm256_adds_epi16(_mm256_packs_epi32(whole[i].raw, whole[i + 1].raw), zero);
    };
    const auto low = two(0), high = vectors == 4 ? two(vectors - 2) : low;
    const auto mixed =
        std::is_same_v<T, int8_t> ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    const auto order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const auto bytes = _mm256_permutevar8x32_epi32(mixed, order);
    if constexpr (vectors == 4) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
    } else {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(bytes));
    }
#endif
  }

  Vec low_, high_;
  Whole zero_;
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
