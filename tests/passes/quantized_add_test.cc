// Sums of bytes that convolutions take over, against plain runs, on one thread and on two.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

struct Net {
  std::string type = "uint8";       // of the convolution's bytes and of the output
  std::string other = "uint8";      // of what is added
  int64_t channels = 24, out = 70;  // 70: one whole panel and a part of one
  std::string size = "9, 7";        // of the images; names where they are left open
  bool relu = true, swapped = false;
  bool two = false;         // both sides come from convolutions
  bool itself = false;      // the convolution's bytes are added to themselves
  bool read_twice = false;  // they are an output, too
  bool broadcast = false;   // one row of bytes is added to all
  bool depthwise = false;
  bool added_is_x = false;  // what is added is what the convolution reads
  float y_scale = 0.05f;
};

std::string bytes(const std::string& name, const std::string& type, const std::string& shape,
                  int64_t count) {
  std::string values;
  for (int64_t i = 0; i < count; ++i)
    values +=
        fmt::format("{}{}", i == 0 ? "" : ", ", type == "int8" ? i * 37 % 255 - 127 : i * 37 % 255);
  return fmt::format("  {} = Constant<value = {}[{}] {{{}}}>()\n", name, type, shape, values);
}

std::string number(const std::string& name, const std::string& type, double value) {
  return fmt::format("  {} = Constant<value = {} {{{}}}>()\n", name, type, value);
}

std::string model(const Net& n) {
  const int64_t in = n.depthwise || n.added_is_x ? n.out : n.channels;
  const bool is_signed = n.type == "int8";
  std::string text = bytes("w", "int8", fmt::format("{}, {}, 3, 3", n.out, n.depthwise ? 1 : in),
                           n.out * (n.depthwise ? 1 : in) * 9);
  text += number("xs", "float", 0.02) + number("xz", "uint8", 120) + number("ws", "float", 0.01) +
          number("wz", "int8", 0) + number("cs", "float", 0.9) +
          number("cz", n.type, is_signed ? -3 : 117) + number("os", "float", 0.03) +
          number("oz", n.other, n.other == "int8" ? 4 : 99) + number("ys", "float", n.y_scale) +
          number("yz", n.type, is_signed ? -100 : 20);
  const std::string how = fmt::format("pads = [1, 1, 1, 1], group = {}", n.depthwise ? n.out : 1);
  text += fmt::format("  c = QLinearConv<{}>(x, xs, xz, w, ws, wz, cs, cz)\n", how);
  std::string other = n.added_is_x ? "x" : n.itself ? "c" : "o";
  if (n.two) {
    text += fmt::format("  c2 = QLinearConv<{}>(x, xs, xz, w, ws, wz, cs, cz)\n", how);
    other = "c2";
  }
  const bool own = n.itself || n.two;
  text += "  cf = DequantizeLinear(c, cs, cz)\n";
  text += fmt::format("  of = DequantizeLinear({}, {}, {})\n", other, own ? "cs" : "os",
                      own            ? "cz"
                      : n.added_is_x ? "xz"
                                     : "oz");
  text += n.swapped ? "  s = Add(of, cf)\n" : "  s = Add(cf, of)\n";
  if (n.relu) text += "  r = Relu(s)\n";
  text += fmt::format("  y = QuantizeLinear({}, ys, yz)\n", n.relu ? "r" : "s");
  return fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (uint8[N, {}, {}] x, {}[{}, {}] o) => ({}[a, b, c1, d] y{}) {{\n{}}}\n",
      in, n.size, n.other, n.broadcast ? "1, 1" : fmt::format("N, {}", n.out),
      n.broadcast ? "1, 7" : n.size, n.type,
      n.read_twice ? fmt::format(", {}[e, f, g1, h] c", n.type) : "", text);
}

Tensor random(std::mt19937& numbers, const std::string& type, const Shape& shape) {
  Tensor made(type == "int8" ? ElementType::int8 : ElementType::uint8, shape);
  auto* to = static_cast<uint8_t*>(made.mutable_data());
  for (int64_t i = 0; i < made.size(); ++i) to[i] = static_cast<uint8_t>(numbers());
  return made;
}

// Expects the bytes of plain runs, and `regions` steps that go over a sum by themselves.
void check(const Net& net, int regions) {
  const std::string text = model(net);
  std::mt19937 numbers(7);
  const int64_t in = net.depthwise || net.added_is_x ? net.out : net.channels;
  const std::vector<NamedValue> inputs{
      {"x", random(numbers, "uint8", {2, in, 9, 7})},
      {"o",
       random(numbers, net.other, net.broadcast ? Shape{1, 1, 1, 7} : Shape{2, net.out, 9, 7})}};
  const Model held = Model::from_text(text);
  const auto wanted = Session(held, {.reference = true}).run(inputs);
  for (const int threads : {1, 2}) {
    Session session(held, {.threads = threads});
    const auto steps = session.steps();
    EXPECT_EQ(
        std::ranges::count_if(
            steps, [](const auto& step) { return step.kernel.starts_with("fused_elementwise"); }),
        regions)
        << text;
    for (int round = 0; round < 2; ++round) {
      const auto made = session.run(inputs);
      ASSERT_EQ(made.size(), wanted.size());
      for (size_t i = 0; i < made.size(); ++i) {
        const Tensor &a = made[i].tensor(), &b = wanted[i].tensor();
        ASSERT_EQ(a.shape(), b.shape());
        EXPECT_EQ(std::memcmp(a.data(), b.data(), a.byte_size()), 0) << text;
      }
    }
  }
}

TEST(QuantizedSums, EndTheConvolution) {
  for (const char* type : {"uint8", "int8"}) {
    for (const bool relu : {false, true}) {
      for (const bool swapped : {false, true})
        check({.type = type, .other = type, .relu = relu, .swapped = swapped}, 0);
      check({.type = type, .other = type, .size = "H, W", .relu = relu}, 0);
    }
  }
  for (const int64_t out : {8, 16, 64, 130}) check({.out = out}, 0);
  check({.y_scale = 1e-3f}, 0);
  check({.y_scale = 7}, 0);
}

TEST(QuantizedSums, OfTwoConvolutionsEndTheLaterOne) {
  check({.two = true}, 0);
  check({.swapped = true, .two = true}, 0);
}

TEST(QuantizedSums, MayAddWhatTheConvolutionReads) { check({.added_is_x = true}, 0); }

TEST(QuantizedSums, StayWhereTheBytesAreReadElsewhere) {
  check({.itself = true}, 0);  // a table of 256 bytes
  check({.read_twice = true}, 1);
}

TEST(QuantizedSums, StayWhereNoKernelAddsThem) {
  check({.depthwise = true}, 1);
  check({.other = "int8"}, 1);
  check({.type = "int8", .other = "uint8"}, 1);
}

TEST(QuantizedSums, StayWhereRowsAreBroadcast) { check({.broadcast = true}, 1); }

TEST(QuantizedSums, NameWhatTheyDo) {
  const auto steps = Session(Model::from_text(model({})), {.threads = 1}).steps();
  const auto conv = std::ranges::find_if(
      steps, [](const auto& step) { return step.kernel == "conv_scaled.int8_nhwc"; });
  ASSERT_NE(conv, steps.end());
  EXPECT_EQ(conv->sources.size(), 6u);  // two of bytes, a convolution, Add, Relu, QuantizeLinear
}

}  // namespace
}  // namespace sardonyx
