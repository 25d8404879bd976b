// Convolutions that read pictures as planes, against plain runs, on one thread and on two.
#include <algorithm>

#include "image_models.h"

namespace sardonyx {
namespace {

using test::constant;

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
        const test::ThreeWays net_of(net(channels, kernel, stride));
        // Kernels read the large ones as they are; small ones are transposed first.
        for (const int64_t size : {60, 5, 33, 3}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", channels, kernel, stride, size));
          net_of.check(test::picture({2, channels, size, size + 1}), 2e-5);
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
