// What the tests of convolutional graphs share: weights, pictures, and comparing with plain runs.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "sardonyx/session.h"

namespace sardonyx::test {

// A node that makes that many weights of that shape, such as "12, 1, 3, 3".
inline std::string constant(const std::string& name, const std::string& shape, int64_t count) {
  std::string values;
  for (int64_t i = 0; i < count; ++i)
    values +=
        fmt::format("{}{:.3f}", i == 0 ? "" : ", ", 0.3 * std::cos(0.7 * static_cast<double>(i)));
  return fmt::format("  {} = Constant<value = float[{}] {{{}}}>()\n", name, shape, values);
}

inline Tensor picture(const Shape& shape) {
  Tensor x(ElementType::float32, shape);
  float phase = 0;
  for (float& v : x.mutable_elements<float>()) v = std::sin(phase += 0.37f);
  return x;
}

// The model on one thread, on two and plainly.
struct ThreeWays {
  explicit ThreeWays(const Model& model)
      : one(model, {.threads = 1}),
        two(model, {.threads = 2}),
        plain(model, {.threads = 1, .reference = true}) {}

  // Its output for the input x: the same bits on one and two threads, near to what plain evaluation
  // gives.
  void check(const Tensor& x, double tolerance) const {
    const std::vector<NamedValue> inputs = {{"x", x}};
    const Tensor a = one.run(inputs)[0].tensor(), b = two.run(inputs)[0].tensor(),
                 expected = plain.run(inputs)[0].tensor();
    ASSERT_EQ(a.shape(), expected.shape());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.byte_size()), 0);
    for (size_t i = 0; i < expected.elements<float>().size(); ++i) {
      const float wanted = expected.elements<float>()[i];
      ASSERT_NEAR(a.elements<float>()[i], wanted, tolerance * (1 + std::abs(wanted))) << i;
    }
  }

  Session one, two, plain;
};

}  // namespace sardonyx::test
