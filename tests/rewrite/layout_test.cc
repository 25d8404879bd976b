// Where convolutions get their channels last, and where they do not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

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

// A depthwise convolution of 12 images of this size, and what follows it.
Model depthwise(int64_t size, std::string_view rest) {
  return Model::from_text(fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[1, 12, {0}, {0}] x) => (float[a, b, c, d] y) {{\n{1}{2}"
      "  m = Conv<group = 12, pads = [1, 1, 1, 1]>(x, w)\n  r = Sigmoid(m)\n{3}}}\n",
      size, constant("w", "12, 1, 3, 3", 108), constant("v", "16, 12, 1, 1", 192), rest));
}

// Steps whose kernel begins so.
int64_t steps(const Model& model, std::string_view kernel) {
  const auto list = Session(model, {.threads = 1}).steps();
  return std::ranges::count_if(
      list, [&](const StepDescription& step) { return step.kernel.starts_with(kernel); });
}

TEST(Layout, DepthwiseConvolutionsAloneStayPlanes) {
  const Model alone = depthwise(40, "  y = MaxPool<kernel_shape = [2, 2]>(r)\n");
  const Model followed = depthwise(40, "  p = Relu(r)\n  y = Conv(p, v)\n");
  const Model narrow = depthwise(14, "  y = Identity(r)\n");
  EXPECT_EQ(steps(alone, "transpose"), 0);
  EXPECT_EQ(steps(alone, "conv.depthwise_rows"), 1);
  EXPECT_EQ(steps(followed, "conv.depthwise_rows"), 0);
  EXPECT_EQ(steps(narrow, "conv.depthwise_last"), 1);
  for (const auto& [model, size] :
       {std::pair(&alone, int64_t{40}), {&followed, int64_t{40}}, {&narrow, int64_t{14}}}) {
    Tensor x(ElementType::float32, {1, 12, size, size});
    float phase = 0;
    for (float& v : x.mutable_elements<float>()) v = std::sin(phase += 0.37f);
    const std::vector<NamedValue> inputs = {{"x", x}};
    const Tensor y = Session(*model, {.threads = 1}).run(inputs)[0].tensor(),
                 expected = Session(*model, {.threads = 1, .plain = true}).run(inputs)[0].tensor();
    ASSERT_EQ(y.shape(), expected.shape());
    for (size_t i = 0; i < expected.elements<float>().size(); ++i)
      ASSERT_NEAR(y.elements<float>()[i], expected.elements<float>()[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace sardonyx
