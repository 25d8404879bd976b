// Random numbers on every instruction set, against the counter they are made of.
#include <cmath>
#include <numbers>

#include "kernels/random/philox.h"
#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

const int64_t lengths[] = {0, 1, 3, 31, 32, 1000, 1025, 70001};

uint32_t word(const Philox& random, int64_t i) {
  return random(static_cast<uint64_t>(i) / 4)[static_cast<size_t>(i % 4)];
}

double unit(const Philox& random, int64_t i) { return random.uniform(static_cast<uint64_t>(i)); }

// Element i of normal numbers, of the uniform ones of its pair.
double normal(double u, double v, int64_t i) {
  const double radius = std::sqrt(-2 * std::log(1 - u)), angle = 2 * std::numbers::pi * v;
  return i % 2 == 0 ? radius * std::cos(angle) : radius * std::sin(angle);
}

// The same numbers whatever the threads, each near what expected(i) says.
template <class T, class Fill, class Expected>
void check(int64_t n, double tolerance, Fill fill, Expected expected) {
  std::vector<T> y(static_cast<size_t>(n)), z(y.size());
  fill(y.data(), test::one_thread());
  fill(z.data(), test::two_threads());
  test::expect_same_bits(y, z);
  for (int64_t i = 0; i < n; ++i) {
    const double value = expected(i);
    ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(i)]), value,
                tolerance * (1 + std::fabs(value)))
        << i;
  }
}

TEST(Random, NumbersOfTheCounter) {
  const Philox random(0x123456789abcdef0, 0xfedcba9876543210);
  test::each_target([&] {
    for (const int64_t n : lengths) {
      check<float>(
          n, 1.2e-7,
          [&](float* y, ThreadPool& pool) {
            fill_uniform(ElementType::float32, random, -1, 3, y, n, pool);
          },
          [&](int64_t i) { return -1 + 4 * (word(random, i) >> 8) * 0x1p-24; });
      check<double>(
          n, 3e-16,
          [&](double* y, ThreadPool& pool) {
            fill_uniform(ElementType::float64, random, -1, 3, y, n, pool);
          },
          [&](int64_t i) { return -1 + 4 * unit(random, i); });
      check<float>(
          n, 1.2e-7,
          [&](float* y, ThreadPool& pool) {
            fill_normal(ElementType::float32, random, 0.5, 2, y, n, pool);
          },
          [&](int64_t i) {
            const int64_t even = i - i % 2;
            return 0.5 +
                   2 * normal(word(random, even) * 0x1p-32, word(random, even + 1) * 0x1p-32, i);
          });
      check<double>(
          n, 4e-15,
          [&](double* y, ThreadPool& pool) {
            fill_normal(ElementType::float64, random, 0.5, 2, y, n, pool);
          },
          [&](int64_t i) {
            const int64_t even = i - i % 2;
            return 0.5 + 2 * normal(unit(random, even), unit(random, even + 1), i);
          });
    }
  });
}

TEST(Random, CoinsFallByChance) {
  const Philox random(7, 1);
  test::each_target([&] {
    for (const int64_t n : lengths) {
      std::vector<float> chance(static_cast<size_t>(n));
      for (size_t i = 0; i < chance.size(); ++i) chance[i] = static_cast<float>(i % 11) / 10;
      if (n > 5) chance[5] = std::nanf("");
      check<uint8_t>(
          n, 0,
          [&](uint8_t* y, ThreadPool& pool) {
            bernoulli(ElementType::float32, random, chance.data(), y, n, pool);
          },
          [&](int64_t i) {
            return unit(random, i) < static_cast<double>(chance[static_cast<size_t>(i)]) ? 1.0
                                                                                         : 0.0;
          });
    }
  });
}

}  // namespace
}  // namespace sardonyx::kernels
