// Quotients and remainders of rows of numbers, by divisions of vectors of double; compiled once for
// each instruction set.
#if defined(SARDONYX_KERNELS_ELEMENTWISE_DIVISION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_ELEMENTWISE_DIVISION_INL_H_
#undef SARDONYX_KERNELS_ELEMENTWISE_DIVISION_INL_H_
#else
#define SARDONYX_KERNELS_ELEMENTWISE_DIVISION_INL_H_
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

enum class Division { quotient, remainder_like_c, remainder_like_python };

// Towards zero, 0 for a divisor of 0; the least number by -1 wraps.
template <class T>
T truncated_quotient(T a, T b) {
  if (b == T{0}) return T{0};
  if constexpr (std::is_signed_v<T>) {
    using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
    if (b == T{-1}) return static_cast<T>(Wrapping{0} - static_cast<Wrapping>(a));
  }
  return static_cast<T>(a / b);
}

template <class T>
T remainder_like_c(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == T{0}) return T{0};
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return T{0};
    }
    return static_cast<T>(a % b);
  }
}

// The sign of the divisor, as Python has it.
template <class T>
T remainder_like_python(T a, T b) {
  const T r = remainder_like_c(a, b);
  if constexpr (std::is_floating_point_v<T>) {
    if (r == T{0}) return std::copysign(r, b);
  }
  if constexpr (std::is_signed_v<T> || std::is_floating_point_v<T>) {
    if (r != T{0} && (r < T{0}) != (b < T{0})) return static_cast<T>(r + b);
  }
  return r;
}

template <Division what, class T>
T divided(T a, T b) {
  if constexpr (what == Division::quotient) {
    if constexpr (std::is_floating_point_v<T>)
      return a / b;
    else
      return truncated_quotient(a, b);
  } else if constexpr (what == Division::remainder_like_c) {
    return remainder_like_c(a, b);
  } else {
    return remainder_like_python(a, b);
  }
}

// Of whole numbers up to 2^50, whose quotients and products doubles tell apart; 0 where b is.
template <Division what, class D, class V>
HWY_INLINE V DivideWhole(D d, V a, V b) {
  const V zero = hn::Zero(d);
  const auto none = hn::Eq(b, zero);
  const V divisor = hn::IfThenElse(none, hn::Set(d, 1.0), b);
  const V quotient = hn::Trunc(hn::Div(a, divisor));
  V value = quotient;
  if constexpr (what != Division::quotient) value = hn::NegMulAdd(quotient, divisor, a);
  if constexpr (what == Division::remainder_like_python) {
    value = hn::IfThenElse(hn::Lt(hn::Mul(value, divisor), zero), hn::Add(value, divisor), value);
  }
  return hn::IfThenZeroElse(none, value);
}

// How rows of T are divided by vectors: `divide` gives false where it cannot tell the results.
template <class T, Division what>
struct Divider;

template <Division what>
struct Divider<int32_t, what> {
  using D = hn::Rebind<int32_t, hn::ScalableTag<double>>;
  using V = hn::Vec<D>;
  static HWY_INLINE bool divide(D d, V a, V b, V& y) {
    const hn::ScalableTag<double> wide;
    y = hn::DemoteTo(d, DivideWhole<what>(wide, hn::PromoteTo(wide, a), hn::PromoteTo(wide, b)));
    if constexpr (what == Division::quotient)
      y = hn::IfThenElse(hn::Eq(b, hn::Set(d, -1)), hn::Sub(hn::Zero(d), a), y);
    return true;
  }
};

template <Division what>
struct Divider<int64_t, what> {
  using D = hn::ScalableTag<int64_t>;
  using V = hn::Vec<D>;
  static HWY_INLINE bool divide(D d, V a, V b, V& y) {
    const hn::ScalableTag<double> wide;
    const V bias = hn::Set(d, int64_t{1} << 50);
    const V high = hn::ShiftRight<51>(hn::Or(hn::Add(a, bias), hn::Add(b, bias)));
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Eq(high, hn::Zero(d))))) return false;
    // Such numbers are the low bits of doubles beside 1.5 2^52.
    const auto beside = hn::Set(wide, 0x1.8p52);
    const V offset = hn::BitCast(d, beside);
    const auto widened = [&](V v) HWY_ATTR {
      return hn::Sub(hn::BitCast(wide, hn::Add(v, offset)), beside);
    };
    const auto result = DivideWhole<what>(wide, widened(a), widened(b));
    y = hn::Sub(hn::BitCast(d, hn::Add(result, beside)), offset);
    return true;
  }
};

// Remainders of floats are exact: a - q b is a number of their type, and so is what one b too many
// leaves. That takes a fused multiply-add and a quotient that is exact but for its rounding.
template <class T, Division what>
requires std::is_floating_point_v<T>
struct Divider<T, what> {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static HWY_INLINE bool divide(D d, V a, V b, V& y) {
    constexpr bool fused = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64;
    if constexpr (fused) {
      const V zero = hn::Zero(d);
      const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
      const V quotient = hn::Div(a, b);
      const V most = hn::Set(d, static_cast<T>(int64_t{1} << (std::numeric_limits<T>::digits - 1)));
      const auto easy = hn::And(hn::Lt(hn::Abs(quotient), most), hn::Lt(hn::Abs(b), infinity));
      if (HWY_UNLIKELY(!hn::AllTrue(d, easy))) return false;
      V r = hn::NegMulAdd(hn::Trunc(quotient), b, a);
      const V back = hn::CopySign(b, a);
      const auto beyond = hn::Xor(hn::Lt(r, zero), hn::Lt(a, zero));
      r = hn::IfThenElse(hn::And(beyond, hn::Ne(r, zero)), hn::Add(r, back), r);
      r = hn::CopySign(r, a);
      if constexpr (what == Division::remainder_like_python) {
        const auto none = hn::Eq(r, zero);
        const auto turned = hn::Xor(hn::Lt(r, zero), hn::Lt(b, zero));
        r = hn::IfThenElse(none, hn::CopySign(r, b), hn::IfThenElse(turned, hn::Add(r, b), r));
      }
      y = r;
      return true;
    }
    return false;
  }
};

// y[i] = a[i sa] by b[i sb], where sa and sb are 0 or 1.
template <class T, Division what>
void DivideRows(const void* a, const void* b, void* y, int64_t n, int64_t sa, int64_t sb) {
  using Vectors = Divider<T, what>;
  const typename Vectors::D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *x0 = static_cast<const T*>(a), *x1 = static_cast<const T*>(b);
  auto* out = static_cast<T*>(y);
  const auto side = [&](const T* x, int64_t i, int64_t stride)
                        HWY_ATTR { return stride == 0 ? hn::Set(d, *x) : hn::LoadU(d, x + i); };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto quotients = hn::Zero(d);
    if (HWY_LIKELY(Vectors::divide(d, side(x0, i, sa), side(x1, i, sb), quotients))) {
      hn::StoreU(quotients, d, out + i);
    } else {
      for (int64_t k = i; k < i + lanes; ++k) out[k] = divided<what>(x0[k * sa], x1[k * sb]);
    }
  }
  for (; i < n; ++i) out[i] = divided<what>(x0[i * sa], x1[i * sb]);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
