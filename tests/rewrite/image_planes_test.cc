// Convolutions that read pictures as planes, against plain runs, on one thread and on two.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

std::string constant(const std::string& name, const std::string& shape, int64_t count) {
  std::string values;
  for (int64_t i = 0; i < count; ++i)
    values +=
        fmt::format("{}{:.3f}", i == 0 ? "" : ", ", 0.3 * std::cos(0.7 * static_cast<double>(i)));
  return fmt::format("  {} = Constant<value = float[{}] {{{}}}>()\n", name, shape, values);
}

// A strided convolution, one in several groups behind it, for which channels come last.
Model net(int64_t channels, int64_t kernel, int64_t stride) {
  std::string text = constant("w", fmt::format("32, {0}, {1}, {1}", channels, kernel),
                              32 * channels * kernel * kernel);
  text += constant("v", "32, 8, 3, 3", 32 * 8 * 9);
  text += fmt::format("  a = Conv<strides = [{0}, {0}], pads = [1, 1, 1, 1]>(x, w)\n", stride);
  text += "  r = Relu(a)\n  y = Conv<group = 4, pads = [1, 1, 1, 1]>(r, v)\n";
  return Model::from_text(
      fmt::format("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                  "g (float[N, {}, H, W] x) => (float[a, b, c, d] y) {{\n{}}}\n",
                  channels, text));
}

TEST(ImagePlanes, AnswersStayWhatTheyWere) {
  for (const int64_t channels : {2, 3, 4}) {
    for (const int64_t kernel : {3, 5}) {
      for (const int64_t stride : {1, 2}) {
        const Model m = net(channels, kernel, stride);
        const Session one(m, {.threads = 1}), two(m, {.threads = 2}),
            plain(m, {.threads = 1, .plain = true});
        // Kernels read the large ones as they are; small ones are turned first.
        for (const int64_t size : {60, 5, 33, 3}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", channels, kernel, stride, size));
          Tensor x(ElementType::float32, {2, channels, size, size + 1});
          float phase = 0;
          for (float& v : x.mutable_elements<float>()) v = std::sin(phase += 0.37f);
          const std::vector<NamedValue> inputs = {{"x", x}};
          const Tensor a = one.run(inputs)[0].tensor(), b = two.run(inputs)[0].tensor(),
                       expected = plain.run(inputs)[0].tensor();
          ASSERT_EQ(a.shape(), expected.shape());
          EXPECT_EQ(std::memcmp(a.data(), b.data(), a.byte_size()), 0);
          for (size_t i = 0; i < expected.elements<float>().size(); ++i) {
            const float wanted = expected.elements<float>()[i];
            ASSERT_NEAR(a.elements<float>()[i], wanted, 2e-5 * (1 + std::abs(wanted))) << i;
          }
        }
      }
    }
  }
}

TEST(ImagePlanes, AreNotTurned) {
  const auto turns = [](int64_t channels) {
    const auto steps = Session(net(channels, 3, 2), {.threads = 1}).steps();
    return std::ranges::count_if(
        steps, [](const StepDescription& step) { return step.node.starts_with("Transpose"); });
  };
  EXPECT_EQ(turns(3), 1);  // of the output
  EXPECT_EQ(turns(8), 2);  // many channels are no picture
}

}  // namespace
}  // namespace sardonyx
