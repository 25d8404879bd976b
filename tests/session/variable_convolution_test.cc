// Convolutions whose weights are inputs, as those of a training step are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sardonyx/session.h"

namespace sardonyx::test {
namespace {

Tensor spread(Shape shape, uint32_t seed) {
  Tensor tensor(ElementType::float32, std::move(shape));
  for (float& value : tensor.mutable_elements<float>()) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return tensor;
}

// A convolution of 32 channels, or its gradient for the input, which is a transposed one.
Value run(bool transposed, bool exact, int threads) {
  SessionOptions options;
  options.exact = exact, options.threads = threads;
  const std::string op = transposed ? "ConvTranspose" : "Conv";
  const Session session(
      Model::from_text(
          "<ir_version: 10, opset_import: [\"\" : 21]>\n"
          "g (float[N, 32, 24, 24] x, float[32, 32, 3, 3] w) => (float[N, 32, H, W] y) "
          "{\n y = " +
          op + "<pads = [1, 1, 1, 1]>(x, w)\n}"),
      options);
  return session.run({{"x", spread({16, 32, 24, 24}, 1)}, {"w", spread({32, 32, 3, 3}, 2)}})[0];
}

class VariableConvolution : public testing::TestWithParam<bool> {};

// Where it is not to be exact it takes fewer multiplications, whose result is another but no worse
// than rounding makes of sums of 288 terms.
TEST_P(VariableConvolution, TakesFewerMultiplications) {
  const Value exact = run(GetParam(), true, 1), fast = run(GetParam(), false, 1);
  const auto a = exact.tensor().elements<float>(), b = fast.tensor().elements<float>();
  ASSERT_EQ(a.size(), b.size());
  float off = 0, most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    off = std::max(off, std::fabs(a[i] - b[i]));
    most = std::max(most, std::fabs(a[i]));
  }
  EXPECT_GT(off, 0) << "the same way was taken";
  EXPECT_LT(off, 2e-6f * most);
}

TEST_P(VariableConvolution, HasTheSameBitsOnTwoThreads) {
  const Value one = run(GetParam(), false, 1), two = run(GetParam(), false, 2);
  EXPECT_TRUE(std::ranges::equal(one.tensor().elements<float>(), two.tensor().elements<float>()));
}

INSTANTIATE_TEST_SUITE_P(Forms, VariableConvolution, testing::Bool());

}  // namespace
}  // namespace sardonyx::test
