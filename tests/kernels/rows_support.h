// What the kernel tests share: running on every instruction set, data, comparisons.
#pragma once

#include <gtest/gtest.h>

#include <hwy/highway.h>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "sardonyx/error.h"

namespace sardonyx::kernels::test {

// Calls body() once for each instruction set that this machine has.
template <class Body>
void each_target(Body&& body) {
  const int64_t before = hwy::SupportedTargets();
  for (int64_t rest = before & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(before);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

inline ThreadPool& one_thread() {
  static ThreadPool pool(1);
  return pool;
}
inline ThreadPool& two_threads() {
  static ThreadPool pool(2);
  return pool;
}

inline std::vector<float> random_floats(int64_t n, float low = -3, float high = 3,
                                        uint32_t seed = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = uniform(engine);
  return values;
}

// Distance of `found` from `expected` in units in the last place of a float; huge where only one of
// them is NaN or infinite.
inline double ulps(float found, double expected) {
  if (std::isnan(expected)) return std::isnan(found) ? 0 : 1e30;
  const auto rounded = static_cast<float>(expected);
  if (std::isnan(found)) return 1e30;
  if (std::isinf(rounded) || std::isinf(found)) return found == rounded ? 0 : 1e30;
  int exponent;
  std::frexp(std::max(std::fabs(expected), 1.17549435e-38), &exponent);
  return std::fabs(found - expected) / std::ldexp(1.0, exponent - 24);
}

template <class T>
void expect_same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  ASSERT_EQ(a.size(), b.size());
  if (!a.empty()) {
    EXPECT_EQ(0, std::memcmp(a.data(), b.data(), a.size() * sizeof(T)));
  }
}

inline void expect_near(const std::vector<float>& found, const std::vector<double>& expected,
                        double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(found[i])) << "element " << i << " is " << found[i];
    } else if (std::isinf(expected[i])) {
      ASSERT_EQ(found[i], expected[i]) << "element " << i;
    } else {
      ASSERT_NEAR(found[i], expected[i], tolerance * (1 + std::fabs(expected[i])))
          << "element " << i;
    }
  }
}

template <class Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

}  // namespace sardonyx::kernels::test
