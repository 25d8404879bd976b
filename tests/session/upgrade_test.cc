// Nodes of old versions must keep their old meaning. Expected values are worked out by hand from
// the old definitions.
#include <gtest/gtest.h>

#include "upgrade_support.h"

namespace sardonyx {
namespace {

using upgrade_test::counted;
using upgrade_test::values;

// Runs a graph of opset `opset`, planned and plain; both must give the same first output.
Tensor run(int opset, const std::string& graph, const std::vector<NamedValue>& inputs) {
  const Model model = Model::from_text(
      "<ir_version: 3, opset_import: [\"\" : " + std::to_string(opset) + "]>\n" + graph);
  const Tensor planned = Session(model).run(inputs)[0].tensor();
  const Tensor plain = Session(model, {.reference = true}).run(inputs)[0].tensor();
  EXPECT_EQ(planned.shape(), plain.shape());
  return planned;
}

TEST(Upgrade, BroadcastAxisOfOpset6IsNotSuffixAlignment) {
  // A square shape hides the mistake: b runs along dimension 0, not along the last one.
  const Tensor y = run(
      6,
      "g (float[2, 2] a, float[2] b) => (float[2, 2] y) { y = Add<axis = 0, broadcast = 1>(a, b) }",
      {{"a", counted({2, 2})}, {"b", Tensor::of<float>({10, 20}, {2})}});
  EXPECT_EQ(values<float>(y), (std::vector<float>{10, 11, 22, 23}));
}

TEST(Upgrade, BroadcastAxisWithoutKnownRanks) {
  const Tensor y =
      run(6, "g (float[] a, float[] b) => (float[] y) { y = Mul<axis = 1, broadcast = 1>(a, b) }",
          {{"a", counted({1, 2, 2})}, {"b", Tensor::of<float>({2, 3}, {2})}});
  EXPECT_EQ(values<float>(y), (std::vector<float>{0, 2, 6, 9}));
}

TEST(Upgrade, SlopeOfPReluBelongsToChannels) {
  const Tensor x = Tensor::of<float>({-1, -1, -1, -1}, {1, 2, 2});
  const Tensor y =
      run(6, "g (float[1, 2, 2] x, float[2] s) => (float[1, 2, 2] y) { y = PRelu(x, s) }",
          {{"x", x}, {"s", Tensor::of<float>({2, 3}, {2})}});
  EXPECT_EQ(values<float>(y), (std::vector<float>{-2, -2, -3, -3}));
}

TEST(Upgrade, SoftmaxOfOpset11WorksOnEverythingFromTheAxisOn) {
  const Tensor y = run(11, "g (float[1, 2, 2] x) => (float[1, 2, 2] y) { y = Softmax(x) }",
                       {{"x", Tensor::of<float>({0, 0, 0, 0}, {1, 2, 2})}});
  for (const float v : values<float>(y)) EXPECT_FLOAT_EQ(v, 0.25f);
}

TEST(Upgrade, SliceOfOpset1StartsAtTheFirstAxes) {
  const Tensor y =
      run(1, "g (float[3, 2] x) => (float[2, 2] y) { y = Slice<starts = [1], ends = [3]>(x) }",
          {{"x", counted({3, 2})}});
  EXPECT_EQ(values<float>(y), (std::vector<float>{2, 3, 4, 5}));
}

TEST(Upgrade, ConcatOfOpset1JoinsAlongDimension1) {
  const Tensor y =
      run(1, "g (float[1, 2] a, float[1, 2] b) => (float[1, 4] y) { y = Concat(a, b) }",
          {{"a", counted({1, 2})}, {"b", counted({1, 2})}});
  EXPECT_EQ(values<float>(y), (std::vector<float>{0, 1, 0, 1}));
}

TEST(Upgrade, SeluOfOpset1HasShortConstants) {
  const Tensor y = run(1, "g (float[1] x) => (float[1] y) { y = Selu(x) }",
                       {{"x", Tensor::of<float>({1}, {1})}});
  EXPECT_FLOAT_EQ(values<float>(y)[0], 1.0507f);
}

TEST(Upgrade, ClipAttributesBecomeInputs) {
  const Tensor y =
      run(6, "g (float[4] x) => (float[4] y) { y = Clip<max = 2.0>(x) }", {{"x", counted({4})}});
  EXPECT_EQ(values<float>(y), (std::vector<float>{0, 1, 2, 2}));
}

TEST(Upgrade, ReshapeOfOpset1HasItsShapeAsAttribute) {
  EXPECT_EQ(run(1, "g (float[4] x) => (float[2, 2] y) { y = Reshape<shape = [2, -1]>(x) }",
                {{"x", counted({4})}})
                .shape(),
            (Shape{2, 2}));
}

TEST(Upgrade, BatchNormalizationOfOpset6InInference) {
  const Tensor two = Tensor::of<float>({2}, {1}), one = Tensor::of<float>({1}, {1}),
               four = Tensor::of<float>({4}, {1});
  const Tensor y = run(
      6,
      "g (float[1, 1, 2] x, float[1] s, float[1] b, float[1] m, float[1] v) => (float[1, 1, 2] y) {"
      " y = BatchNormalization<is_test = 1, epsilon = 0.0>(x, s, b, m, v) }",
      {{"x", Tensor::of<float>({3, 5}, {1, 1, 2})},
       {"s", two},
       {"b", one},
       {"m", one},
       {"v", four}});
  EXPECT_EQ(values<float>(y), (std::vector<float>{3, 5}));
}

TEST(Upgrade, UpsampleRepeatsPixels) {
  const Tensor y = run(7,
                       "g (float[1, 1, 1, 2] x) => (float[1, 1, 2, 4] y) { y = Upsample<scales = "
                       "[1.0, 1.0, 2.0, 2.0]>(x) }",
                       {{"x", counted({1, 1, 1, 2})}});
  EXPECT_EQ(values<float>(y), (std::vector<float>{0, 0, 1, 1, 0, 0, 1, 1}));
}

TEST(Upgrade, DropoutIsInferenceFromOpset7) {
  EXPECT_EQ(values<float>(run(7, "g (float[3] x) => (float[3] y) { y = Dropout<ratio = 0.9>(x) }",
                              {{"x", counted({3})}})),
            (std::vector<float>{0, 1, 2}));
}

TEST(Upgrade, NegativeIndicesOfOneHot9SwitchNothingOn) {
  const Tensor y = run(9,
                       "g (int64[2] i) => (float[2, 3] y) { d = Constant<value = int64[1] {3}>() "
                       "v = Constant<value = float[2] {0, 1}>() y = OneHot(i, d, v) }",
                       {{"i", Tensor::of<int64_t>({-1, 1}, {2})}});
  EXPECT_EQ(values<float>(y), (std::vector<float>{0, 0, 0, 0, 1, 0}));
}

}  // namespace
}  // namespace sardonyx
