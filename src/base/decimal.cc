// The shortest digits of floats by Raffaello Giulietti's method ("The Schubfach way to render
// doubles", 2020), on vectors: the bounds of the interval that rounds to the float are multiplied
// with a power of ten, and of the numbers with the fewest digits between them the nearest is taken.
#include "base/decimal.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/decimal.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef SARDONYX_BASE_DECIMAL_TABLES
#define SARDONYX_BASE_DECIMAL_TABLES
namespace sardonyx {
namespace {

// What the digits of the floats with one exponent are made with. A float with a significand c and
// the binary exponent q is c * 2^q; its digits count units of 10^k.
struct Scales {
  std::array<uint64_t, 256> power{};     // the top 64 bits of 10^-k, rounded up
  std::array<uint64_t, 256> shift{};     // 2^q * 10^-k = power * 2^(shift - 64)
  std::array<uint64_t, 256> exponent{};  // k, above min_exponent
};
constexpr int64_t min_exponent = -64;

constexpr int64_t floor_log10_of_power2(int64_t e) { return (e * 1262611) >> 22; }
constexpr int64_t floor_log2_of_power10(int64_t e) { return (e * 1741647) >> 19; }

// Numbers of 192 bits, the lowest 32 first: enough for 10^45.
using Wide = std::array<uint32_t, 6>;

constexpr bool multiply(Wide& number, uint32_t factor) {
  uint64_t carry = 0;
  for (uint32_t& digit : number) {
    carry += uint64_t{digit} * factor;
    digit = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  return carry == 0;
}

constexpr bool bit(const Wide& number, int64_t at) {
  return (number[at / 32] >> (at % 32) & 1) != 0;
}

// The top 64 bits of 10^n, rounded up.
constexpr uint64_t top_of_power10(int64_t n) {
  const int64_t size = floor_log2_of_power10(n < 0 ? -n : n) + 1;  // bits of 10^|n|
  Wide power{1};
  for (int64_t i = 0; i < (n < 0 ? -n : n); ++i) multiply(power, 10);
  uint64_t top = 0;
  if (n >= 0) {
    for (int64_t i = size - 1; i >= size - 64; --i)
      top = top << 1 | (i >= 0 && bit(power, i) ? 1 : 0);
    for (int64_t i = size - 65; i >= 0; --i) {
      if (bit(power, i)) return top + 1;
    }
    return top;
  }
  // Division bit by bit: of 2^(size + 63) by 10^|n|, which is no power of two and leaves a rest.
  Wide rest{};
  rest[static_cast<size_t>(size - 1) / 32] = uint32_t{1} << ((size - 1) % 32);
  for (int i = 0; i < 64; ++i) {
    multiply(rest, 2);
    bool fits = true;
    for (size_t at = rest.size(); at-- > 0;) {
      if (rest[at] == power[at]) continue;
      fits = rest[at] > power[at];
      break;
    }
    top = top << 1 | (fits ? 1 : 0);
    uint64_t borrow = 0;
    for (size_t at = 0; fits && at < rest.size(); ++at) {
      const uint64_t difference = uint64_t{rest[at]} - power[at] - borrow;
      rest[at] = static_cast<uint32_t>(difference);
      borrow = difference >> 63;
    }
  }
  return top + 1;
}

constexpr Scales make_scales() {
  Scales scales;
  int64_t last = min_exponent;
  uint64_t power = 0;
  for (int64_t e = 1; e < 255; ++e) {
    const int64_t q = e - 150;
    const int64_t k = floor_log10_of_power2(q);
    if (k != last) power = top_of_power10(-k);
    last = k;
    scales.power[e] = power;
    scales.shift[e] = static_cast<uint64_t>(q + floor_log2_of_power10(-k) + 1);
    scales.exponent[e] = static_cast<uint64_t>(k - min_exponent);
  }
  return scales;
}

constexpr Scales scales = make_scales();

// The digits of some floats: nine of each, the first of which is not 0.
constexpr size_t block = 64;
struct Digits {
  alignas(64) uint32_t bits[block] = {};  // of the floats
  alignas(64) uint64_t head[block];  // the first digit, and above 8 bits the power of ten it counts
  alignas(64) uint64_t tail[block];  // the other eight, a byte each, in the order of memory
};

}  // namespace
}  // namespace sardonyx
#endif

HWY_BEFORE_NAMESPACE();
namespace sardonyx {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<uint64_t>;
using V = hn::Vec<D>;

// The product of the low halves of 64-bit lanes.
HWY_INLINE V Product(V a, V b) {
#if HWY_TARGET == HWY_SCALAR
  const V low = hn::Set(D(), 0xffffffff);
  return hn::Mul(hn::And(a, low), hn::And(b, low));
#else
  const hn::Repartition<uint32_t, D> parts;
  return hn::MulEven(hn::BitCast(parts, a), hn::BitCast(parts, b));
#endif
}

// Multiplies each T in the lanes; no product may be too large for it.
template <class T>
HWY_INLINE V ProductOfParts(V v, T factor) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Mul(v, hn::Set(D(), factor));
#else
  const hn::Repartition<T, D> parts;
  return hn::BitCast(D(), hn::Mul(hn::BitCast(parts, v), hn::Set(parts, factor)));
#endif
}

// power * factor / 2^64, where what is cut off shows as an odd number.
HWY_INLINE V RoundToOdd(V low, V high, V factor) {
  const D d;
  const hn::RebindToSigned<D> di;
  const V sum = hn::Add(Product(high, factor), hn::ShiftRight<32>(Product(low, factor)));
  const V rest = hn::And(sum, hn::Set(d, 0xffffffff));
  const auto sticky = hn::Gt(hn::BitCast(di, rest), hn::Set(di, 1));
  return hn::Or(hn::ShiftRight<32>(sum),
                hn::IfThenElseZero(hn::RebindMask(d, sticky), hn::Set(d, 1)));
}

// Fills head and tail of normal floats that are no power of two.
void MakeDigits(Digits& digits) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint32_t, D> half;
  const auto number = [&](uint64_t value) HWY_ATTR { return hn::Set(d, value); };
  const auto less = [&](V a, V b)
                        HWY_ATTR { return hn::Lt(hn::BitCast(di, a), hn::BitCast(di, b)); };
  const auto one_if = [&](auto mask) HWY_ATTR {
    return hn::BitCast(d, hn::IfThenElseZero(mask, hn::Set(di, 1)));
  };
  for (size_t i = 0; i < block; i += hn::Lanes(d)) {
    const V bits = hn::PromoteTo(d, hn::Load(half, digits.bits + i));
    const auto e = hn::BitCast(di, hn::And(hn::ShiftRight<23>(bits), number(255)));
    const V c = hn::Or(hn::And(bits, number(0x7fffff)), number(0x800000));
    const V power = hn::GatherIndex(d, scales.power.data(), e);
    const V shift = hn::GatherIndex(d, scales.shift.data(), e);
    V exponent = hn::GatherIndex(d, scales.exponent.data(), e);

    // Four times the value and the bounds of what rounds to it, in units of 10^k.
    const V low = hn::And(power, number(0xffffffff)), high = hn::ShiftRight<32>(power);
    const V four = hn::ShiftLeft<2>(c);
    const V odd = hn::And(c, number(1));
    const V value = RoundToOdd(low, high, hn::Shl(four, shift));
    const V least = hn::Add(RoundToOdd(low, high, hn::Shl(hn::Sub(four, number(2)), shift)), odd);
    const V most = hn::Sub(RoundToOdd(low, high, hn::Shl(hn::Add(four, number(2)), shift)), odd);

    // One digit fewer, where just one of the two neighbours lies within.
    const V below = hn::ShiftRight<2>(value);
    const V tens = hn::ShiftRight<35>(Product(below, number(0xcccccccd)));
    const V tens4 = Product(tens, number(40));
    const auto tens_fit = one_if(hn::Not(less(tens4, least)));
    const auto more_fit = one_if(hn::Not(less(most, hn::Add(tens4, number(40)))));
    const auto shorter = hn::Ne(tens_fit, more_fit);

    // Else the nearer of the two neighbours, or the one that lies within.
    const V below4 = hn::ShiftLeft<2>(below);
    const V fits = one_if(hn::Not(less(below4, least)));
    const V next_fits = one_if(hn::Not(less(most, hn::Add(below4, number(4)))));
    const V past_middle =
        one_if(less(hn::Add(below4, number(2)), hn::Add(value, hn::And(below, number(1)))));
    const V up = hn::IfThenElse(hn::Eq(fits, next_fits), past_middle, next_fits);
    V all = hn::IfThenElse(shorter, hn::Add(tens, more_fit), hn::Add(below, up));
    exponent = hn::Add(exponent, hn::IfThenElseZero(shorter, number(1)));

    // From six to nine digits to nine.
    const auto few = hn::RebindMask(d, less(all, number(10'000'000)));
    all = hn::IfThenElse(few, Product(all, number(100)), all);
    exponent = hn::Sub(exponent, hn::IfThenElseZero(few, number(2)));
    const auto still = hn::RebindMask(d, less(all, number(100'000'000)));
    all = hn::IfThenElse(still, Product(all, number(10)), all);
    exponent = hn::Sub(exponent, hn::IfThenElseZero(still, number(1)));

    // The first digit (2882303762 is 2^58 / 10^8), then the others by halves.
    const V first = hn::ShiftRight<58>(Product(all, number(2882303762)));
    const V rest = hn::Sub(all, Product(first, number(100'000'000)));
    const V upper = hn::ShiftRight<45>(Product(rest, number(3518437209)));
    const V lower = hn::Sub(rest, Product(upper, number(10'000)));
    const V fours = hn::Or(upper, hn::ShiftLeft<32>(lower));
    const V hundreds = hn::And(hn::ShiftRight<20>(ProductOfParts<uint32_t>(fours, 10486)),
                               number(0x0000007f0000007f));
    const V units = hn::Sub(fours, ProductOfParts<uint32_t>(hundreds, 100));
    const V twos = hn::Or(hundreds, hn::ShiftLeft<16>(units));
    const V ten = hn::And(hn::ShiftRight<10>(ProductOfParts<uint16_t>(twos, 103)),
                          number(0x000f000f000f000f));
    const V one = hn::Sub(twos, ProductOfParts<uint16_t>(ten, 10));
    hn::Store(hn::Or(ten, hn::ShiftLeft<8>(one)), d, digits.tail + i);
    hn::Store(hn::Or(first, hn::ShiftLeft<8>(exponent)), d, digits.head + i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx {
namespace {

HWY_EXPORT(MakeDigits);

char* write_text(char* to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

template <class T>
void store(char* to, T bytes) {
  std::memcpy(to, &bytes, sizeof bytes);
}

// Zeros, subnormal numbers, powers of two, infinities, NaNs, and integers of eight digits and more.
char* write_other(char* to, float value) {
  if (std::isnan(value)) return write_text(to, std::signbit(value) ? "-nan" : "nan");
  return std::to_chars(to, to + float_room, value).ptr;
}

uint64_t in_memory_order(uint64_t first_byte_lowest) {
  if constexpr (std::endian::native == std::endian::little) return first_byte_lowest;
  return __builtin_bswap64(first_byte_lowest);
}

// d.ddddddde+dd with as many digits as there are.
char* write_scientific(char* to, char first, uint64_t tail, int count, int64_t exponent) {
  to[0] = first;
  to[1] = '.';
  store(to + 2, in_memory_order(tail));
  to += count == 1 ? 1 : count + 1;
  to[0] = 'e';
  to[1] = exponent < 0 ? '-' : '+';
  const int64_t size = std::abs(exponent);
  to[2] = static_cast<char>('0' + size / 10);
  to[3] = static_cast<char>('0' + size % 10);
  return to + 4;
}

// All stores are of whole words, and what follows overwrites their ends.
HWY_INLINE char* write_float(char* to, uint32_t bits, uint64_t head, uint64_t tail) {
  const uint32_t biased = bits >> 23 & 255;
  if (HWY_UNLIKELY((bits & 0x7fffff) == 0 || biased - 1 >= 254)) {
    if (bits == 0) {
      *to = '0';
      return to + 1;
    }
    return write_other(to, std::bit_cast<float>(bits));
  }
  *to = '-';
  to += bits >> 31;
  const auto first = static_cast<char>('0' + (head & 255));
  const int count = 9 - std::countl_zero(tail) / 8;
  tail |= 0x3030303030303030;
  const int64_t exponent =
      static_cast<int64_t>(head >> 8) + min_exponent + 8;  // of the first digit
  // Plain notation where it is not longer than the one with an exponent.
  if (HWY_LIKELY(exponent < 0 && exponent >= (count == 1 ? -3 : -4))) {
    store(to, in_memory_order(0x3030303030302e30));
    to += 1 - exponent;
    *to = first;
    store(to + 1, in_memory_order(tail));
    return to + count;
  }
  if (exponent >= 0 && count > exponent + 1) {
    *to = first;
    store(to + 1, in_memory_order(tail));
    to[exponent + 1] = '.';
    store(to + exponent + 2, in_memory_order(tail >> (8 * exponent)));
    return to + count + 1;
  }
  if (exponent >= 0 && exponent < (count == 1 ? 5 : 7)) {
    *to = first;
    store(to + 1, in_memory_order(tail));
    return to + exponent + 1;
  }
  const int64_t with_exponent = count + (count > 1 ? 1 : 0) + 4;
  if (exponent >= 0 && exponent + 1 <= with_exponent) {
    const float value = std::bit_cast<float>(bits & 0x7fffffff);
    return std::to_chars(to, to + float_room, static_cast<uint64_t>(value)).ptr;
  }
  return write_scientific(to, first, tail, count, exponent);
}

}  // namespace

char* write_floats(char* to, const void* floats, size_t count, bool first) {
  const auto make_digits = HWY_DYNAMIC_DISPATCH(MakeDigits);
  Digits digits;
  for (size_t begin = 0; begin < count; begin += block) {
    const size_t some = count - begin < block ? count - begin : block;
    std::memcpy(digits.bits, static_cast<const char*>(floats) + begin * sizeof(float),
                some * sizeof(float));
    make_digits(digits);
    for (size_t i = 0; i < some; ++i) {
      std::memcpy(to, ", ", 2);
      to += first ? 0 : 2;
      first = false;
      to = write_float(to, digits.bits[i], digits.head[i], digits.tail[i]);
    }
  }
  return to;
}

}  // namespace sardonyx
#endif  // HWY_ONCE
