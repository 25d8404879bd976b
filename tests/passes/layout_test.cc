// Where convolutions get their channels last, and where they do not.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "image_models.h"

namespace sardonyx {
namespace {

using test::constant;

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
  EXPECT_EQ(steps(narrow, "conv.depthwise_nhwc"), 1);
  for (const auto& [model, size] :
       {std::pair(&alone, int64_t{40}), {&followed, int64_t{40}}, {&narrow, int64_t{14}}}) {
    test::ThreeWays(*model).check(test::picture({1, 12, size, size}), 1e-5);
  }
}

TEST(Layout, ConvolutionsOfShortSumsAloneStayPlanes) {
  struct Case {
    Shape x, w;
    std::string rest;
    bool alone;
  };
  const std::string last = "  y = Relu(m)\n", another = "  r = Relu(m)\n  y = Conv(r, v)\n";
  const Case cases[] = {
      {{1, 1, 400}, {16, 1, 10}, last, true},
      {{1, 8, 200}, {16, 8, 9}, last, false},
      {{1, 3, 20, 21}, {16, 3, 3, 3}, last, true},
      {{1, 4, 20, 21}, {16, 4, 3, 3}, last, false},
      {{2, 100, 9, 11}, {16, 100, 1, 1}, last, true},
      {{1, 3, 20, 21}, {16, 3, 3, 3}, another, false},
  };
  for (const auto& [x, w, rest, alone] : cases) {
    SCOPED_TRACE(fmt::format("{}, {}: {}", fmt::join(x, ","), fmt::join(w, ","), rest));
    const bool row = x.size() == 3;
    int64_t elements = 1;
    for (const int64_t size : w) elements *= size;
    const Model model = Model::from_text(fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (float[{}] x) => (float[{}] y) {{\n{}{}  m = Conv<strides = [{}]>(x, w)\n{}}}\n",
        fmt::join(x, ","), row ? "a, b, c" : "a, b, c, d",
        constant("w", fmt::format("{}", fmt::join(w, ",")), elements),
        constant("v", "8, 16, 1, 1", 128), row ? "5" : "2, 2", rest));
    EXPECT_EQ(steps(model, "transpose.strided") == 0, alone);
    test::ThreeWays(model).check(test::picture(x), 2e-5);
  }
}

// A transposed convolution and what follows it, between two others.
Model upward(const std::string& weights, const std::string& attributes, const std::string& rest,
             int64_t in = 6) {
  return Model::from_text(fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N, 4, H, W] x) => (float[a, b, c, d] y) {{\n{0}{1}{2}{3}"
      "  s = Constant<value = float[12] {{1.5, 0.5, 1, 2, 1, 1, 1, 1, 1, 0.25, 1, 1}}>()\n"
      "  p = Conv(x, v)\n  m = ConvTranspose<{4}>(p, w)\n{5}  y = Conv(r, u)\n}}\n",
      constant("v", fmt::format("{}, 4, 1, 1", in), 4 * in), weights,
      constant("u", "8, 12, 1, 1", 96), constant("t", "12", 12), attributes, rest));
}

TEST(Layout, TransposedConvolutionsTakeInWhatFollows) {
  const std::string three = constant("w", "6, 12, 3, 3", 648),
                    four = constant("w", "6, 12, 4, 4", 1152),
                    grouped = constant("w", "6, 4, 2, 2", 96);
  const std::string normalised = "  n = BatchNormalization(m, s, t, t, s)\n  r = Relu(n)\n";
  struct Case {
    std::string weights, attributes, rest;
    int64_t phases, nodes;  // steps of that kernel, and of all
  };
  const Case cases[] = {
      {three, "strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]", normalised, 1, 5},
      {four, "strides = [2, 2], pads = [1, 1, 1, 1]", normalised, 1, 5},
      {four, "strides = [3, 2], auto_pad = \"SAME_UPPER\"", "  r = Sigmoid(m)\n", 1, 5},
      {three, "pads = [1, 1, 1, 1]", "  r = LeakyRelu<alpha = 0.1>(m)\n", 1, 5},
      {three, "strides = [2, 2]", "  q = Relu(m)\n  r = Add(m, q)\n", 1, 6},
      {three, "strides = [2, 2], dilations = [2, 1]", normalised, 0, 7},
      {grouped, "strides = [2, 2], group = 3", normalised, 0, 7},
  };
  for (const auto& [weights, attributes, rest, phases, nodes] : cases) {
    SCOPED_TRACE(attributes + rest);
    const Model model = upward(weights, attributes, rest);
    EXPECT_EQ(steps(model, "conv_transpose.phases"), phases);
    EXPECT_LE(steps(model, ""), nodes);
    const test::ThreeWays ways(model);
    for (const int64_t size : {1, 5, 20}) ways.check(test::picture({2, 4, size, size + 1}), 2e-5);
  }
}

// Between two convolutions: x is N x 4 x H x W, p has 12 channels, r has `channels` and goes on.
Model between(const std::string& rest, int64_t channels = 12, std::string_view inputs = "") {
  return Model::from_text(
      fmt::format("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                  "g (float[N, 4, H, W] x{0}) => (float[a, b, c, d] y) {{\n{1}{2}{3}"
                  "  p = Conv(x, v, t)\n{4}\n  y = Conv(r, u)\n}}\n",
                  inputs, constant("v", "12, 4, 1, 1", 48), constant("t", "12", 12),
                  constant("u", fmt::format("8, {}, 1, 1", channels), 8 * channels), rest));
}

// One channel of each to every output channel.
TEST(Layout, DepthwiseTransposedConvolutions) {
  const std::string weights = constant("w", "12, 1, 4, 3", 144) + constant("k", "12", 12);
  for (const std::string_view attributes :
       {"strides = [2, 2], pads = [1, 1, 1, 1]", "strides = [3, 1], output_padding = [2, 0]",
        "strides = [2, 5], output_shape = [9, 11]", "auto_pad = \"SAME_LOWER\", strides = [2, 2]",
        "pads = [0, 2, 3, 0]"}) {
    SCOPED_TRACE(attributes);
    const Model model =
        between(weights + fmt::format("  m = ConvTranspose<group = 12, {}>(p, w, k)\n"
                                      "  r = Relu(m)",
                                      attributes));
    EXPECT_EQ(steps(model, "conv_transpose.depthwise_nhwc"), 1);
    EXPECT_EQ(steps(model, "transpose"), 2);
    const test::ThreeWays ways(model);
    for (const int64_t size : {1, 5, 20}) ways.check(test::picture({2, 4, size, size + 1}), 2e-5);
  }
}

TEST(Layout, NormalisationsStayWithChannelsLast) {
  for (const std::string_view norm :
       {"InstanceNormalization(p, s, t)", "GroupNormalization<num_groups = 3>(p, s, t)"}) {
    for (const std::string_view rest : {"r = Relu(m)", "g = Sigmoid(m)\n  r = Mul(g, m)",
                                        "q = Relu(m)\n  r = Add(q, m)", "r = Tanh(m)"}) {
      SCOPED_TRACE(std::string(norm) + std::string(rest));
      const Model model = Model::from_text(
          fmt::format("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                      "g (float[N, 4, H, W] x) => (float[a, b, c, d] y) {{\n{}{}{}{}"
                      "  p = Conv(x, v)\n  m = {}\n  {}\n  y = Conv(r, u)\n}}\n",
                      constant("v", "12, 4, 1, 1", 48), constant("u", "8, 12, 1, 1", 96),
                      constant("s", "12", 12), constant("t", "12", 12), norm, rest));
      EXPECT_EQ(steps(model, "transpose"), 2);
      const test::ThreeWays ways(model);
      for (const int64_t size : {2, 5, 20}) ways.check(test::picture({2, 4, size, size + 1}), 2e-5);
    }
  }
}

// As exporters write it that know no GroupNormalization.
TEST(Layout, GroupNormalizationAroundInstances) {
  struct Case {
    std::string_view groups, factor, rest;
    int64_t fused;
  };
  const Case cases[] = {
      {"3", "12, 1, 1", "f = Mul(j, k)\n  r = Add(f, l)", 1},
      {"3", "1, 12, 1, 1", "f = Mul(k, j)\n  r = Add(l, f)", 1},
      {"3", "12, 1, 1", "r = Add(j, l)", 1},
      {"3", "12, 1, 1", "r = Relu(j)", 1},
      {"3", "12, 1, 1", "f = Mul(j, k)\n  r = Add(f, j)", 1},  // read twice: what follows stays
      {"3", "1, 1, 12", "f = Mul(j, k)\n  r = Add(f, l)", 1},  // a factor for each column
      {"1", "12, 1, 1", "r = Mul(j, k)", 1},
  };
  for (const auto& [groups, factor, rest, fused] : cases) {
    SCOPED_TRACE(std::string(factor) + std::string(rest));
    const Model model = Model::from_text(fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 17]>\n"
        "g (float[N, 4, H, 12] x) => (float[a, b, c, d] y) {{\n{}{}{}{}{}{}"
        "  i = Constant<value_ints = [0, {}, -1]>()\n  p = Conv(x, v)\n  q = Reshape(p, i)\n"
        "  n = InstanceNormalization<epsilon = 0.001>(q, s, t)\n  o = Shape(p)\n"
        "  j = Reshape(n, o)\n  {}\n  y = Conv(r, u)\n}}\n",
        constant("v", "12, 4, 1, 1", 48), constant("u", "8, 12, 1, 1", 96),
        constant("s", std::string(groups), std::stoi(std::string(groups))),
        constant("t", std::string(groups), std::stoi(std::string(groups))),
        constant("k", std::string(factor), 12), constant("l", std::string(factor), 12), groups,
        rest));
    EXPECT_EQ(steps(model, "group_normalization.nhwc"), fused);
    const test::ThreeWays ways(model);
    for (const int64_t size : {2, 5, 20}) ways.check(test::picture({2, 4, size, 12}), 2e-5);
  }
}

TEST(Layout, ResizeStaysWithChannelsLast) {
  const std::string scales = "  s = Constant<value_floats = [1.0, 1.0, 2.0, 3.0]>()\n",
                    sizes = "  i = Constant<value_ints = [7, 9]>()\n",
                    smaller = "  s = Constant<value_floats = [0.6, 1.5]>()\n";
  for (const std::string_view mode :
       {"mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", "
        "nearest_mode = \"floor\"",
        "mode = \"linear\"", "mode = \"cubic\", exclude_outside = 1",
        "mode = \"linear\", antialias = 1, coordinate_transformation_mode = \"align_corners\""}) {
    for (const std::string& rest :
         {scales + fmt::format("  r = Resize<{}>(p, , s)", mode),
          sizes + fmt::format("  r = Resize<{}, axes = [2, -1]>(p, , , i)", mode),
          sizes + fmt::format("  r = Resize<{}, axes = [3, 2], keep_aspect_ratio_policy = "
                              "\"not_larger\">(p, , , i)",
                              mode),
          smaller + fmt::format("  q = Resize<{}, axes = [-1, 2]>(p, , s)\n  r = Relu(q)", mode)}) {
      SCOPED_TRACE(rest);
      const Model model = between(rest);
      EXPECT_EQ(steps(model, "transpose"), 2);
      const test::ThreeWays ways(model);
      for (const int64_t size : {2, 5, 20}) ways.check(test::picture({2, 4, size, size + 1}), 2e-5);
    }
  }
}

// Two axes of a region of the image, and what lies outside of it.
TEST(Layout, CroppedResizeStaysWithChannelsLast) {
  const Model model = between(
      "  i = Constant<value_ints = [9, 6]>()\n"
      "  o = Constant<value = float[4] {0.1, -0.25, 0.9, 0.8}>()\n"
      "  r = Resize<mode = \"linear\", coordinate_transformation_mode = \"tf_crop_and_resize\", "
      "extrapolation_value = 2.5, axes = [3, 2]>(p, o, , i)");
  EXPECT_EQ(steps(model, "transpose"), 2);
  test::ThreeWays(model).check(test::picture({2, 4, 8, 11}), 2e-5);
}

// Sizes that come with a run.
TEST(Layout, ResizeOfComputedSizes) {
  const Model model = between("  r = Resize<mode = \"linear\">(p, , , i)", 12, ", int64[4] i");
  EXPECT_EQ(steps(model, "transpose"), 2);
  const std::vector<NamedValue> inputs = {{"x", test::picture({2, 4, 5, 6})},
                                          {"i", Tensor::of<int64_t>({2, 12, 11, 9}, {4})}};
  const Session planned(model, {.threads = 2}), plain(model, {.threads = 1, .reference = true});
  const Tensor y = planned.run(inputs)[0].tensor(), wanted = plain.run(inputs)[0].tensor();
  ASSERT_EQ(y.shape(), (Shape{2, 8, 11, 9}));
  for (size_t i = 0; i < y.elements<float>().size(); ++i)
    ASSERT_NEAR(y.elements<float>()[i], wanted.elements<float>()[i], 2e-5);
}

// Few pixels are transposed rather than many.
TEST(Layout, ResizeThatNoConvolutionFollowsReadsPlanes) {
  const Model model =
      Model::from_text(fmt::format("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                                   "g (float[1, 130, 6, 5] x) => (float[a, b, c, d] y) {{\n{}"
                                   "  s = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()\n"
                                   "  p = Conv(x, v)\n  r = Resize(p, , s)\n  y = Sigmoid(r)\n}}\n",
                                   constant("v", "12, 130, 1, 1", 1560)));
  const auto list = Session(model, {.threads = 1}).steps();
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[2].kernel, "transpose.strided");
  EXPECT_EQ(list[3].kernel, "resize.tables");
  test::ThreeWays(model).check(test::picture({1, 130, 6, 5}), 2e-5);
}

// Fewer pixels are convolved, where enlarging what comes out is the same.
TEST(Layout, PointwiseConvolutionsGoBeforeWhatEnlarges) {
  const std::string scales = "  s = Constant<value_floats = [1.0, 1.0, 2.0, 3.0]>()\n",
                    columns = "  s = Constant<value_floats = [3.0, 1.0]>()\n",
                    smaller = "  s = Constant<value_floats = [1.0, 1.0, 4.0, 0.9]>()\n",
                    channels = "  s = Constant<value_floats = [1.0, 2.0, 2.0, 2.0]>()\n";
  struct Case {
    std::string rest;
    int64_t channels;
    bool first;
  };
  const Case cases[] = {
      {scales + "  q = Resize(p, , s)\n  r = Conv(q, w, k)", 10, true},
      {scales + "  q = Resize(p, , s)\n  o = Conv(q, w, k)\n  r = Relu(o)", 10, true},
      {scales + "  q = Resize<mode = \"linear\">(p, , s)\n  r = Conv(q, w, k)", 10, true},
      {columns + "  q = Resize<mode = \"linear\", axes = [-1, 2]>(p, , s)\n  r = Conv(q, w)", 10,
       true},
      {scales + "  q = Resize<mode = \"linear\">(p, , s)\n  o = Conv(q, w, k)\n  r = Relu(o)", 10,
       false},
      {scales + "  q = Resize<mode = \"cubic\">(p, , s)\n  r = Conv(q, w, k)", 10, false},
      {scales + "  q = Resize(p, , s)\n  o = Conv(q, w, k)\n  r = Concat<axis = 1>(o, q)", 22,
       false},
      {scales + "  q = Resize(p, , s)\n  r = Conv<strides = [1, 2]>(q, w, k)", 10, false},
      {scales + "  q = Resize(p, , s)\n  r = Conv<pads = [0, 1, 0, 0]>(q, w, k)", 10, false},
      {smaller + "  q = Resize(p, , s)\n  r = Conv(q, w, k)", 10, false},
      {channels + "  q = Resize(p, , s)\n  r = Conv(q, o2)", 10, false},
  };
  for (const auto& [rest, channels, first] : cases) {
    SCOPED_TRACE(rest);
    const Model model =
        between(constant("w", "10, 12, 1, 1", 120) + constant("o2", "10, 24, 1, 1", 240) +
                    constant("k", "10", 10) + rest,
                channels);
    const auto list = Session(model, {.threads = 1}).steps();
    std::vector<std::string> kernels;
    for (const StepDescription& step : list) kernels.push_back(step.kernel.substr(0, 6));
    const auto resize = std::ranges::find(kernels, "resize");
    EXPECT_EQ(std::count(kernels.begin(), resize, "conv.p") == 2, first);
    EXPECT_EQ(steps(model, "transpose"), 2);
    const test::ThreeWays ways(model);
    for (const int64_t size : {2, 5, 20}) ways.check(test::picture({2, 4, size, size + 1}), 2e-5);
  }
}

TEST(Layout, BlocksOfPixelsStayWithChannelsLast) {
  struct Case {
    std::string rest;
    int64_t channels, nodes;
  };
  const Case cases[] = {
      {"  r = DepthToSpace<blocksize = 2>(p)", 3, 5},
      {"  r = DepthToSpace<blocksize = 2, mode = \"CRD\">(p)", 3, 5},
      {"  q = Relu(p)\n  r = DepthToSpace<blocksize = 2, mode = \"CRD\">(q)", 3, 5},
      {"  q = DepthToSpace<blocksize = 2, mode = \"CRD\">(p)\n  r = Tanh(q)", 3, 6},
      // What else reads the channels finds them as they were.
      {"  q = DepthToSpace<blocksize = 2, mode = \"CRD\">(p)\n"
       "  o = DepthToSpace<blocksize = 2, mode = \"DCR\">(p)\n  r = Sub(q, o)",
       3, 7},
      {"  o = MaxPool<kernel_shape = [1, 1]>(p)\n"
       "  r = DepthToSpace<blocksize = 2, mode = \"CRD\">(o)",
       3, 6},
      {"  q = DepthToSpace<blocksize = 1, mode = \"CRD\">(p)\n  r = Tanh(q)", 12, 6},
      {"  r = SpaceToDepth<blocksize = 2>(p)", 48, 5},
      {"  r = SpaceToDepth<blocksize = 3>(p)", 108, 5},
  };
  for (const auto& [rest, channels, nodes] : cases) {
    SCOPED_TRACE(rest);
    const Model model = between(rest, channels);
    EXPECT_EQ(steps(model, "transpose"), 2);
    EXPECT_LE(steps(model, ""), nodes);
    const test::ThreeWays ways(model);
    for (const int64_t size : {6, 12, 24}) ways.check(test::picture({2, 4, size, size + 6}), 2e-5);
  }
}

// Half precision is float32 from the first convolution to the last.
TEST(Layout, HalfPrecisionGoesThroughWhatMovesPixels) {
  for (const std::string_view rest :
       {"r = Resize<mode = \"linear\">(p, , s)", "r = Resize(p, , s)", "r = Pad(p, q)",
        "m = SpaceToDepth<blocksize = 2>(p)\n  r = DepthToSpace<blocksize = 2>(m)"}) {
    for (const int half : {10, 16}) {
      const Model model = Model::from_text(fmt::format(
          "<ir_version: 10, opset_import: [\"\" : 21]>\n"
          "g (float[N, 4, H, W] x) => (float[a, b, c, d] y) {{\n{0}{1}"
          "  s = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()\n"
          "  q = Constant<value_ints = [0, 0, 1, 2, 0, 0, 0, 1]>()\n"
          "  h = Cast<to = {2}>(x)\n  vh = Cast<to = {2}>(v)\n  uh = Cast<to = {2}>(u)\n"
          "  p = Conv(h, vh)\n  {3}\n  o = Conv(r, uh)\n  y = Cast<to = 1>(o)\n}}\n",
          constant("v", "12, 4, 1, 1", 48), constant("u", "8, 12, 1, 1", 96), half, rest));
      EXPECT_EQ(steps(model, "cast"), 4) << rest;  // around all of it
      EXPECT_EQ(steps(model, "transpose"), 2) << rest;
      test::ThreeWays(model).check(test::picture({1, 4, 8, 6}), half == 10 ? 2e-3 : 2e-2);
    }
  }
}

// A convolution of one channel is a depthwise one, which takes no factors of its input.
TEST(Layout, GateOfOneChannel) {
  const Model model = Model::from_text(fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N, 1, 4, 8] x) => (float[a, b, c, d] y) {{\n{}{}{}"
      "  p = GlobalAveragePool(x)\n  q = Conv(p, v)\n  r = Conv(q, u)\n  s = Sigmoid(r)\n"
      "  m = Mul(x, s)\n  y = Conv(m, w)\n}}\n",
      constant("v", "8, 1, 1, 1", 8), constant("u", "1, 8, 1, 1", 8),
      constant("w", "1, 1, 1, 1", 1)));
  test::ThreeWays(model).check(test::picture({2, 1, 4, 8}), 2e-5);
}

// Factors of channels, of one pixel each, are transposed for nothing; the planes that they scale
// stay.
TEST(Layout, FactorsAreTransposedRatherThanPlanes) {
  const auto gate = [](std::string_view rest) {
    return Model::from_text(fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (float[N, 4, 6, 8] x) => (float[a, b, c, d] y) {{\n{}{}"
        "  p = GlobalAveragePool(x)\n  q = Conv(p, v)\n  s = Sigmoid(q)\n  m = Mul(x, s)\n{}}}\n",
        constant("v", "4, 4, 1, 1", 16), constant("w", "8, 4, 3, 3", 288), rest));
  };
  const Model alone = gate("  y = Relu(m)\n"), followed = gate("  y = Conv(m, w)\n");
  EXPECT_EQ(steps(alone, "transpose.strided"), 0);
  EXPECT_GT(steps(followed, "transpose.strided"), 0);
  for (const Model* model : {&alone, &followed})
    test::ThreeWays(*model).check(test::picture({2, 4, 6, 8}), 1e-5);
}

// Parameters that come with a run, and images without channels.
TEST(Layout, NormalisationsHoldTheirParametersAgainstTheChannels) {
  for (const std::string_view norm :
       {"InstanceNormalization(q, s, s)", "GroupNormalization<num_groups = 2>(q, s, s)"}) {
    const Model model = Model::from_text(fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (float[1, 4, 5, 5] x, float[S] s, int64[1] end) => (float[a, b, c, d] y) {{\n{}"
        "  from = Constant<value_ints = [0]>()\n  axis = Constant<value_ints = [1]>()\n"
        "  p = Conv(x, v)\n  q = Slice(p, from, end, axis)\n  y = {}\n}}\n",
        constant("v", "8, 4, 1, 1", 32), norm));
    const Session planned(model, {.threads = 1}), plain(model, {.threads = 1, .reference = true});
    const auto run = [&](const Session& session, int64_t scales, int64_t channels) {
      const Tensor end = Tensor::of<int64_t>({channels}, {1});
      return session
          .run(std::vector<NamedValue>{
              {"x", test::picture({1, 4, 5, 5})}, {"s", test::picture({scales})}, {"end", end}})[0]
          .tensor();
    };
    for (const Session* session : {&planned, &plain}) {
      EXPECT_THROW(run(*session, 3, 8), Error) << norm;
      EXPECT_THROW(run(*session, 9, 8), Error) << norm;
      EXPECT_EQ(run(*session, 8, 8).shape(), (Shape{1, 8, 5, 5}));
      EXPECT_EQ(run(*session, 0, 0).size(), 0) << norm;
    }
  }
}

// An image that comes with channels last, transposed, is there before any node has been placed.
TEST(Layout, ImagesMayComeWithChannelsLast) {
  for (const std::string_view op :
       {"Relu(t)", "Swish(t)", "Neg(t)", "DepthToSpace<blocksize = 2>(t)",
        "DepthToSpace<blocksize = 2, mode = \"CRD\">(t)"}) {
    const Model model =
        Model::from_text(fmt::format("<ir_version: 11, opset_import: [\"\" : 24]>\n"
                                     "g (float[N, 3, 5, 8] x) => (float[a, b, c, d] y) {{\n"
                                     "  t = Transpose<perm = [0, 3, 1, 2]>(x)\n  y = {}\n}}\n",
                                     op));
    test::ThreeWays(model).check(test::picture({2, 3, 5, 8}), 1e-6);
  }
}

// What a Transpose takes for channels are lines of the image that the convolution makes.
TEST(Layout, BlocksOfLinesLeaveTheConvolutionAlone) {
  const Model model = Model::from_text(
      fmt::format("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                  "g (float[N, 3, 6, 8] x) => (float[a, b, c, d] y) {{\n{}{}"
                  "  p = Conv(x, w, bias)\n  q = Relu(p)\n  t = Transpose<perm = [0, 3, 1, 2]>(q)\n"
                  "  y = DepthToSpace<blocksize = 2, mode = \"CRD\">(t)\n}}\n",
                  constant("w", "4, 3, 1, 1", 12), constant("bias", "4", 4)));
  test::ThreeWays(model).check(test::picture({2, 3, 6, 8}), 1e-5);
}

// Of [8, 1, 1], an image of planes takes one number for each channel, one of lines one for each
// image.
TEST(Layout, OneConstantForImagesOfTwoRanks) {
  for (const bool lines_first : {false, true}) {
    const std::string planes = "  p = Conv(x, w)\n  q = Mul(p, c)\n  r = Conv(q, v)\n",
                      lines =
                          "  l = Reshape(x, short)\n  m = Conv(l, wl)\n  n = Mul(m, c)\n"
                          "  o = Conv(n, vl)\n";
    const Model model = Model::from_text(fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (float[8, 3, 4, 5] x) => (float[a, b, c, d] y) {{\n"
        "  short = Constant<value_ints = [8, 3, 20]>()\n"
        "  long = Constant<value_ints = [8, 8, 4, 5]>()\n{}{}{}{}{}{}{}"
        "  s = Reshape(o, long)\n  y = Add(r, s)\n}}\n",
        constant("c", "8, 1, 1", 8), constant("w", "8, 3, 1, 1", 24),
        constant("v", "8, 8, 1, 1", 64), constant("wl", "8, 3, 1", 24),
        constant("vl", "8, 8, 1", 64), lines_first ? lines : planes, lines_first ? planes : lines));
    test::ThreeWays(model).check(test::picture({8, 3, 4, 5}), 1e-5);
  }
}

// Beside an image it is a vector, beside one of a single pixel what a fusion takes whole.
TEST(Layout, OneConstantForImagesAndPixels) {
  const Model model = Model::from_text(
      fmt::format("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                  "g (float[1, 3, 5, 5] x) => (float[a, b, c, d] y) {{\n{}{}{}"
                  "  p = Conv(x, w)\n  q = Mul(p, c)\n  r = Tanh(q)\n  s = GlobalAveragePool(r)\n"
                  "  t = Mul(s, c)\n  u = Tanh(t)\n  z = Sub(u, c)\n  y = Conv(z, v)\n}}\n",
                  constant("c", "1, 8, 1, 1", 8), constant("w", "8, 3, 1, 1", 24),
                  constant("v", "8, 8, 1, 1", 64)));
  test::ThreeWays(model).check(test::picture({1, 3, 5, 5}), 1e-5);
}

// One tensor of weights, two ways that pack it differently.
TEST(Layout, WeightsOfTwoDilations) {
  for (const auto& [outputs, channels, kernel] :
       {std::array<int64_t, 3>{3, 10, 5}, {4, 12, 7}, {2, 24, 3}}) {
    const Model model = Model::from_text(fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (float[1, {0}, H, W] x) => (float[a, b, c, d] y) {{\n{1}"
        "  p = Conv<pads = [{2}, {2}, {2}, {2}]>(x, w)\n"
        "  q = Conv<pads = [{3}, {3}, {3}, {3}], dilations = [2, 2]>(x, w)\n  y = Add(p, q)\n}}\n",
        channels,
        constant("w", fmt::format("{}, {}, {}, {}", outputs, channels, kernel, kernel),
                 outputs * channels * kernel * kernel),
        kernel / 2, kernel - 1));
    test::ThreeWays(model).check(test::picture({1, channels, 20, 21}), 2e-5);
  }
}

TEST(Layout, StridesBeyondTheKernel) {
  for (const std::string_view strides : {"2147483647, 2147483647", "60000, 3", "4, 4"}) {
    const Model model = upward(constant("w", "6, 12, 1, 2", 144),
                               fmt::format("strides = [{}]", strides), "  r = Relu(m)\n");
    EXPECT_EQ(steps(model, "conv_transpose.phases"), 0);
    test::ThreeWays(model).check(test::picture({1, 4, 1, 1}), 2e-5);
  }
}

}  // namespace
}  // namespace sardonyx
