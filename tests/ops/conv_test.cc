// Conv in all its forms, ConvTranspose, DeformConv, Col2Im.
#include "nn_support.h"

namespace sardonyx::ops_test {
namespace {

struct Geometry {
  Shape x, w;
  std::vector<int64_t> strides, dilations, pads;  // two spatial axes
  int64_t group = 1;

  std::string attributes() const {
    return fmt::format("<strides = [{}], dilations = [{}], pads = [{}], group = {}>",
                       fmt::join(strides, ", "), fmt::join(dilations, ", "), fmt::join(pads, ", "),
                       group);
  }
};

Geometry any_geometry(Random& random) {
  Geometry g;
  g.group = random.between(1, 3);
  const int64_t channels = random.between(1, 5), filters = random.between(1, 5);
  g.x = {random.between(1, 2), channels * g.group, random.between(6, 12), random.between(6, 12)};
  g.w = {filters * g.group, channels, random.between(1, 3), random.between(1, 3)};
  for (int i = 0; i < 2; ++i)
    g.strides.push_back(random.between(1, 3)), g.dilations.push_back(random.between(1, 2));
  for (int i = 0; i < 4; ++i) g.pads.push_back(random.between(0, 2));
  return g;
}

// The definition, in double.
Tensor plain_conv(const Geometry& g, const Tensor& x, const Tensor& w, const Tensor& bias) {
  const int64_t filters = g.w[0], channels = g.w[1];
  Shape y{g.x[0], filters};
  for (size_t i = 0; i < 2; ++i)
    y.push_back((g.x[i + 2] + g.pads[i] + g.pads[i + 2] - g.dilations[i] * (g.w[i + 2] - 1) - 1) /
                    g.strides[i] +
                1);
  Tensor result(ElementType::float32, y);
  for (int64_t at = 0; at < result.size(); ++at) {
    const int64_t ow = at % y[3], oh = at / y[3] % y[2], m = at / y[3] / y[2] % filters,
                  n = at / y[3] / y[2] / filters;
    double sum = bias.empty() ? 0 : static_cast<double>(bias.elements<float>()[m]);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t kh = 0; kh < g.w[2]; ++kh) {
        for (int64_t kw = 0; kw < g.w[3]; ++kw) {
          const int64_t h = oh * g.strides[0] + kh * g.dilations[0] - g.pads[0],
                        v = ow * g.strides[1] + kw * g.dilations[1] - g.pads[1];
          if (h < 0 || h >= g.x[2] || v < 0 || v >= g.x[3]) continue;
          const int64_t channel = m / (filters / g.group) * channels + c;
          sum += static_cast<double>(
                     x.elements<float>()[((n * g.x[1] + channel) * g.x[2] + h) * g.x[3] + v]) *
                 w.elements<float>()[((m * channels + c) * g.w[2] + kh) * g.w[3] + kw];
        }
      }
    }
    result.mutable_elements<float>()[at] = static_cast<float>(sum);
  }
  return result;
}

TEST(Conv, EveryGeometryIsTheDefinition) {
  Random random(11);
  for (int round = 0; round < 40; ++round) {
    const Geometry g = any_geometry(random);
    const Tensor x = random.floats(g.x), w = random.floats(g.w),
                 bias = round % 2 ? random.floats({g.w[0]}) : Tensor();
    const Tensor wanted = plain_conv(g, x, w, bias);
    const std::string call = "Conv " + g.attributes();
    expect_near(run_node(call, {x, w, bias})[0], wanted, 2e-5);
    expect_near(run_node(call, {x, w, bias}, 1, {1, 2})[0], wanted, 2e-5);
    const auto wide = [](const Tensor& t) {
      return t.empty() ? t : converted(t, ElementType::float64);
    };
    expect_near(run_node(call, {wide(x), wide(w), wide(bias)})[0], wanted, 1e-6);
  }
}

TEST(Conv, SymbolicSizes) {
  const Inferred g(R"(g (float[batch, 3, h, w] x, float[8, 3, 3, 3] k) => (float[a] y) {
    a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, k)
    b = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (x, k)
    c = Conv <auto_pad = "VALID"> (x, k)
  })");
  EXPECT_EQ(g.shape("a"), "[batch,8,floor((h + 1)/2),floor((w + 1)/2)]");
  EXPECT_EQ(g.shape("b"), "[batch,8,floor((h + 1)/2),floor((w + 1)/2)]");
  EXPECT_EQ(g.shape("c"), "[batch,8,max(h - 2, 0),max(w - 2, 0)]");
}

// SAME pads nothing where windows leave gaps, and crops nothing, either; pools crop.
TEST(Conv, StridesBeyondTheKernelBeginAtTheFirstElement) {
  const Tensor x = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {1, 1, 6});
  const Tensor w = Tensor::of<float>({10}, {1, 1, 1});
  for (const std::string mode : {"SAME_UPPER", "SAME_LOWER"}) {
    const std::string rest = " <kernel_shape = [1], strides = [4], auto_pad = \"" + mode + "\">";
    EXPECT_EQ(elements<float>(run_node("Conv" + rest, {x, w})[0]), (std::vector<float>{10, 50}));
    EXPECT_EQ(elements<float>(run_node("MaxPool" + rest, {x})[0]), (std::vector<float>{1, 5}));
  }
  const Tensor three = Tensor::of<float>({1, 2, 3}, {1, 1, 3});
  const std::string rest = " <kernel_shape = [1], strides = [3], auto_pad = \"SAME_UPPER\">";
  EXPECT_EQ(elements<float>(run_node("Conv" + rest, {three, w})[0]), (std::vector<float>{10}));
  EXPECT_EQ(elements<float>(run_node("MaxPool" + rest, {three})[0]), (std::vector<float>{2}));
}

TEST(Conv, MistakesAreNamed) {
  const Tensor x(ElementType::float32, {1, 4, 5, 5}), w(ElementType::float32, {6, 2, 3, 3});
  EXPECT_NE(error_of([&] { run_node("Conv", {x, w}); }).find("channels"), std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Conv <group = 0>", {x, w});
            }).find("group must be at least 1"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Conv <group = 2, strides = [1]>", {x, w});
            }).find("'strides' must have 2 entries"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Conv <group = 2, strides = [1, 0]>", {x, w});
            }).find("'strides'"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Conv <group = 2, auto_pad = \"SAME\">", {x, w});
            }).find("auto_pad"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Conv <group = 2>", {x, w, Tensor(ElementType::float32, {5})});
            }).find("bias"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Conv <group = 9223372036854775807>", {x, w});
            }).find("group"),
            std::string::npos);
}

TEST(FusedConv, ActivationAndResidual) {
  Random random(12);
  const Tensor x = random.floats({2, 8, 9, 9}), w = random.floats({8, 8, 3, 3}),
               bias = random.floats({8});
  const std::string pads = "pads = [1, 1, 1, 1]";
  const Value plain = run_node("Conv <" + pads + ">", {x, w, bias})[0];
  const Value relu = run_node("Relu", {run_node("Add", {plain.tensor(), x})[0].tensor()})[0];
  expect_near(run_node("sardonyx.Conv <" + pads + ", activation = \"relu\">", {x, w, bias, x}, 1,
                       {1, 2})[0],
              relu);
  const Value clip =
      run_node("Clip", {plain.tensor(), Tensor::scalar<float>(0), Tensor::scalar<float>(6)})[0];
  expect_near(
      run_node("sardonyx.Conv <" + pads +
                   ", activation = \"clip\", activation_alpha = 0.0, activation_beta = 6.0>",
               {x, w, bias}, 1, {1})[0],
      clip);
}

// <conv(x), y> = <x, transposed conv(y)>.
TEST(ConvTranspose, IsTheAdjointOfConv) {
  Random random(13);
  for (int round = 0; round < 30; ++round) {
    Geometry g = any_geometry(random);
    for (size_t i = 0; i < 2; ++i) {  // exact sizes: no input is left over at the end
      const int64_t extent = g.dilations[i] * (g.w[i + 2] - 1) + 1,
                    rest = (g.x[i + 2] + g.pads[i] + g.pads[i + 2] - extent) % g.strides[i];
      g.x[i + 2] -= rest;
    }
    const Tensor x = random.floats(g.x), w = random.floats(g.w);
    const Tensor forward = run_node("Conv " + g.attributes(), {x, w})[0].tensor();
    const Tensor y = random.floats(forward.shape());
    const Tensor back = run_node("ConvTranspose " + g.attributes(), {y, w}, 1,
                                 round % 2 ? std::vector<int>{1} : std::vector<int>{})[0]
                            .tensor();
    ASSERT_EQ(back.shape(), g.x);
    double left = 0, right = 0;
    for (size_t i = 0; i < static_cast<size_t>(y.size()); ++i)
      left += static_cast<double>(forward.elements<float>()[i]) * y.elements<float>()[i];
    for (size_t i = 0; i < static_cast<size_t>(x.size()); ++i)
      right += static_cast<double>(x.elements<float>()[i]) * back.elements<float>()[i];
    EXPECT_NEAR(left, right, 1e-3 * std::max(1.0, std::abs(left)));
  }
}

TEST(ConvTranspose, OutputShapeAndPadding) {
  const Inferred g(R"(g (float[n, 4, h, w] x, float[4, 2, 3, 3] k) => (float[a] y) {
    a = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]> (x, k)
    b = ConvTranspose <strides = [2, 2], auto_pad = "SAME_UPPER", group = 2> (x, k)
    c = ConvTranspose <strides = [2, 2], output_shape = [10, 8]> (x, k)
  })");
  EXPECT_EQ(g.shape("a"), "[n,2,2*h,2*w]");
  EXPECT_EQ(g.shape("b"), "[n,4,2*h,2*w]");
  EXPECT_EQ(g.shape("c"), "[n,2,10,8]");
}

TEST(DeformConv, WithoutOffsetsIsConv) {
  Random random(14);
  const Tensor x = random.floats({2, 4, 7, 8}), w = random.floats({6, 2, 3, 2}),
               bias = random.floats({6});
  const std::string attributes = "<pads = [1, 0, 1, 1], strides = [2, 1], group = 2";
  const Tensor wanted = run_node("Conv " + attributes + ">", {x, w, bias})[0].tensor();
  const Tensor offset(ElementType::float32, {2, 2 * 6 * 2, wanted.shape()[2], wanted.shape()[3]});
  std::memset(const_cast<void*>(offset.data()), 0, offset.byte_size());
  expect_near(run_node("DeformConv " + attributes + ", offset_group = 2>", {x, w, offset, bias})[0],
              wanted);
}

// Strides, by which rows are made phase by phase, against what doubles give.
TEST(ConvTranspose, StridesAgreeWithDoubles) {
  Random random(16);
  const auto doubles = [](const Tensor& from) {
    return run_node("Cast <to = 11>", {from})[0].tensor();
  };
  const Tensor narrow = random.floats({2, 4, 3, 5, 6}), wide = random.floats({1, 4, 2, 3, 71}),
               w = random.floats({4, 3, 2, 3, 5}), bias = random.floats({6});
  for (int i = 0; i < 14; ++i) {
    const int stride = i / 2 + 1;
    const Tensor& x = i % 2 == 0 ? narrow : wide;
    for (int dilation = 1; dilation < 4; ++dilation) {
      const std::string node = fmt::format(
          "ConvTranspose <group = 2, strides = [1, 2, {0}], dilations = [2, 1, {1}], pads = [1, 0, "
          "3, 0, 1, 2]>",
          stride, dilation);
      expect_near(doubles(run_node(node, {x, w, bias})[0].tensor()),
                  run_node(node, {doubles(x), doubles(w), doubles(bias)})[0]);
    }
  }
}

// Positions that are placed once for all channels give what each channel's own do, at the edges and
// beyond them.
TEST(DeformConv, PlanesAgreeWithDoubles) {
  Random random(15);
  const Tensor x = random.floats({2, 6, 13, 14}), w = random.floats({4, 6, 3, 2});
  Tensor offset = random.floats({2, 2 * 6 * 2, 13, 15}), mask = random.floats({2, 2 * 6, 13, 15});
  for (float& v : offset.mutable_elements<float>()) v *= 4;
  offset.mutable_elements<float>()[0] = NAN, offset.mutable_elements<float>()[5] = 1e30f;
  const auto doubles = [](const Tensor& from) {
    return run_node("Cast <to = 11>", {from})[0].tensor();
  };
  const std::string node = "DeformConv <pads = [1, 1, 1, 1], offset_group = 2>";
  const Tensor bias = random.floats({4});
  const Tensor y = run_node(node, {x, w, offset, bias, mask})[0].tensor();
  expect_near(doubles(y), run_node(node, {doubles(x), doubles(w), doubles(offset), doubles(bias),
                                          doubles(mask)})[0]);
}

// Pixels under several blocks count that often.
TEST(Col2Im, CountsOverlaps) {
  const Tensor ones =
      run_node("ConstantOfShape <value = float[1] {1.0}>", {Tensor::of<int64_t>({1, 4, 4}, {3})})[0]
          .tensor();
  const Tensor y = run_node("Col2Im", {ones, Tensor::of<int64_t>({3, 3}, {2}),
                                       Tensor::of<int64_t>({2, 2}, {2})})[0]
                       .tensor();
  EXPECT_EQ(y.shape(), (Shape{1, 1, 3, 3}));
  EXPECT_EQ(elements<float>(y), (std::vector<float>{1, 2, 1, 2, 4, 2, 1, 2, 1}));
  EXPECT_NE(error_of([&] {
              run_node("Col2Im",
                       {ones, Tensor::of<int64_t>({9, 9}, {2}), Tensor::of<int64_t>({2, 2}, {2})});
            }).find("number of blocks"),
            std::string::npos);
}

// Two blocks of two elements overlap in the middle one of three.
template <class T>
void expect_whole_sum(T a, T b, T sum) {
  const Tensor y =
      run_node("Col2Im", {Tensor::of<T>({a, a, b, b}, {1, 2, 2}), Tensor::of<int64_t>({3}, {1}),
                          Tensor::of<int64_t>({2}, {1})})[0]
          .tensor();
  EXPECT_EQ(elements<T>(y), (std::vector<T>{a, sum, b}));
}

TEST(Col2Im, SumsOfWholeNumbersAreExactAndWrap) {
  constexpr int64_t odd = (int64_t{1} << 60) + 1;
  expect_whole_sum<int64_t>(odd, -2, odd - 2);
  expect_whole_sum<uint64_t>(uint64_t{1} << 63, (uint64_t{1} << 63) + 1, 1);
  expect_whole_sum<int32_t>(INT32_MAX, 1, INT32_MIN);
  expect_whole_sum<int8_t>(-100, -100, 56);
}

Tensor dequantized(const Tensor& x, float scale, float zero) {
  Tensor result = converted(x, ElementType::float32);
  for (float& value : result.mutable_elements<float>()) value = (value - zero) * scale;
  return result;
}

TEST(QLinearConv, IsTheRoundedConvolution) {
  Random random(15);
  for (int round = 0; round < 20; ++round) {
    const Geometry g = any_geometry(random);
    const Tensor x = random.integers<uint8_t>(g.x, 0, 255),
                 w = random.integers<int8_t>(g.w, -127, 127);
    const Tensor wanted =
        plain_conv(g, dequantized(x, 0.02f, 120), dequantized(w, 0.01f, 3), Tensor());
    const std::vector<Tensor> inputs{x,
                                     Tensor::scalar<float>(0.02f),
                                     Tensor::scalar<uint8_t>(120),
                                     w,
                                     Tensor::scalar<float>(0.01f),
                                     Tensor::scalar<int8_t>(3),
                                     Tensor::scalar<float>(0.5f),
                                     Tensor::scalar<uint8_t>(100)};
    for (const std::vector<int>& constants : {std::vector<int>{}, {3, 5}}) {
      const Tensor y =
          run_node("QLinearConv " + g.attributes(), inputs, 1, constants, 2)[0].tensor();
      for (size_t i = 0; i < static_cast<size_t>(y.size()); ++i) {
        const float exact = std::clamp(wanted.elements<float>()[i] / 0.5f + 100, 0.0f, 255.0f);
        ASSERT_NEAR(static_cast<float>(y.elements<uint8_t>()[i]), exact, 0.501f);
      }
    }
  }
}

TEST(ConvInteger, SumsAreExact) {
  Random random(16);
  const Geometry g = any_geometry(random);
  const Tensor x = random.integers<uint8_t>(g.x, 0, 255), w = random.integers<uint8_t>(g.w, 0, 255);
  const Tensor wanted = plain_conv(g, dequantized(x, 1, 7), dequantized(w, 1, 200), Tensor());
  const Tensor y = run_node("ConvInteger " + g.attributes(),
                            {x, w, Tensor::scalar<uint8_t>(7), Tensor::scalar<uint8_t>(200)})[0]
                       .tensor();
  for (size_t i = 0; i < static_cast<size_t>(y.size()); ++i)
    ASSERT_EQ(static_cast<float>(y.elements<int32_t>()[i]), wanted.elements<float>()[i]);
}

}  // namespace
}  // namespace sardonyx::ops_test
