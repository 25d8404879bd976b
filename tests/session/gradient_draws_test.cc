// Numbers that graphs of If, Loop and Scan draw without a seed: the gradient is that of those
// drawn.
#include <gtest/gtest.h>

#include <cmath>

#include "sardonyx/session.h"

namespace sardonyx::test {
namespace {

constexpr const char* draws_header =
    "<ir_version: 10, opset_import: [\"\" : 27, \"ai.onnx.preview.training\" : 1]>\n";

// Every function here is linear in each element of x, with a factor that is drawn: of x = 1 the
// derivative is the value.
void expect_the_drawn(const std::string& body) {
  SCOPED_TRACE(body);
  const Session session(Model::from_text(
      std::string(draws_header) + "g (float[64] x, bool b) => (float[64] y, float[64] d) {\n" +
      " n = Constant<value = int64 {3}>()\n go = Constant<value = bool {1}>()\n"
      " half = Constant<value_float = 0.5>()\n t4 = Constant<value = float[4] {1, 2, 3, 4}>()\n " +
      body +
      "\n s = ReduceSum<keepdims = 0>(y)\n"
      " d = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"s\">(x)\n}"));
  for (const bool b : {false, true}) {
    const auto outputs = session.run({{"x", Tensor::of<float>(std::vector<float>(64, 1), {64})},
                                      {"b", Tensor::scalar<bool>(b)}});
    const auto y = outputs[0].tensor().elements<float>(), d = outputs[1].tensor().elements<float>();
    double different = 0;
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_NEAR(d[i], y[i], 1e-4 * (1 + std::abs(y[i]))) << i;
      different += std::abs(static_cast<double>(y[i] - y[0]));
    }
    EXPECT_TRUE(different > 0 || body.find("If(b)") != std::string::npos);
  }
}

TEST(DrawnGradient, OfDropoutInALoop) {
  for (const char* options : {"", "<seed = 7>"}) {
    expect_the_drawn(
        "y = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r) {\n o = Identity(c)\n"
        "  r, m = Dropout" +
        std::string(options) + "(v, half, go) }>");
  }
}

// The mask need not have a name.
TEST(DrawnGradient, OfDropoutWithoutAMask) {
  expect_the_drawn("y = Dropout(x, half, go)");
  expect_the_drawn("h, m = Dropout(x, half, go)\n y = Dropout(h, half, go)");
}

TEST(DrawnGradient, OfRandomNodesInALoopAndAScan) {
  for (const char* drawn :
       {"k = RandomNormal<shape = [64]>()", "k = RandomUniformLike(v)",
        "k = RandomNormalLike<dtype = 1>(v)",
        "p = Sub(half, half)\n q = Add(p, half)\n w = Expand(q, e)\n k = Bernoulli(w)"}) {
    const std::string lines = "e = Constant<value_ints = [64]>()\n " + std::string(drawn);
    expect_the_drawn(
        "y = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r) { o = Identity(c)\n " + lines +
        "\n r = Mul(v, k) }>");
    expect_the_drawn("y, all = Scan<num_scan_inputs = 1, body = b (v, z) => (r, f) { " + lines +
                     "\n h = Mul(v, k)\n r = Mul(h, z)\n f = Identity(z) }>(x, t4)");
  }
}

// What the gradient reads of a product is what became of the numbers that were drawn.
TEST(DrawnGradient, OfProductsOfDrawnNumbers) {
  const std::string product =
      " size = Constant<value_ints = [64, 64]>()\n square = ConstantOfShape(size)\n"
      " eye = EyeLike(square)\n k = RandomUniformLike(v)\n d = Mul(v, k)\n q = MatMul(d, eye)\n"
      " qq = Mul(q, q)\n p = Sqrt(qq)\n l = RandomUniformLike(p)\n r = Mul(p, l)";
  expect_the_drawn(
      "y = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r) { o = Identity(c)\n" + product +
      " }>");
  expect_the_drawn("y, all = Scan<num_scan_inputs = 1, body = b (v, z) => (r, f) { " + product +
                   "\n f = Identity(z) }>(x, t4)");
}

TEST(DrawnGradient, OfBranches) {
  expect_the_drawn(
      "y = If(b) <then_branch = t () => (p) { p, m = Dropout(x, half, go) },"
      " else_branch = e () => (q) { k = RandomNormalLike(x)\n l = RandomNormalLike(x)\n"
      " kl = Add(k, l)\n q = Mul(x, kl) }>");
  expect_the_drawn(
      "y = If(b) <then_branch = t () => (p) { p = Identity(x) },"
      " else_branch = e () => (q) { q, m = Dropout(x, half, go) }>");
}

TEST(DrawnGradient, OfGraphsInGraphs) {
  expect_the_drawn(
      "two = Constant<value = int64 {2}>()\n one = Constant<value = int64 {1}>()\n"
      " y = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r) { o = Identity(c)\n"
      " first = Less(i, one)\n"
      " h = If(first) <then_branch = t () => (p) { p, m = Dropout(v, half, go) }, else_branch = e "
      "() => (q) {"
      " k = RandomUniformLike(v)\n q = Mul(v, k) }>\n"
      " g = Loop(two, go, h) <body = bb (int64 j, bool cc, u) => (oo, rr) { oo = Identity(cc)\n"
      " kk = RandomNormalLike(u)\n rr = Mul(u, kk) }>\n"
      " r, f = Scan<num_scan_inputs = 1, body = s (u, z) => (w, a) { kz = RandomNormalLike(u)\n"
      " w = Mul(u, kz)\n a = Identity(z) }>(g, t4) }>");
}

}  // namespace
}  // namespace sardonyx::test
