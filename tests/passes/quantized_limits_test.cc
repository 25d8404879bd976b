// Models between DequantizeLinear and QuantizeLinear that bytes can't compute: floats do.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

// Expects of a planned run what a reference run gives.
void expect_same(const std::string& nodes, const std::string& interface,
                 const std::vector<NamedValue>& inputs) {
  const Model model = Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\ng (" +
                                       interface + ") {\n" + nodes + "}\n");
  SCOPED_TRACE(nodes);
  const Tensor wanted = Session(model, {.reference = true}).run(inputs)[0].tensor();
  const Tensor made = Session(model, {.threads = 1}).run(inputs)[0].tensor();
  ASSERT_EQ(made.shape(), wanted.shape());
  if (made.element_type() == ElementType::float32) {
    for (size_t i = 0; i < static_cast<size_t>(made.size()); ++i) {
      const float a = made.elements<float>()[i], b = wanted.elements<float>()[i];
      EXPECT_NEAR(a, b, 1e-3f * std::abs(b));
    }
    return;
  }
  for (size_t i = 0; i < static_cast<size_t>(made.size()); ++i)
    EXPECT_EQ(made.elements<uint8_t>()[i], wanted.elements<uint8_t>()[i]) << i;
}

TEST(QuantizedLimits, BiasesFinerThanTheStepsOfSums) {
  for (const std::string sizes : {"1 0.01 0.4", "0.125 0.05 0.06", "0.0625 0.0625 0.03125"}) {
    const size_t first = sizes.find(' '), second = sizes.rfind(' ');
    const std::string step = sizes.substr(0, first),
                      y_step = sizes.substr(first + 1, second - first - 1),
                      bias = sizes.substr(second + 1);
    expect_same("  s = Constant<value = float {" + step +
                    "}>()\n  one = Constant<value = float {1}>()\n" +
                    "  ys = Constant<value = float {" + y_step +
                    "}>()\n  z = Constant<value = uint8 {0}>()\n"
                    "  w = Constant<value = int8[1, 1, 1, 1] {1}>()\n"
                    "  wz = Constant<value = int8 {0}>()\n"
                    "  b = Constant<value = float[1] {" +
                    bias +
                    "}>()\n  xf = DequantizeLinear(x, s, z)\n  wf = DequantizeLinear(w, one, wz)\n"
                    "  c = Conv(xf, wf, b)\n  y = QuantizeLinear(c, ys, z)\n",
                "uint8[1, 1, 2, 2] x) => (uint8[1, 1, 2, 2] y",
                {{"x", Tensor::of<uint8_t>({0, 1, 2, 3}, {1, 1, 2, 2})}});
  }
}

TEST(QuantizedLimits, SumsThatInt32DoesNotHold) {
  constexpr int64_t terms = 33040;  // of 255 * 255
  const Tensor x = Tensor::of<uint8_t>(std::vector<uint8_t>(terms, 255), {1, terms});
  expect_same(
      "  s = Constant<value = float {0.00390625}>()\n  z = Constant<value = uint8 {0}>()\n"
      "  shape = Constant<value_ints = [33040, 3]>()\n"
      "  w = ConstantOfShape<value = uint8[1] {255}>(shape)\n"
      "  xf = DequantizeLinear(x, s, z)\n  wf = DequantizeLinear(w, s, z)\n"
      "  y = MatMul(xf, wf)\n",
      "uint8[1, 33040] x) => (float[1, 3] y", {{"x", x}});
}

TEST(QuantizedLimits, ReluBeforeAScaleThatMayBeBelowZero) {
  expect_same(
      "  s = Constant<value = float {1.25}>()\n  z = Constant<value = uint8 {0}>()\n"
      "  one = Constant<value = float {1}>()\n"
      "  w = Constant<value = int8[1, 1, 1, 1] {-1}>()\n  wz = Constant<value = int8 {0}>()\n"
      "  xf = DequantizeLinear(x, s, z)\n  wf = DequantizeLinear(w, one, wz)\n"
      "  c = Conv(xf, wf)\n  r = Relu(c)\n  y = QuantizeLinear(r, ys, z)\n",
      "uint8[1, 1, 2, 2] x, float ys) => (uint8[1, 1, 2, 2] y",
      {{"x", Tensor::of<uint8_t>({0, 1, 2, 3}, {1, 1, 2, 2})}, {"ys", Tensor::scalar(-0.1f)}});
}

}  // namespace
}  // namespace sardonyx
