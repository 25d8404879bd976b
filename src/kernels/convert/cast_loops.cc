#include "kernels/convert/cast_loops.h"

#include <cstring>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert/cast_loops.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

// Truncated, held at the bounds of the integer; NaN is 0.
template <class Int, class Float>
Int truncate(Float v) {
  constexpr auto low = static_cast<Float>(std::numeric_limits<Int>::min());
  constexpr auto beyond = static_cast<Float>(std::numeric_limits<Int>::max() / 2 + 1) * 2;
  const Int held = v < low ? std::numeric_limits<Int>::min() : std::numeric_limits<Int>::max();
  const bool inside = v >= low && v < beyond;
  const Int value = static_cast<Int>(inside ? v : Float{0});
  return inside ? value : (v != v ? Int{0} : held);
}

template <class From, class To>
To convert_one(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) < 4) {
      return static_cast<To>(truncate<int32_t>(v));  // the low bits, as integers wrap
    } else if constexpr (std::is_same_v<To, uint64_t>) {
      return v < From{0} ? static_cast<To>(truncate<int64_t>(v)) : truncate<To>(v);
    } else if constexpr (std::is_same_v<To, uint32_t>) {
      return static_cast<To>(truncate<int64_t>(v));
    } else {
      return truncate<To>(v);
    }
  } else {
    return static_cast<To>(v);
  }
}

template <class From, class To>
void convert_loop(const void* x, void* y, int64_t n) {
  if constexpr (std::is_same_v<From, To>) {
    if (n > 0) std::memcpy(y, x, static_cast<size_t>(n) * sizeof(To));
  } else {
    // Booleans are read as bytes: any value but 0 is true, whatever a file may hold.
    using Stored = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
    const auto* from = static_cast<const Stored*>(x);
    auto* to = static_cast<To*>(y);
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<From, bool>)
        to[i] = from[i] != 0 ? To{1} : To{0};
      else
        to[i] = convert_one<From, To>(from[i]);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// What convert_one<float, To> says, for integers of up to 32 bits.
template <class To>
void truncate_floats(const void* x, void* y, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  using Stored = std::make_unsigned_t<To>;
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = static_cast<const float*>(x);
  auto* to = static_cast<Stored*>(y);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, from + i);
    const auto whole = hn::ConvertTo(di, hn::IfThenElseZero(hn::Eq(v, v), v));  // saturates
    if constexpr (sizeof(To) == 4) {
      hn::StoreU(whole, di, reinterpret_cast<int32_t*>(to) + i);
    } else {
      const hn::Rebind<Stored, decltype(d)> narrow;
      const hn::RebindToUnsigned<decltype(d)> du;
      hn::StoreU(hn::TruncateTo(narrow, hn::BitCast(du, whole)), narrow, to + i);
    }
  }
  for (; i < n; ++i) to[i] = static_cast<Stored>(convert_one<float, To>(from[i]));
}
#endif

template <class From>
constexpr void fill_row(CastLoop* row) {
  row[static_cast<int>(Basic::f32)] = convert_loop<From, float>;
  row[static_cast<int>(Basic::f64)] = convert_loop<From, double>;
  row[static_cast<int>(Basic::i8)] = convert_loop<From, int8_t>;
  row[static_cast<int>(Basic::i16)] = convert_loop<From, int16_t>;
  row[static_cast<int>(Basic::i32)] = convert_loop<From, int32_t>;
  row[static_cast<int>(Basic::i64)] = convert_loop<From, int64_t>;
  row[static_cast<int>(Basic::u8)] = convert_loop<From, uint8_t>;
  row[static_cast<int>(Basic::u16)] = convert_loop<From, uint16_t>;
  row[static_cast<int>(Basic::u32)] = convert_loop<From, uint32_t>;
  row[static_cast<int>(Basic::u64)] = convert_loop<From, uint64_t>;
  row[static_cast<int>(Basic::b1)] = convert_loop<From, bool>;
}

constexpr auto basic_count = static_cast<int>(Basic::count_);
struct LoopTable {
  CastLoop at[basic_count][basic_count];
};

constexpr LoopTable make_loops() {
  LoopTable t{};
  CastLoop* floats = t.at[static_cast<int>(Basic::f32)];
  fill_row<float>(floats);
#if HWY_TARGET != HWY_SCALAR
  floats[static_cast<int>(Basic::i8)] = truncate_floats<int8_t>;
  floats[static_cast<int>(Basic::u8)] = truncate_floats<uint8_t>;
  floats[static_cast<int>(Basic::i16)] = truncate_floats<int16_t>;
  floats[static_cast<int>(Basic::u16)] = truncate_floats<uint16_t>;
  floats[static_cast<int>(Basic::i32)] = truncate_floats<int32_t>;
#endif
  fill_row<double>(t.at[static_cast<int>(Basic::f64)]);
  fill_row<int8_t>(t.at[static_cast<int>(Basic::i8)]);
  fill_row<int16_t>(t.at[static_cast<int>(Basic::i16)]);
  fill_row<int32_t>(t.at[static_cast<int>(Basic::i32)]);
  fill_row<int64_t>(t.at[static_cast<int>(Basic::i64)]);
  fill_row<uint8_t>(t.at[static_cast<int>(Basic::u8)]);
  fill_row<uint16_t>(t.at[static_cast<int>(Basic::u16)]);
  fill_row<uint32_t>(t.at[static_cast<int>(Basic::u32)]);
  fill_row<uint64_t>(t.at[static_cast<int>(Basic::u64)]);
  fill_row<bool>(t.at[static_cast<int>(Basic::b1)]);
  return t;
}

constexpr LoopTable loops = make_loops();

CastLoop FindCast(Basic from, Basic to) {
  return loops.at[static_cast<int>(from)][static_cast<int>(to)];
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(FindCast);

CastLoop cast_loop(Basic from, Basic to) { return HWY_DYNAMIC_DISPATCH(FindCast)(from, to); }

}  // namespace sardonyx::kernels
#endif
