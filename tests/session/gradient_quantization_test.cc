// Straight-through gradients of quantised values: what the estimator says, computed by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "sardonyx/session.h"

namespace sardonyx::test {
namespace {

constexpr const char* quantization_header =
    "<ir_version: 10, opset_import: [\"\" : 27, \"ai.onnx.preview.training\" : 1]>\n";

std::vector<double> elements(const Value& value) {
  const auto list = value.tensor().elements<float>();
  return {list.begin(), list.end()};
}

// y = (q - zero) * s with q = x / s rounded and kept within [low, high].
struct Expected {
  std::vector<double> x, scale;
};
Expected estimate(const std::vector<double>& x, double s, double zero, double low, double high) {
  Expected expected{{}, {0}};
  for (const double value : x) {
    const double q = std::nearbyint(value / s) + zero;
    const bool held = q >= low && q <= high;
    expected.x.push_back(held ? 1 : 0);
    expected.scale[0] += std::min(std::max(q, low), high) - zero - (held ? value / s : 0);
  }
  return expected;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << i;
}

Tensor floats(const std::vector<float>& values, Shape shape) {
  return Tensor::of<float>(values, std::move(shape));
}

TEST(QuantizedGradient, IsStraightThroughAndLearnsTheScale) {
  struct Case {
    const char* type;
    double zero, low, high;
  };
  for (const Case& c : {Case{"int8", 0, -128, 127}, Case{"int8", 3, -128, 127},
                        Case{"uint8", 100, 0, 255}, Case{"int4", -2, -8, 7}}) {
    SCOPED_TRACE(c.type);
    const std::string zero = std::to_string(static_cast<int>(c.zero));
    // What only moves the quantised values passes on what flows back.
    const Session session(Model::from_text(
        std::string(quantization_header) +
        "g (float[6] x, float s) => (float[6] dx, float ds) {\n" +
        " z = Constant<value = " + c.type + " {" + zero + "}>()\n q = QuantizeLinear(x, s, z)\n" +
        " n = Constant<value_ints = [2, 3]>()\n h = Reshape(q, n)\n" +
        " y = DequantizeLinear(h, s, z)\n sum = ReduceSum<keepdims = 0>(y)\n"
        " dx, ds = ai.onnx.preview.training.Gradient<xs = [\"x\", \"s\"], y = \"sum\">(x, s)\n}"));
    const std::vector<float> x{0.3f, -1.24f, 2.71f, 40, -60, 0.01f};
    const auto outputs = session.run({{"x", floats(x, {6})}, {"s", Tensor::scalar<float>(0.25f)}});
    const Expected expected = estimate({x.begin(), x.end()}, 0.25, c.zero, c.low, c.high);
    expect_near(elements(outputs[0]), expected.x);
    expect_near(elements(outputs[1]), expected.scale);
  }
}

Session differentiated(const std::string& body) {
  return Session(Model::from_text(
      std::string(quantization_header) +
      "g (float[4] x, bool c) => (float[4] dx) {\n s = Constant<value_float = 0.5>()\n"
      " q = QuantizeLinear(x, s)\n" +
      body + "\n dx = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"y\">(x)\n}"));
}

TEST(QuantizedGradient, PassesWhatOnlyMovesTheValues) {
  struct Case {
    const char* body;
    std::vector<double> expected;
  };
  const std::string read = "\n y = DequantizeLinear(b, s)";
  for (const Case& c : {
           Case{"n = Constant<value_ints = [3]>()\n b = Tile(q, n)", {3, 3, 3, 3}},
           Case{"b, rest = Split<num_outputs = 2>(q)", {1, 1, 0, 0}},
           Case{"k = Constant<value = uint8[1] {5}>()\n b = Concat<axis = 0>(k, q)", {1, 1, 1, 1}},
           Case{"i = Constant<value_ints = [1, 1, -1]>()\n b = GatherElements(q, i)", {0, 2, 0, 1}},
           Case{"n = Constant<value_ints = [3, 4]>()\n b = Expand(q, n)", {3, 3, 3, 3}},
           Case{"k = Constant<value = bool[4] {1, 0, 0, 1}>()\n p = Constant<value = uint8 {5}>()\n"
                " b = Where(k, q, p)",
                {1, 0, 0, 1}},
           Case{"k = Constant<value = bool[4] {1, 0, 0, 1}>()\n b = Compress(q, k)", {1, 0, 0, 1}},
           Case{"k = Constant<value = bool[4] {1, 0, 0, 1}>()\n b = Compress<axis = 0>(q, k)",
                {1, 0, 0, 1}},
           Case{"n = Constant<value_ints = [1, 1, 4]>()\n r = Reshape(q, n)\n"
                " b = MaxPool<kernel_shape = [2], strides = [2]>(r)",
                {0, 1, 0, 1}},
           Case{"k = Constant<value = uint8[4] {5, 6, 7, 8}>()\n m = Less(q, k)\n"
                " w = Cast<to = 6>(q)\n b = Cast<to = 2>(w)",
                {1, 1, 1, 1}},
           Case{"b = If(c) <then_branch = t () => (a) { a = QuantizeLinear(x, s) },"
                " else_branch = e () => (d) { h = Add(x, x)\n d = QuantizeLinear(h, s) }>",
                {1, 1, 1, 1}},
       }) {
    SCOPED_TRACE(c.body);
    const auto outputs =
        differentiated(c.body + read)
            .run({{"x", floats({1, 2, 3, 4}, {4})}, {"c", Tensor::scalar<bool>(true)}});
    expect_near(elements(outputs[0]), c.expected);
  }
}

// A whole number that stands for a value has a slope that is none.
TEST(QuantizedGradient, OfACastIsNotCutOff) {
  for (const char* cast : {"f = Cast<to = 1>(q)", "f = CastLike(q, k)"}) {
    const auto outputs =
        differentiated("k = Constant<value = float[4] {0.3, 1.7, -2.6, 0.25}>()\n " +
                       std::string(cast) + "\n y = Mul(f, k)")
            .run({{"x", floats({1, 2, 3, 4}, {4})}, {"c", Tensor::scalar<bool>(true)}});
    expect_near(elements(outputs[0]), {0.6, 3.4, -5.2, 0.5});
  }
}

TEST(QuantizedGradient, IsRefusedWhereGraphsReadQuantizedValues) {
  for (const char* body :
       {"y = If(c) <then_branch = t () => (a) { a = DequantizeLinear(q, s) },"
        " else_branch = e () => (d) { d = Identity(x) }>",
        "n = Constant<value_int = 2>()\n r = Loop(n, c, q) <body = b (int64 i, bool go, uint8[4] "
        "v) "
        "=> (on, w) { on = Identity(go)\n f = DequantizeLinear(v, s)\n h = Add(f, x)\n"
        " w = QuantizeLinear(h, s) }>\n y = DequantizeLinear(r, s)"}) {
    SCOPED_TRACE(body);
    try {
      differentiated(body);
      ADD_FAILURE() << "a gradient of zeros";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
    }
  }
}

TEST(QuantizedGradient, OfScalesForEachChannelAndBlock) {
  for (const bool blocks : {false, true}) {
    SCOPED_TRACE(blocks);
    const std::string form = blocks ? "<axis = 1, block_size = 2>" : "<axis = 0>";
    const std::string shape = blocks ? "float[2, 2] s" : "float[2] s";
    const Session session(Model::from_text(
        std::string(quantization_header) + "g (float[2, 3] x, " + shape +
        ") => (float[2, 3] dx, float[] ds) {\n" + " z = Constant<value = int8" +
        (blocks ? "[2, 2] {0, 0, 0, 0}" : "[2] {0, 0}") + ">()\n" + " q = QuantizeLinear" + form +
        "(x, s, z)\n y = DequantizeLinear" + form + "(q, s, z)\n" +
        " sum = ReduceSum<keepdims = 0>(y)\n"
        " dx, ds = ai.onnx.preview.training.Gradient<xs = [\"x\", \"s\"], y = \"sum\">(x, s)\n}"));
    const std::vector<float> x{0.3f, -1.24f, 90, 0.4f, -0.7f, 1.9f};
    const std::vector<float> s =
        blocks ? std::vector<float>{0.2f, 0.5f, 0.3f, 0.7f} : std::vector<float>{0.2f, 0.3f};
    const auto outputs =
        session.run({{"x", floats(x, {2, 3})}, {"s", floats(s, blocks ? Shape{2, 2} : Shape{2})}});
    std::vector<double> by_x(6), by_scale(s.size());
    for (size_t i = 0; i < 6; ++i) {
      const size_t at = blocks ? i / 3 * 2 + i % 3 / 2 : i / 3;
      const Expected one = estimate({x[i]}, s[at], 0, -128, 127);
      by_x[i] = one.x[0], by_scale[at] += one.scale[0];
    }
    expect_near(elements(outputs[0]), by_x);
    expect_near(elements(outputs[1]), by_scale);
  }
}

// The scale follows the largest and the smallest value: the sum of what comes back is that of x.
TEST(QuantizedGradient, OfDynamicQuantization) {
  const Session session(
      Model::from_text(std::string(quantization_header) +
                       "g (float[4] x) => (float[4] y, float[4] dx) {\n"
                       " q, s, z = DynamicQuantizeLinear(x)\n y = DequantizeLinear(q, s, z)\n"
                       " w = Constant<value = float[4] {1, 2, -1, 0.5}>()\n p = Mul(y, w)\n"
                       " sum = ReduceSum<keepdims = 0>(p)\n"
                       " dx = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"sum\">(x)\n}"));
  const std::vector<float> x{0.31f, -1.07f, 0.77f, 1.4f};
  const auto outputs = session.run({{"x", floats(x, {4})}});
  const std::vector<double> w{1, 2, -1, 0.5}, y = elements(outputs[0]), dx = elements(outputs[1]);
  // Of the scale each element says (y - x) / s, and the scale is (largest - smallest) / 255.
  double by_range = 0;
  const double s = (1.4 + 1.07) / 255;
  for (size_t i = 0; i < 4; ++i) by_range += w[i] * (y[i] - static_cast<double>(x[i])) / s / 255;
  expect_near(dx, {1, 2 - by_range, -1, 0.5 + by_range});
}

// The scale's own derivative is exact where nothing is rounded: numbers of 8 bits with fractions.
TEST(QuantizedGradient, OfFloatsOfEightBits) {
  const Session session(Model::from_text(
      std::string(quantization_header) +
      "g (float[3] x, float s) => (float[3] dx) {\n"
      " q = QuantizeLinear<output_dtype = 17>(x, s)\n y = DequantizeLinear(q, s)\n"
      " sum = ReduceSum<keepdims = 0>(y)\n"
      " dx = ai.onnx.preview.training.Gradient<xs = [\"x\"], zs = [\"s\"], y = \"sum\">(x, s)\n}"));
  const auto outputs =
      session.run({{"x", floats({1.3f, 0.001f, 5000}, {3})}, {"s", Tensor::scalar<float>(0.5f)}});
  expect_near(elements(outputs[0]), {1, 1, 0});
}

// Nor has a type of eight bits room for a slope.
TEST(QuantizedGradient, OfACastOfFloatsOfEightBitsIsNotRounded) {
  const Session session(Model::from_text(
      std::string(quantization_header) +
      "g (float[3] x, float s) => (float[3] dx) {\n"
      " q = QuantizeLinear<output_dtype = 17>(x, s)\n y = DequantizeLinear(q, s)\n"
      " k = Constant<value_float = 0.3>()\n f = Cast<to = 1>(q)\n h = Mul(f, k)\n t = Add(h, y)\n"
      " sum = ReduceSum<keepdims = 0>(t)\n"
      " dx = ai.onnx.preview.training.Gradient<xs = [\"x\"], zs = [\"s\"], y = \"sum\">(x, s)\n}"));
  const auto outputs =
      session.run({{"x", floats({1.3f, 0.001f, 5000}, {3})}, {"s", Tensor::scalar<float>(0.5f)}});
  expect_near(elements(outputs[0]), {1.6, 1.6, 0});
}

}  // namespace
}  // namespace sardonyx::test
