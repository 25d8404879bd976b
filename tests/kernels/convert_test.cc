// Conversions, against arithmetic done another way.
#include "kernels/convert/cast.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/convert/byte_scale.h"
#include "kernels/convert/low_precision.h"
#include "kernels/convert/packed.h"
#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

using test::each_target;
using test::one_thread;
using test::two_threads;

// A format's positive finite values in the order of their patterns, from its definition alone.
struct Format {
  ElementType type;
  int exponent_bits, mantissa_bits, bias;
  bool ieee, unsigned_zero;
  int top_patterns;  // positive patterns that are finite numbers

  double value(int pattern) const {
    const int mantissa = pattern & ((1 << mantissa_bits) - 1);
    const int exponent = pattern >> mantissa_bits;
    const double fraction = std::ldexp(mantissa, -mantissa_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias)
                         : std::ldexp(1 + fraction, exponent - bias);
  }
  int width() const { return 1 + exponent_bits + mantissa_bits; }
};

const Format formats[] = {
    {ElementType::float16, 5, 10, 15, true, false, 0x7c00},
    {ElementType::bfloat16, 8, 7, 127, true, false, 0x7f80},
    {ElementType::float8e4m3fn, 4, 3, 7, false, false, 0x7f},
    {ElementType::float8e4m3fnuz, 4, 3, 8, false, true, 0x80},
    {ElementType::float8e5m2, 5, 2, 15, true, false, 0x7c},
    {ElementType::float8e5m2fnuz, 5, 2, 16, false, true, 0x80},
};

uint32_t pattern_of(const Format& f, const void* y, size_t i) {
  return f.width() == 16 ? static_cast<const uint16_t*>(y)[i] : static_cast<const uint8_t*>(y)[i];
}

std::vector<float> decoded(const Format& f) {
  const auto count = size_t{1} << f.width();
  std::vector<uint16_t> wide(count);
  std::vector<uint8_t> narrow(count);
  for (size_t i = 0; i < count; ++i) {
    wide[i] = static_cast<uint16_t>(i);
    narrow[i] = static_cast<uint8_t>(i);
  }
  std::vector<float> y(count);
  const void* x = f.width() == 16 ? static_cast<const void*>(wide.data()) : narrow.data();
  cast(f.type, ElementType::float32, x, y.data(), static_cast<int64_t>(count), {}, two_threads());
  return y;
}

TEST(Convert, EveryPatternToFloat) {
  each_target([] {
    for (const Format& f : formats) {
      const auto y = decoded(f);
      const int half = 1 << (f.width() - 1);
      for (int p = 0; p < half; ++p) {
        const float positive = y[static_cast<size_t>(p)];
        const float negative = y[static_cast<size_t>(p + half)];
        if (p < f.top_patterns) {
          ASSERT_EQ(positive, f.value(p)) << name_of(f.type) << " pattern " << p;
          if (p == 0 && f.unsigned_zero) {
            ASSERT_TRUE(std::isnan(negative));
          } else {
            ASSERT_EQ(negative, -f.value(p));
            ASSERT_TRUE(std::signbit(negative));
          }
        } else if (f.ieee && p == f.top_patterns) {
          ASSERT_EQ(positive, INFINITY);
          ASSERT_EQ(negative, -INFINITY);
        } else {
          ASSERT_TRUE(std::isnan(positive)) << name_of(f.type) << " pattern " << p;
          ASSERT_TRUE(std::isnan(negative));
        }
      }
    }
  });
}

// The nearest pattern by search over all values, ties to the even pattern; top_patterns for what
// rounds beyond the largest.
int nearest_pattern(const Format& f, double magnitude) {
  int low = 0, high = f.top_patterns;  // value(low) <= magnitude
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (f.value(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - f.value(low);
  const double above = f.value(low + 1) - magnitude;  // the pattern after the last, were it there
  if (below != above) return below < above ? low : low + 1;
  return low % 2 == 0 ? low : low + 1;
}

std::vector<float> probes(const Format& f) {
  std::vector<float> x{0.0f,
                       -0.0f,
                       1e-45f,
                       -1e-45f,
                       1e38f,
                       -1e38f,
                       3.4e38f,
                       INFINITY,
                       -INFINITY,
                       NAN,
                       std::numeric_limits<float>::max()};
  const int step = f.width() == 16 ? 7 : 1;
  for (int p = 0; p < f.top_patterns; p += step) {
    const double here = f.value(p), next = f.value(p + 1);
    const auto middle = static_cast<float>((here + next) / 2);
    for (const float v : {static_cast<float>(here), middle, std::nextafter(middle, 0.0f),
                          std::nextafter(middle, INFINITY)}) {
      x.push_back(v);
      x.push_back(-v);
    }
  }
  return x;
}

void check_encoding(const Format& f, bool saturate) {
  const auto x = probes(f);
  std::vector<uint16_t> y(x.size());
  cast(ElementType::float32, f.type, x.data(), y.data(), static_cast<int64_t>(x.size()),
       {saturate, RoundMode::up}, two_threads());
  const uint32_t sign = 1u << (f.width() - 1);
  const bool held = saturate && f.width() == 8;
  for (size_t i = 0; i < x.size(); ++i) {
    const uint32_t found = pattern_of(f, y.data(), i);
    const bool negative = std::signbit(x[i]);
    const std::string where = std::string(name_of(f.type)) + " of " + std::to_string(x[i]);
    if (std::isnan(x[i])) {
      ASSERT_EQ(found & (sign - 1) & ~0u, f.unsigned_zero ? 0u : found & (sign - 1)) << where;
      if (f.unsigned_zero) {
        ASSERT_EQ(found, sign) << where;
      } else {
        ASSERT_GT(found & (sign - 1), static_cast<uint32_t>(f.top_patterns - !f.ieee)) << where;
      }
      continue;
    }
    int p = std::isinf(x[i]) ? f.top_patterns : nearest_pattern(f, std::fabs(x[i]));
    if (p >= f.top_patterns && held) p = f.top_patterns - 1;
    uint32_t expected = static_cast<uint32_t>(p) | (negative ? sign : 0u);
    if (p >= f.top_patterns && !f.ieee) expected = f.unsigned_zero ? sign : expected | (sign - 1);
    if (p == 0 && f.unsigned_zero) expected = 0;
    ASSERT_EQ(found, expected) << where;
  }
}

// Truncated and held at the bounds of int32; narrower integers keep the low bits of that.
template <class T>
void check_truncation(ElementType type, const std::vector<float>& x) {
  for (size_t first = 0; first < 40; ++first) {  // of every alignment and length
    const auto n = static_cast<int64_t>(x.size() - first);
    std::vector<T> y(x.size());
    cast(ElementType::float32, type, x.data() + first, y.data(), n, {}, two_threads());
    for (size_t i = first; i < x.size(); ++i) {
      const double v = std::trunc(static_cast<double>(x[i]));
      const int32_t whole = v != v          ? 0
                            : v < INT32_MIN ? INT32_MIN
                            : v > INT32_MAX ? INT32_MAX
                                            : static_cast<int32_t>(v);
      ASSERT_EQ(y[i - first], static_cast<T>(whole)) << x[i];
    }
  }
}

TEST(Convert, FloatToSmallIntegers) {
  each_target([] {
    std::vector<float> x{NAN,      -NAN,     INFINITY,      -INFINITY, 0.0f,   -0.0f,   0.9f,
                         -0.9f,    127.5f,   128.0f,        -128.9f,   255.5f, 256.0f,  -1.0f,
                         65535.9f, 65536.0f, -32769,        2e9f,      -2e9f,  0x1p31f, 3e9f,
                         -3e9f,    -0x1p31f, 2147483520.0f, 1e-40f,    1e30f,  -1e30f};
    for (int i = 0; i < 1000; ++i) x.push_back(static_cast<float>(i * i) * 1.37f - 300000.0f);
    check_truncation<int8_t>(ElementType::int8, x);
    check_truncation<uint8_t>(ElementType::uint8, x);
    check_truncation<int16_t>(ElementType::int16, x);
    check_truncation<uint16_t>(ElementType::uint16, x);
    check_truncation<int32_t>(ElementType::int32, x);
  });
}

TEST(Convert, FloatToNarrowRoundsToNearestEven) {
  each_target([] {
    for (const Format& f : formats) {
      check_encoding(f, true);
      check_encoding(f, false);
    }
  });
}

TEST(Convert, DoubleToNarrowRoundsOnce) {
  // Just above a tie of float16 (2049 lies between 2048 and 2050), by less than a float can tell.
  const std::vector<double> x{2049.0 + 1e-9, -2049.0 - 1e-9, 2049.0, 1e300, 1e-300};
  std::vector<uint16_t> y(x.size());
  cast(ElementType::float64, ElementType::float16, x.data(), y.data(), 5, {}, one_thread());
  EXPECT_EQ(half_to_float(y[0]), 2050);
  EXPECT_EQ(half_to_float(y[1]), -2050);
  EXPECT_EQ(half_to_float(y[2]), 2048);
  EXPECT_EQ(half_to_float(y[3]), INFINITY);
  EXPECT_EQ(half_to_float(y[4]), 0);
}

TEST(Convert, Float4) {
  const std::vector<float> x{0, 0.25f, 0.26f, 0.75f, 1, 1.25f, 1.75f, 2.5f,     3.5f,     5,
                             6, 9,     -0.3f, -8,    7, -0.0f, NAN,   INFINITY, -INFINITY};
  const std::vector<float> expected{0, 0, 0.5f,  1,  1, 1,     2,     2, 4, 4,
                                    6, 6, -0.5f, -6, 6, -0.0f, -0.0f, 6, -6};
  std::vector<uint8_t> packed((x.size() + 1) / 2);
  std::vector<float> y(x.size());
  cast(ElementType::float32, ElementType::float4e2m1, x.data(), packed.data(), 19, {},
       one_thread());
  cast(ElementType::float4e2m1, ElementType::float32, packed.data(), y.data(), 19, {},
       one_thread());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i], expected[i]) << x[i];
    EXPECT_EQ(std::signbit(y[i]), std::signbit(expected[i])) << x[i];
  }
}

TEST(Convert, Float6) {
  const std::vector<float> x{0, 0.0625f, 0.1f, 0.125f,   1,         1.0625f, 1.1875f, 7.4f, 7.5f,
                             9, -0.3f,   -100, INFINITY, -INFINITY, -0.0f,   3.3f,    28};
  const std::vector<float> e2m3{0,    0,      0.125f, 0.125f, 1,     1,     1.25f, 7.5f, 7.5f,
                                7.5f, -0.25f, -7.5f,  7.5f,   -7.5f, -0.0f, 3.25f, 7.5f};
  const std::vector<float> e3m2{0, 0.0625f,  0.125f, 0.125f, 1,   1,     1.25f, 7, 8,
                                8, -0.3125f, -28,    28,     -28, -0.0f, 3.5f,  28};
  for (const auto type : {ElementType::float6e2m3, ElementType::float6e3m2}) {
    const auto& expected = type == ElementType::float6e2m3 ? e2m3 : e3m2;
    std::vector<uint8_t> packed((x.size() * 6 + 7) / 8);
    std::vector<float> y(x.size());
    cast(ElementType::float32, type, x.data(), packed.data(), 17, {}, one_thread());
    cast(type, ElementType::float32, packed.data(), y.data(), 17, {}, one_thread());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], expected[i]) << name_of(type) << x[i];
  }
}

// Every code of every place in a group, and groups that end early; on threads that share bytes with
// nobody.
TEST(Convert, Float6KeepsItsCodesWhereverTheyLie) {
  for (const auto type : {ElementType::float6e2m3, ElementType::float6e3m2}) {
    for (const int64_t n : {1, 2, 3, 4, 5, 63, 64, 2049, 70003}) {
      std::vector<uint8_t> codes(static_cast<size_t>(n)), found(codes.size()),
          packed(static_cast<size_t>(byte_size(type, n)), 0xff), again(packed.size(), 0xff);
      for (size_t i = 0; i < codes.size(); ++i)
        codes[i] = static_cast<uint8_t>((i * 29 + i / 4) & 63);
      pack(type, codes.data(), packed.data(), 0, n);
      unpack(type, packed.data(), 0, found.data(), n);
      ASSERT_EQ(found, codes) << n;
      if (n > 5) {
        unpack(type, packed.data(), 5, found.data(), n - 5);
        EXPECT_TRUE(std::equal(codes.begin() + 5, codes.end(), found.begin()));
      }
      std::vector<float> values(codes.size());
      cast(type, ElementType::float32, packed.data(), values.data(), n, {}, two_threads());
      cast(ElementType::float32, type, values.data(), again.data(), n, {}, two_threads());
      EXPECT_EQ(again, packed) << n;
    }
  }
}

TEST(Convert, Float8e8m0) {
  const auto code = [](float v, RoundMode mode, bool saturate) {
    uint8_t y;
    cast_row(ElementType::float32, ElementType::float8e8m0, &v, &y, 1, {saturate, mode});
    return int{y};
  };
  EXPECT_EQ(code(1, RoundMode::up, true), 127);
  EXPECT_EQ(code(1.1f, RoundMode::up, true), 128);
  EXPECT_EQ(code(1.1f, RoundMode::down, true), 127);
  EXPECT_EQ(code(1.1f, RoundMode::nearest, true), 127);
  EXPECT_EQ(code(1.5f, RoundMode::nearest, true), 128);
  EXPECT_EQ(code(0, RoundMode::up, true), 0);
  EXPECT_EQ(code(0, RoundMode::nearest, false), 255);
  EXPECT_EQ(code(INFINITY, RoundMode::up, true), 254);
  EXPECT_EQ(code(INFINITY, RoundMode::up, false), 255);
  EXPECT_EQ(code(3e38f, RoundMode::up, true), 254);
  EXPECT_EQ(code(3e38f, RoundMode::nearest, false), 255);
  EXPECT_EQ(code(NAN, RoundMode::up, true), 255);
  EXPECT_EQ(code(std::ldexp(1.0f, -127), RoundMode::up, true), 0);
  EXPECT_EQ(code(std::ldexp(1.25f, -127), RoundMode::up, true), 1);
  for (int i = 0; i < 255; ++i) {
    const auto bits = static_cast<uint8_t>(i);
    float v;
    cast_row(ElementType::float8e8m0, ElementType::float32, &bits, &v, 1);
    EXPECT_EQ(v, std::ldexp(1.0, i - 127));
    for (const RoundMode mode : {RoundMode::up, RoundMode::down, RoundMode::nearest}) {
      EXPECT_EQ(code(v, mode, false), i);
    }
  }
}

template <class To>
std::vector<To> converted(ElementType to, const std::vector<float>& x) {
  std::vector<To> y(x.size());
  cast(ElementType::float32, to, x.data(), y.data(), static_cast<int64_t>(x.size()), {},
       one_thread());
  return y;
}

TEST(Convert, FloatToIntegerTruncatesAndNeverTraps) {
  const std::vector<float> x{1.9f, -1.9f, 0, NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 300, -3};
  EXPECT_EQ(
      converted<int32_t>(ElementType::int32, x),
      (std::vector<int32_t>{1, -1, 0, 0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 300, -3}));
  EXPECT_EQ(
      converted<int64_t>(ElementType::int64, x),
      (std::vector<int64_t>{1, -1, 0, 0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 300, -3}));
  EXPECT_EQ(converted<uint8_t>(ElementType::uint8, x),
            (std::vector<uint8_t>{1, 255, 0, 0, 255, 0, 255, 0, 44, 253}));
  EXPECT_EQ(converted<uint64_t>(ElementType::uint64, x)[6], UINT64_MAX);
  const std::vector<float> fold_predicates{0, -0.0f, NAN, 0.1f};
  const auto y = converted<uint8_t>(ElementType::boolean, fold_predicates);
  EXPECT_EQ(y, (std::vector<uint8_t>{0, 0, 1, 1}));
}

TEST(Convert, IntegersWrapAndBooleansAreBytes) {
  const std::vector<int16_t> x{200, -1, 300};
  std::vector<int8_t> y(3);
  cast(ElementType::int16, ElementType::int8, x.data(), y.data(), 3, {}, one_thread());
  EXPECT_EQ(y, (std::vector<int8_t>{-56, -1, 44}));
  const std::vector<uint8_t> fold_predicates{0, 1, 7};
  std::vector<int32_t> z(3);
  cast(ElementType::boolean, ElementType::int32, fold_predicates.data(), z.data(), 3, {},
       one_thread());
  EXPECT_EQ(z, (std::vector<int32_t>{0, 1, 1}));
}

TEST(Convert, PackedIntegers) {
  for (const ElementType type :
       {ElementType::int4, ElementType::uint4, ElementType::int2, ElementType::uint2}) {
    const int bits = bit_width(type);
    for (const int64_t n : {0, 1, 2, 3, 5, 1023, 2049, 70001}) {
      std::vector<int32_t> x(static_cast<size_t>(n)), y(x.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int32_t>(i * 7) - 20;
      std::vector<uint8_t> packed(static_cast<size_t>(byte_size(type, n)), 0xff);
      cast(ElementType::int32, type, x.data(), packed.data(), n, {}, two_threads());
      cast(type, ElementType::int32, packed.data(), y.data(), n, {}, two_threads());
      for (size_t i = 0; i < x.size(); ++i) {
        int32_t expected = x[i] & ((1 << bits) - 1);
        if (is_signed_integer(type) && expected >= 1 << (bits - 1)) expected -= 1 << bits;
        ASSERT_EQ(y[i], expected) << name_of(type) << " element " << i;
      }
      const int used = static_cast<int>(n * bits % 8);
      if (used != 0) {
        EXPECT_EQ(packed.back() >> used, 0);
      }
    }
  }
  const uint8_t byte = 0x2f;
  uint8_t both[2];
  unpack(ElementType::uint4, &byte, 0, both, 2);
  EXPECT_EQ(both[0], 15);  // the first element is in the low bits
  EXPECT_EQ(both[1], 2);
}

TEST(Convert, EveryPairRunsAndThreadsDoNotMatter) {
  std::vector<ElementType> types;
  for (int32_t i = 1; i < element_type_count; ++i) {
    if (supports_cast(static_cast<ElementType>(i), ElementType::float32)) {
      types.push_back(static_cast<ElementType>(i));
    }
  }
  EXPECT_EQ(types.size(), 25u);
  constexpr int64_t n = 70003;
  std::vector<float> x(n);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 4) * 0.5f;
  for (const ElementType from : types) {
    std::vector<uint8_t> source(static_cast<size_t>(byte_size(from, n)));
    cast(ElementType::float32, from, x.data(), source.data(), n, {}, one_thread());
    std::vector<float> whole(n);
    cast(from, ElementType::float32, source.data(), whole.data(), n, {}, one_thread());
    for (const ElementType to : types) {
      std::vector<uint8_t> a(static_cast<size_t>(byte_size(to, n))), b(a.size());
      std::vector<uint8_t> direct(a.size());
      cast(from, to, source.data(), a.data(), n, {}, one_thread());
      cast(from, to, source.data(), b.data(), n, {}, two_threads());
      test::expect_same_bits(a, b);
      cast(ElementType::float32, to, whole.data(), direct.data(), n, {}, one_thread());
      EXPECT_EQ(a, direct) << name_of(from) << " to " << name_of(to);
    }
  }
  EXPECT_FALSE(supports_cast(ElementType::string, ElementType::float32));
  EXPECT_FALSE(supports_cast(ElementType::float32, ElementType::complex64));
}

// The quotient is not computed by division, but comes out as if it were.
TEST(ByteScale, RoundsTheExactQuotient) {
  std::mt19937 random(5);
  std::vector<float> x;
  for (const float scale : {0.1f, 1.0f / 3, 0.0078125f, 3.7e-5f, 1.9e30f, 1e-39f, 3e38f}) {
    for (int i = -700; i <= 700; ++i) {
      const float middle = (static_cast<float>(i) + 0.5f) * scale;
      x.insert(x.end(), {middle, std::nextafter(middle, 1e30f), std::nextafter(middle, -1e30f)});
      x.push_back(std::uniform_real_distribution<float>(-300, 300)(random) * scale);
    }
    constexpr float infinity = std::numeric_limits<float>::infinity();
    x.insert(x.end(), {infinity, -infinity, 0.0f, -0.0f, 3e38f, -3e38f});
    x.push_back(std::numeric_limits<float>::quiet_NaN());
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
      const bool is_signed = type == ElementType::int8;
      const int low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
      for (const int zero : {low, 3, high}) {
        std::vector<int> expected;
        for (const float v : x) {
          const float q = v / scale;
          const double whole = q == q ? std::nearbyint(static_cast<double>(q)) + zero : low;
          expected.push_back(static_cast<int>(std::clamp<double>(whole, low, high)));
        }
        each_target([&] {
          std::vector<uint8_t> y(x.size());
          floats_to_bytes({type, scale, zero}, x.data(), y.data(), static_cast<int64_t>(y.size()));
          std::vector<float> back(x.size());
          bytes_to_floats({type, scale, zero}, y.data(), back.data(),
                          static_cast<int64_t>(y.size()));
          for (size_t i = 0; i < y.size(); ++i) {
            const int byte = is_signed ? static_cast<int8_t>(y[i]) : y[i];
            ASSERT_EQ(byte, expected[i]) << x[i] << " by " << scale << " at " << zero;
            ASSERT_EQ(back[i], static_cast<float>(byte - zero) * scale);
          }
        });
      }
    }
    x.clear();
  }
}

TEST(ByteScale, RangesHoldZeroAndNoNan) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t n : {0, 1, 7, 31, 64, 100}) {
    std::vector<float> x(static_cast<size_t>(n), 2.0f);
    for (int64_t at = 0; at < n; ++at) {
      const auto i = static_cast<size_t>(at);
      each_target([&] {
        x[i] = nan;
        EXPECT_EQ(range_with_zero(x.data(), n).low, 0);
        EXPECT_EQ(range_with_zero(x.data(), n).high, n > 1 ? 2 : 0);
        x[i] = -5;
        EXPECT_EQ(range_with_zero(x.data(), n).low, -5);
        x[i] = 9;
        EXPECT_EQ(range_with_zero(x.data(), n).high, 9);
        x[i] = 2;
      });
    }
  }
}

}  // namespace
}  // namespace sardonyx::kernels
