// The plain loops of binary operators for one element type; compiled once for each instruction set,
// so that compilers make vectors of them.
#if defined(SARDONYX_KERNELS_ELEMENTWISE_BINARY_PLAIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_ELEMENTWISE_BINARY_PLAIN_INL_H_
#undef SARDONYX_KERNELS_ELEMENTWISE_BINARY_PLAIN_INL_H_
#else
#define SARDONYX_KERNELS_ELEMENTWISE_BINARY_PLAIN_INL_H_
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/binary_plain.h"
#include "kernels/elementwise/division-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

// Integers as their unsigned kind of at least 32 bits, in which arithmetic wraps.
template <class T, bool integral = std::is_integral_v<T>>
struct WrappingOf {
  using type = T;
};
template <class T>
struct WrappingOf<T, true> {
  using type = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
};
template <class T>
using Wrapping = typename WrappingOf<T>::type;

// a^b for integers; negative powers as rounding towards zero has them.
template <class T>
T integer_power(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b < T{0}) {
      if (a == T{1}) return T{1};
      if (a == T{-1}) return b % 2 == 0 ? T{1} : T{-1};
      return T{0};
    }
  }
  auto base = static_cast<Wrapping<T>>(a);
  Wrapping<T> power = 1;
  for (auto rest = static_cast<std::make_unsigned_t<T>>(b); rest != 0; rest >>= 1) {
    if (rest & 1) power *= base;
    base *= base;
  }
  return static_cast<T>(power);
}

template <class T>
T power_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::pow(a, b);
  } else {
    return integer_power(a, b);
  }
}

// Rows of both sides, or a row and one number: a loop for each.
template <class T, class F>
void arithmetic_rows(const void* a, const void* b, void* y, int64_t n, int64_t sa, int64_t sb) {
  const auto *x0 = static_cast<const T*>(a), *x1 = static_cast<const T*>(b);
  auto* out = static_cast<T*>(y);
  const F f{};
  if (sa == 0 && sb == 0) {
    std::fill_n(out, n, static_cast<T>(f(*x0, *x1)));
  } else if (sa == 0) {
    const T value = *x0;
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(f(value, x1[i]));
  } else if (sb == 0) {
    const T value = *x1;
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(f(x0[i], value));
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(f(x0[i], x1[i]));
  }
}

template <class T, class F>
PlainRow arithmetic_row(F) {
  return arithmetic_rows<T, F>;
}

// Rows of both sides. A number on one side is taken element by element: only powers come with one,
// other callers repeat it.
template <class T, class Result, class F>
HWY_NOINLINE void plain_rows(const void* a, const void* b, void* y, int64_t n, int64_t sa,
                             int64_t sb) {
  const auto* x0 = static_cast<const T*>(a);
  const auto* x1 = static_cast<const T*>(b);
  auto* out = static_cast<Result*>(y);
  const F f{};
  if (sa == 1 && sb == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Result>(f(x0[i], x1[i]));
  } else {
    const PlainRow row = plain_rows<T, Result, F>;
    for (int64_t i = 0; i < n; ++i) row(x0 + i * sa, x1 + i * sb, out + i, 1, 1, 1);
  }
}

template <class T, class Result = T, class F>
PlainRow row_of(F) {
  return plain_rows<T, Result, F>;
}

// A comparison of b and a: a > b is b < a, and takes no code of its own.
template <class T, class F>
void swapped_rows(const void* a, const void* b, void* y, int64_t n, int64_t sa, int64_t sb) {
  plain_rows<T, uint8_t, F>(b, a, y, n, sb, sa);
}

struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};

template <class T, Division what>
PlainRow division_row() {
  constexpr bool vectors = HWY_TARGET != HWY_SCALAR;  // else the machine's divisions are faster
  constexpr bool whole = std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;
  constexpr bool floating = std::is_floating_point_v<T> && what != Division::quotient;
  if constexpr (vectors && (whole || floating)) return DivideRows<T, what>;
  return arithmetic_row<T>([](T a, T b) { return divided<what>(a, b); });
}

// Operators that do the same to the bits of signed and of unsigned integers.
template <class T>
PlainRow signless_row(BinaryOp op) {
  using W = Wrapping<T>;
  switch (op) {
    case BinaryOp::add: return arithmetic_row<T>([](T a, T b) { return W(a) + W(b); });
    case BinaryOp::sub: return arithmetic_row<T>([](T a, T b) { return W(a) - W(b); });
    case BinaryOp::mul: return arithmetic_row<T>([](T a, T b) { return W(a) * W(b); });
    case BinaryOp::equal: return row_of<T, uint8_t>([](T a, T b) { return a == b; });
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    constexpr T width = std::numeric_limits<T>::digits;
    switch (op) {
      case BinaryOp::bit_and: return row_of<T>([](T a, T b) { return a & b; });
      case BinaryOp::bit_or: return row_of<T>([](T a, T b) { return a | b; });
      case BinaryOp::bit_xor: return row_of<T>([](T a, T b) { return a ^ b; });
      case BinaryOp::shift_left:
        return row_of<T>([](T a, T b) { return b < width ? T(W(a) << b) : T{0}; });
      default: break;
    }
  }
  return nullptr;
}

template <class T>
PlainRow ordered_row(BinaryOp op) {
  using W = Wrapping<T>;
  switch (op) {
    case BinaryOp::div: return division_row<T, Division::quotient>();
    case BinaryOp::pow: return row_of<T>([](T a, T b) { return power_of(a, b); });
    case BinaryOp::min: return row_of<T>([](T a, T b) { return a != a || a < b ? a : b; });
    case BinaryOp::max: return row_of<T>([](T a, T b) { return a != a || a > b ? a : b; });
    case BinaryOp::mod: return division_row<T, Division::remainder_like_python>();
    case BinaryOp::fmod: return division_row<T, Division::remainder_like_c>();
    case BinaryOp::prelu: return row_of<T>([](T a, T b) { return a < T{0} ? T(W(a) * W(b)) : a; });
    case BinaryOp::gate: return row_of<T>([](T a, T b) { return a > T{0} ? b : T{0}; });
    case BinaryOp::less: return plain_rows<T, uint8_t, Less>;
    case BinaryOp::greater: return swapped_rows<T, Less>;
    case BinaryOp::less_equal: return plain_rows<T, uint8_t, LessEqual>;
    case BinaryOp::greater_equal: return swapped_rows<T, LessEqual>;
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    constexpr U width = std::numeric_limits<U>::digits;
    if (op == BinaryOp::shift_right) {
      return row_of<T>([](T a, T b) {
        if (U(b) < width) return static_cast<T>(a >> b);  // signed: the sign moves in
        return static_cast<T>(a < T{0} ? T(-1) : T(0));
      });
    }
  }
  return nullptr;
}

// For the .cc files that instantiate plain_binary.
template <class T>
PlainRow any_plain(BinaryOp op) {
  if (const PlainRow row = ordered_row<T>(op)) return row;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return nullptr;  // that of unsigned integers does it
  } else {
    return signless_row<T>(op);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
