#include "base/decimal.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace sardonyx {
namespace {

// What write_floats promises, by the standard library.
std::string expected(const std::vector<uint32_t>& patterns) {
  std::string text;
  char buffer[64];
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (i > 0) text += ", ";
    const float value = std::bit_cast<float>(patterns[i]);
    if (std::isnan(value)) {
      text += std::signbit(value) ? "-nan" : "nan";
    } else {
      text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
    }
  }
  return text;
}

std::string written(const std::vector<uint32_t>& patterns, bool first = true) {
  std::string text(patterns.size() * float_room, '#');
  const char* end = write_floats(text.data(), patterns.data(), patterns.size(), first);
  text.resize(static_cast<size_t>(end - text.data()));
  return text;
}

// Says which number differs, rather than showing two texts of thousands.
void expect_same(const std::vector<uint32_t>& patterns) {
  if (written(patterns) == expected(patterns)) return;
  for (const uint32_t pattern : patterns) {
    ASSERT_EQ(written({pattern}), expected({pattern})) << std::hex << pattern;
  }
  FAIL() << "numbers that are right one by one are wrong in a row";
}

TEST(Decimal, SeparatorsAndNothing) {
  EXPECT_EQ(written({}), "");
  EXPECT_EQ(written({0x3f000000}), "0.5");
  EXPECT_EQ(written({0x3f000000}, false), ", 0.5");
  EXPECT_EQ(written({0x3dcccccd, 0x80000000, 0x7f800000, 0xffc00000}), "0.1, -0, inf, -nan");
}

TEST(Decimal, ReadsFromAnyAddress) {
  std::vector<char> bytes(4 * 100 + 3);
  std::vector<uint32_t> patterns;
  for (uint32_t i = 0; i < 100; ++i) patterns.push_back(std::bit_cast<uint32_t>(0.3f * float(i)));
  for (size_t shift = 0; shift < 4; ++shift) {
    std::memcpy(bytes.data() + shift, patterns.data(), 400);
    std::string text(100 * float_room, '#');
    text.resize(static_cast<size_t>(write_floats(text.data(), bytes.data() + shift, 100, true) -
                                    text.data()));
    EXPECT_EQ(text, expected(patterns)) << shift;
  }
}

// Each exponent with the significands at its ends, in its middle and with few bits, where notations
// and counts of digits change.
TEST(Decimal, EveryExponent) {
  for (uint32_t top = 0; top < 512; ++top) {
    std::vector<uint32_t> patterns;
    for (uint32_t i = 0; i < 300; ++i) {
      patterns.push_back(top << 23 | i);
      patterns.push_back(top << 23 | (0x7fffff - i));
      patterns.push_back(top << 23 | (0x400000 + i));
    }
    for (int low = 0; low < 23; ++low)
      for (int high = low; high < 23; ++high)
        patterns.push_back(top << 23 | 1u << low | 1u << high);
    expect_same(patterns);
  }
}

// Numbers with few decimal digits, whose text must be short, and their neighbours.
TEST(Decimal, ShortNumbers) {
  std::vector<uint32_t> patterns;
  for (int digits = 1; digits < 1000; ++digits) {
    for (int exponent = -46; exponent <= 36; ++exponent) {
      const auto value = static_cast<float>(digits * std::pow(10.0, exponent));
      const auto pattern = std::bit_cast<uint32_t>(value);
      for (const uint32_t near : {pattern - 1, pattern, pattern + 1}) patterns.push_back(near);
    }
  }
  expect_same(patterns);
}

TEST(Decimal, Integers) {
  std::vector<uint32_t> patterns;
  for (int i = 0; i < 100'000; ++i) patterns.push_back(std::bit_cast<uint32_t>(float(i)));
  for (float value = 1e6f; value < 1e16f; value *= 1.0001f)
    patterns.push_back(std::bit_cast<uint32_t>(std::round(value)));
  expect_same(patterns);
}

TEST(Decimal, TenMillionPatterns) {
  std::mt19937 random(20);
  std::vector<uint32_t> patterns(10'000);
  for (int round = 0; round < 1000; ++round) {
    for (uint32_t& pattern : patterns) pattern = static_cast<uint32_t>(random());
    expect_same(patterns);
  }
}

}  // namespace
}  // namespace sardonyx
