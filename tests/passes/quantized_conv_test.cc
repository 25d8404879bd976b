// Convolutions of models that were quantised dynamically, against plain runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

struct DynamicNet {
  std::string w_type = "uint8";
  int w_zero = 128;           // -1: none
  int64_t in = 20, out = 70;  // 70: one whole panel and a part of one
  int64_t group = 1;
  std::string size = "9, 7";  // of the images; names where they are left open
  std::string kernel = "3, 3";
  int64_t taps = 9;
  std::string how = "pads = [1, 1, 1, 1]";
  bool by_channel = false;  // a scale for each output channel
  bool bias = true;
  std::string rest = "Relu(a)";
  bool read_twice = false;  // what is scaled is an output, too
};

template <class F>
std::string constant_of(const std::string& name, const std::string& type, const std::string& shape,
                        int64_t count, const F& element) {
  std::string values;
  for (int64_t i = 0; i < count; ++i) values += fmt::format("{}{}", i == 0 ? "" : ", ", element(i));
  return fmt::format("  {} = Constant<value = {}[{}] {{{}}}>()\n", name, type, shape, values);
}

std::string dynamic_model(const DynamicNet& n) {
  const bool is_signed = n.w_type == "int8";
  const int64_t each = n.in / n.group;
  const auto spatial = static_cast<size_t>(std::ranges::count(n.size, ',') + 1);
  std::string ones;
  for (size_t i = 0; i < spatial; ++i) ones += ", 1";
  const auto number = [](int64_t i) { return 0.01f * static_cast<float>(1 + i % 5); };
  std::string text =
      constant_of("w", n.w_type, fmt::format("{}, {}, {}", n.out, each, n.kernel),
                  n.out * each * n.taps,
                  [&](int64_t i) { return i * 37 % 255 - (is_signed ? 127 : 0); }) +
      constant_of("ws", "float", n.by_channel ? fmt::format("{}{}", n.out, ones) : "1",
                  n.by_channel ? n.out : 1, number) +
      constant_of("bias", "float", fmt::format("1, {}{}", n.out, ones), n.out,
                  [](int64_t i) { return static_cast<float>(i % 7) - 3; }) +
      constant_of("factor", "float", std::to_string(n.out), n.out,
                  [](int64_t i) { return 0.5f - 0.25f * static_cast<float>(i % 4); }) +
      constant_of("mean", "float", std::to_string(n.out), n.out,
                  [](int64_t i) { return static_cast<float>(i % 3); }) +
      constant_of("variance", "float", std::to_string(n.out), n.out,
                  [](int64_t i) { return 0.5f + static_cast<float>(i % 3); });
  text += "  low = Constant<value = float {-1}>()\n  high = Constant<value = float {6}>()\n";
  if (n.w_zero >= 0)
    text += fmt::format("  wz = Constant<value = {} {{{}}}>()\n", n.w_type, n.w_zero);
  text += "  b, s, z = DynamicQuantizeLinear(x)\n";
  text += fmt::format("  i = ConvInteger<{}, group = {}>(b, w, z{})\n", n.how, n.group,
                      n.w_zero >= 0 ? ", wz" : "");
  text += "  f = Cast<to = 1>(i)\n  m = Mul(s, ws)\n  p = Mul(f, m)\n";
  text += n.bias ? "  a = Add(p, bias)\n" : "  a = Identity(p)\n";
  text += fmt::format("  y = {}\n", n.rest);
  return fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N, {}, {}] x) => (float y{}) {{\n{}}}\n",
      n.in, n.size, n.read_twice ? ", float p" : "", text);
}

// Expects what plain runs make, by one step of the kernel. Returns how many steps there are.
size_t check_dynamic(const DynamicNet& net, const std::string& kernel = "quantized_conv.nhwc") {
  const std::string text = dynamic_model(net);
  SCOPED_TRACE(text.substr(text.find("b, s, z")));
  std::mt19937 numbers(7);
  Shape shape{2, net.in, 9};
  for (int64_t i = 0; i < std::ranges::count(net.size, ','); ++i) shape.push_back(7);
  Tensor x(ElementType::float32, shape);
  for (float& v : x.mutable_elements<float>())
    v = static_cast<float>(numbers() % 1000) / 250 - 1.5f;
  const Model held = Model::from_text(text);
  const auto wanted = Session(held, {.reference = true}).run({{"x", x}});
  size_t count = 0;
  for (const int threads : {1, 2}) {
    Session session(held, {.threads = threads});
    const auto steps = session.steps();
    count = steps.size();
    EXPECT_EQ(std::ranges::count(steps, kernel, &StepDescription::kernel), 1);
    for (int round = 0; round < 2; ++round) {
      const auto made = session.run({{"x", x}});
      EXPECT_EQ(made.size(), wanted.size());
      for (size_t i = 0; i < made.size(); ++i) {
        const Tensor &a = made[i].tensor(), &b = wanted[i].tensor();
        EXPECT_EQ(a.shape(), b.shape());
        float largest = 1;
        for (const float v : b.elements<float>()) largest = std::max(largest, std::abs(v));
        for (size_t k = 0; k < static_cast<size_t>(b.size()); ++k) {
          if (std::abs(a.elements<float>()[k] - b.elements<float>()[k]) <= 1e-6f * largest)
            continue;
          ADD_FAILURE() << a.elements<float>()[k] << " is not " << b.elements<float>()[k];
          return count;
        }
      }
    }
  }
  return count;
}

TEST(QuantizedConvolutions, ScaleTheirSums) {
  for (const char* type : {"uint8", "int8"}) {
    for (const bool by_channel : {false, true}) {
      for (const bool bias : {false, true}) {
        check_dynamic({.w_type = type, .w_zero = 3, .by_channel = by_channel, .bias = bias});
        check_dynamic({.w_type = type, .w_zero = -1, .by_channel = by_channel, .bias = bias});
      }
    }
  }
  for (const int64_t out : {8, 16, 64, 130}) check_dynamic({.out = out});
  check_dynamic({.size = "H, W"});
  check_dynamic({.how = "strides = [2, 2], dilations = [1, 2]"});
}

TEST(QuantizedConvolutions, OfEachChannelByItself) {
  check_dynamic({.in = 40, .out = 40, .group = 40});
  check_dynamic({.w_type = "int8", .w_zero = 0, .in = 40, .out = 40, .group = 40});
  check_dynamic({.in = 40, .out = 40, .group = 40, .how = "strides = [2, 2], pads = [1, 1, 1, 1]"});
}

TEST(QuantizedConvolutions, OfLinesAndSpaces) {
  check_dynamic({.size = "9", .kernel = "5", .taps = 5, .how = "pads = [2, 2]"});
  check_dynamic({.in = 6,
                 .size = "9, 7, 7",
                 .kernel = "3, 1, 2",
                 .taps = 6,
                 .how = "pads = [0, 0, 1, 0, 0, 1]"});
}

// Where they have no form with channels last.
TEST(QuantizedConvolutions, OfGroupsKeepTheirLayout) {
  check_dynamic({.in = 20, .out = 70, .group = 10}, "quantized_conv");
  check_dynamic({.in = 20, .out = 40, .group = 20, .by_channel = true}, "quantized_conv");
}

TEST(QuantizedConvolutions, TakeInWhatFollows) {
  const std::string normalization = "BatchNormalization(a, factor, mean, mean, variance)";
  const size_t steps = check_dynamic({.rest = "Sigmoid(a)"}) - 1;
  for (const std::string rest : {"Relu(a)", "Clip(a, low, high)", normalization.c_str()})
    EXPECT_EQ(check_dynamic({.rest = rest}), steps) << rest;
  EXPECT_EQ(check_dynamic({.by_channel = true, .bias = false, .rest = normalization}), steps);
}

// A scale of rank 4 is computed with channels last, too.
TEST(QuantizedConvolutions, HaveScalesThatAreMadeOfImages) {
  for (const std::string_view product :
       {"i = ConvInteger<pads = [1, 1, 1, 1]>(q, w)  f = Cast<to = 1>(i)  v = Mul(f, s)",
        "b = QLinearConv<pads = [1, 1, 1, 1]>(q, s, z, w, s, wz, s, z)  v = Cast<to = 1>(b)"}) {
    const std::string text = fmt::format(
        R"(<ir_version: 10, opset_import: ["" : 21]>
        g (float[N, 8, 9, 7] x) => (float[N, 64, 9, 7] v) {{
          k_shape = Constant<value_ints = [16, 8, 3, 3]>()
          k = ConstantOfShape<value = float[1] {{0.5}}>(k_shape)
          c = Conv<pads = [1, 1, 1, 1]>(x, k)
          a = Abs(c)
          axes = Constant<value_ints = [0, 1, 2, 3]>()
          m = ReduceMax<keepdims = 1>(a, axes)
          c127 = Constant<value = float {{127}}>()
          s = Div(m, c127)
          q, scale, zero = DynamicQuantizeLinear(c)
          w_shape = Constant<value_ints = [64, 16, 3, 3]>()
          w = ConstantOfShape<value = int8[1] {{3}}>(w_shape)
          z = Constant<value = uint8 {{7}}>()
          wz = Constant<value = int8 {{0}}>()
          {}
        }})",
        product);
    const Model held = Model::from_text(text);
    Tensor x(ElementType::float32, {2, 8, 9, 7});
    for (size_t i = 0; i < static_cast<size_t>(x.size()); ++i)
      x.mutable_elements<float>()[i] = static_cast<float>(i % 11) - 5;
    const auto wanted = Session(held, {.reference = true}).run({{"x", x}})[0].tensor();
    const auto made = Session(held, {.threads = 1}).run({{"x", x}})[0].tensor();
    for (size_t i = 0; i < static_cast<size_t>(x.size()); ++i) {
      const float a = made.elements<float>()[i], b = wanted.elements<float>()[i];
      ASSERT_NEAR(a, b, 1e-5f * std::abs(b)) << product;
    }
  }
}

TEST(QuantizedConvolutions, LeaveWhatIsReadByOthers) { check_dynamic({.read_twice = true}); }

}  // namespace
}  // namespace sardonyx
