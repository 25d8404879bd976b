// Steps name the nodes of the model whose work they do: those that a rewrite replaced, and no
// other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/listed.h"
#include "sardonyx/profile.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

using Names = std::vector<std::string>;

std::string weights(const std::string& name, const std::string& shape, int64_t count) {
  std::string values;
  for (int64_t i = 0; i < count; ++i)
    values +=
        fmt::format("{}{:.3f}", i == 0 ? "" : ", ", 0.4 * std::cos(0.7 * static_cast<double>(i)));
  return fmt::format("  {} = Constant<value = float[{}] {{{}}}>()\n", name, shape, values);
}

std::string scalar(const std::string& name, double value) {
  return fmt::format("  {} = Constant<value = float {{{}}}>()\n", name, value);
}

std::vector<StepDescription> steps_of(const std::string& interface, const std::string& nodes,
                                      int opset = 21) {
  return Session(Model::from_text(
                     fmt::format("<ir_version: 10, opset_import: [\"\" : {}]>\ng {} {{\n{}}}\n",
                                 opset, interface, nodes)),
                 {.threads = 1})
      .steps();
}

// The sources of the only step of an operator.
Names sources(const std::vector<StepDescription>& steps, std::string_view op) {
  const auto is = [&](const StepDescription& step) {
    return step.node == op || step.node.starts_with(std::string(op) + " '");
  };
  EXPECT_EQ(std::ranges::count_if(steps, is), 1) << op;
  const auto found = std::ranges::find_if(steps, is);
  return found == steps.end() ? Names() : found->sources;
}

TEST(Origins, OfLayerNormalization) {
  const auto steps =
      steps_of("(float[N, 4] x) => (float[N, 4] y)",
               weights("scale", "4", 4) + weights("shift", "4", 4) + scalar("two", 2) +
                   scalar("epsilon", 1e-5) +
                   "  axes = Constant<value_ints = [-1]>()\n"
                   "  [mean] m = ReduceMean(x, axes)\n  [less] d = Sub(x, m)\n"
                   "  [square] q = Pow(d, two)\n  [variance] v = ReduceMean(q, axes)\n"
                   "  [more] e = Add(v, epsilon)\n  [root] r = Sqrt(e)\n  [over] n = Div(d, r)\n"
                   "  [scaled] s = Mul(n, scale)\n  [shifted] y = Add(s, shift)\n");
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(sources(steps, "LayerNormalization"),
            (Names{"ReduceMean 'mean'", "Sub 'less'", "Pow 'square'", "ReduceMean 'variance'",
                   "Add 'more'", "Sqrt 'root'", "Div 'over'", "Mul 'scaled'", "Add 'shifted'"}));
  EXPECT_EQ(steps[0].origin, "");
}

// What others read, too, is not replaced.
TEST(Origins, OfLayerNormalizationWhoseDeviationIsAnOutput) {
  const auto steps =
      steps_of("(float[N, 4] x) => (float[N, 4] y, float[N, 4] d)",
               weights("scale", "4", 4) + scalar("epsilon", 1e-5) +
                   "  axes = Constant<value_ints = [-1]>()\n"
                   "  [mean] m = ReduceMean(x, axes)\n  [less] d = Sub(x, m)\n"
                   "  [square] q = Mul(d, d)\n  [variance] v = ReduceMean(q, axes)\n"
                   "  [more] e = Add(v, epsilon)\n  [root] r = Sqrt(e)\n  [over] n = Div(d, r)\n"
                   "  [scaled] y = Mul(n, scale)\n");
  EXPECT_EQ(sources(steps, "LayerNormalization"),
            (Names{"Mul 'square'", "ReduceMean 'variance'", "Add 'more'", "Sqrt 'root'",
                   "Div 'over'", "Mul 'scaled'"}));
  EXPECT_EQ(sources(steps, "Sub"), Names());
}

TEST(Origins, OfGelu) {
  const std::string constants =
      scalar("root", std::sqrt(2.0)) + scalar("one", 1) + scalar("half", 0.5);
  const auto steps = steps_of("(float[N, 4] x) => (float[N, 4] y)",
                              constants +
                                  "  [over] d = Div(x, root)\n  [erf] e = Erf(d)\n"
                                  "  [plus] p = Add(e, one)\n  [by_x] m = Mul(x, p)\n"
                                  "  [by_half] y = Mul(m, half)\n");
  EXPECT_EQ(sources(steps, "Gelu"),
            (Names{"Div 'over'", "Erf 'erf'", "Add 'plus'", "Mul 'by_x'", "Mul 'by_half'"}));
  const auto halved = steps_of("(float[N, 4] x) => (float[N, 4] y)",
                               constants +
                                   "  [over] d = Div(x, root)\n  [erf] e = Erf(d)\n"
                                   "  [plus] p = Add(e, one)\n  [halved] h = Mul(x, half)\n"
                                   "  [product] y = Mul(h, p)\n");
  EXPECT_EQ(sources(halved, "Gelu"),
            (Names{"Div 'over'", "Erf 'erf'", "Add 'plus'", "Mul 'halved'", "Mul 'product'"}));
}

TEST(Origins, OfProductsAndWhatFollowsThem) {
  const std::string constants = weights("w", "4, 4", 16) + weights("b", "4", 4);
  const auto steps = steps_of("(float[N, 4] x) => (float[N, 4] y)",
                              constants +
                                  "  [product] m = MatMul(x, w)\n  [bias] a = Add(m, b)\n"
                                  "  [gate] s = Sigmoid(a)\n  [silu] g = Mul(a, s)\n"
                                  "  [residual] y = Add(g, x)\n");
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].sources, (Names{"MatMul 'product'", "Add 'bias'", "Sigmoid 'gate'",
                                     "Mul 'silu'", "Add 'residual'"}));
  const auto alone =
      steps_of("(float[N, 4] x) => (float[N, 4] y)", constants + "  [product] y = MatMul(x, w)\n");
  EXPECT_EQ(alone[0].sources, Names());
}

TEST(Origins, OfNodesWithoutNamesAreWhatTheyMake) {
  const auto steps =
      steps_of("(float[N, 4] x) => (float[N, 4] y)", "  a = Exp(x)\n  b = Neg(a)\n  y = Tanh(b)\n");
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].sources, (Names{"Exp making 'a'", "Neg making 'b'", "Tanh making 'y'"}));
}

// Two attentions of one K: its Transpose is named by both.
TEST(Origins, OfAttention) {
  std::string nodes = scalar("scale", 0.5) +
                      "  [turn_q] q = Transpose<perm = [0, 2, 1, 3]>(x)\n"
                      "  [turn_k] k = Transpose<perm = [0, 2, 3, 1]>(x)\n"
                      "  [turn_v] v = Transpose<perm = [0, 2, 1, 3]>(z)\n";
  for (const std::string n : {"1", "2"})
    nodes += fmt::format(
        "  [scores{0}] s{0} = MatMul(q, k)\n  [scaled{0}] c{0} = Mul(s{0}, scale)\n"
        "  [masked{0}] m{0} = Add(c{0}, mask{0})\n  [weights{0}] w{0} = Softmax<axis = -1>(m{0})\n"
        "  [mix{0}] p{0} = MatMul(w{0}, v)\n  [back{0}] y{0} = Transpose<perm = [0, 2, 1, "
        "3]>(p{0})\n",
        n);
  const auto steps = steps_of(
      "(float[1, 3, 2, 8] x, float[1, 3, 2, 8] z, float[1, 1, 3, 3] mask1, "
      "float[1, 1, 3, 3] mask2) => (float[1, 3, 2, 8] y1, float[1, 3, 2, 8] y2)",
      nodes);
  ASSERT_EQ(steps.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const auto numbered = [&](std::string_view name) { return fmt::format("{}{}'", name, i + 1); };
    EXPECT_EQ(steps[i].sources,
              (Names{"Transpose 'turn_q'", "Transpose 'turn_k'", "Transpose 'turn_v'",
                     numbered("MatMul 'scores"), numbered("Mul 'scaled"), numbered("Add 'masked"),
                     numbered("Softmax 'weights"), numbered("MatMul 'mix"),
                     numbered("Transpose 'back")}));
  }
}

TEST(Origins, OfConvolutions) {
  const auto steps = steps_of(
      "(float[1, 5, 8, 8] x) => (float[1, 8, 6, 6] y)",
      weights("w", "8, 5, 3, 3", 360) + weights("one", "8", 8) +
          "  positive = Constant<value = float[8] {1, 1, 1, 1, 2, 2, 2, 2}>()\n"
          "  [conv] c = Conv(x, w)\n"
          "  [norm] n = BatchNormalization(c, one, one, one, positive)\n  [relu] y = Relu(n)\n");
  const auto conv = std::ranges::find_if(
      steps, [](const auto& step) { return step.node == "sardonyx.Conv 'conv'"; });
  ASSERT_NE(conv, steps.end());
  EXPECT_EQ(conv->sources, (Names{"Conv 'conv'", "BatchNormalization 'norm'", "Relu 'relu'"}));
  // The borders of the layout come from no node.
  ASSERT_EQ(steps.back().node.substr(0, 9), "Transpose");
  EXPECT_EQ(steps.back().origin, "from layout");
  EXPECT_EQ(steps.back().sources, Names());
}

// With channels last, nodes become others, and names of values change.
TEST(Origins, OfNodesThatTheLayoutChanges) {
  const auto steps = steps_of(
      "(float[1, 5, 8, 8] x) => (float[1, 8, 1, 1] y)",
      weights("w", "8, 5, 3, 3", 360) + weights("one", "8", 8) +
          "  positive = Constant<value = float[8] {1, 1, 1, 1, 2, 2, 2, 2}>()\n"
          "  [conv] c = Conv(x, w)\n  [pool] p = MaxPool<kernel_shape = [2, 2]>(c)\n"
          "  [norm] n = BatchNormalization(p, one, one, one, positive)\n  [relu] r = Relu(n)\n"
          "  y = GlobalAveragePool(r)\n");
  EXPECT_EQ(sources(steps, "sardonyx.ScaleShift"),
            (Names{"BatchNormalization 'norm'", "Relu 'relu'"}));
  EXPECT_EQ(sources(steps, "ReduceMean"), (Names{"GlobalAveragePool making 'y'"}));
  EXPECT_EQ(sources(steps, "sardonyx.MaxPool"), Names());
}

// Operators of older editions that become others.
TEST(Origins, OfUpgradedNodes) {
  const auto steps = steps_of("(float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y)",
                              "  scales = Constant<value = float[4] {1, 1, 2, 2}>()\n"
                              "  [up] y = Upsample<mode = \"nearest\">(x, scales)\n",
                              9);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].node, "Resize 'up'");
  EXPECT_EQ(steps[0].sources, Names{"Upsample 'up'"});
}

TEST(Origins, OfBytes) {
  const std::string constants =
      scalar("s", 0.02) + "  zero = Constant<value = uint8 {3}>()\n" +
      "  wq = Constant<value = int8[4, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2}>()\n"
      "  wz = Constant<value = int8 {0}>()\n";
  const auto steps = steps_of("(uint8[N, 4] x) => (uint8[N, 4] y1, uint8[N, 4] y2)",
                              constants + weights("b", "4", 4) +
                                  "  [x_floats] xf = DequantizeLinear(x, s, zero)\n"
                                  "  [w_floats] wf = DequantizeLinear(wq, s, wz)\n"
                                  "  [first] m1 = MatMul(xf, wf)\n  [bias] a = Add(m1, b)\n"
                                  "  [bytes1] y1 = QuantizeLinear(a, s, zero)\n"
                                  "  [second] m2 = MatMul(xf, wf)\n"
                                  "  [bytes2] y2 = QuantizeLinear(m2, s, zero)\n");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].sources, (Names{"DequantizeLinear 'x_floats'", "DequantizeLinear 'w_floats'",
                                     "MatMul 'first'", "Add 'bias'", "QuantizeLinear 'bytes1'"}));
  EXPECT_EQ(steps[1].sources, (Names{"DequantizeLinear 'x_floats'", "DequantizeLinear 'w_floats'",
                                     "MatMul 'second'", "QuantizeLinear 'bytes2'"}));
  const auto moved = steps_of("(uint8[N, 4] x) => (uint8[4, N] y)",
                              constants +
                                  "  [floats] xf = DequantizeLinear(x, s, zero)\n"
                                  "  [turn] t = Transpose(xf)\n"
                                  "  [bytes] y = QuantizeLinear(t, s, zero)\n");
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].sources,
            (Names{"DequantizeLinear 'floats'", "Transpose 'turn'", "QuantizeLinear 'bytes'"}));
}

TEST(Origins, OfIntegerProductsWithScales) {
  const auto steps =
      steps_of("(uint8[N, 4] x, float by) => (float[N, 4] y)",
               scalar("s", 0.02) + "  zero = Constant<value = uint8 {3}>()\n" +
                   "  w = Constant<value = int8[4, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, "
                   "3, 2}>()\n" +
                   "  [integers] i = MatMulInteger(x, w, zero)\n  [floats] f = Cast<to = 1>(i)\n"
                   "  [scale] sc = Mul(by, s)\n  [scaled] y = Mul(f, sc)\n");
  EXPECT_EQ(sources(steps, "sardonyx.QuantizedMatMul"),
            (Names{"MatMulInteger 'integers'", "Cast 'floats'", "Mul 'scale'", "Mul 'scaled'"}));
}

// Nodes of functions say which, whatever becomes of them.
TEST(Origins, OfNodesInFunctions) {
  const auto steps = Session(Model::from_text(R"(<ir_version: 10,
      opset_import: ["" : 21, "local" : 1]>
    g (float[N, 4] x) => (float[N, 4] y) {
      [call] y = local.Both(x)
    }
    <domain: "local", opset_import: ["" : 21]>
    Both (a) => (c) { [first] b = Exp(a) [second] c = Neg(b) })"),
                             {.threads = 1})
                         .steps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].sources,
            (Names{"Exp 'first' (in function Both, called by local.Both 'call')",
                   "Neg 'second' (in function Both, called by local.Both 'call')"}));
}

TEST(Origins, OfHalfPrecisionAreNotItsCasts) {
  const auto steps = steps_of("(float16[N, 4] x) => (float16[N, 4] y)",
                              "  [first] a = Exp(x)\n  b = Neg(a)\n  [third] y = Tanh(b)\n");
  EXPECT_EQ(sources(steps, "sardonyx.FusedElementwise"),
            (Names{"Exp 'first'", "Neg making 'b'", "Tanh 'third'"}));
  EXPECT_EQ(steps.front().origin, "from half precision through float32");
}

TEST(Origins, StandInProfiles) {
  const Model model = Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[N, 4] x, float[M, 4] z) => (float[A, B] y) {
      [first] a = Exp(x) [second] b = Neg(a) [third] y = Add(b, z)
    })");
  const Session session(model, {.threads = 1});
  Profile profile;
  const Tensor one(ElementType::float32, {1, 4}), two(ElementType::float32, {2, 4});
  session.run({{"x", one}, {"z", one}}, {.profile = &profile});
  ASSERT_EQ(profile.steps().size(), session.steps().size());
  for (size_t i = 0; i < profile.steps().size(); ++i) {
    EXPECT_EQ(profile.steps()[i].sources, session.steps()[i].sources);
    EXPECT_EQ(profile.steps()[i].origin, session.steps()[i].origin);
  }
}

TEST(Origins, LongListsAreCut) {
  const Names names{"a", "b", "c", "d"};
  EXPECT_EQ(listed(names, 4), "a, b, c, d");
  EXPECT_EQ(listed(names, 2), "a, b and 2 more");
  EXPECT_EQ(listed({}, 2), "");
}

}  // namespace
}  // namespace sardonyx
