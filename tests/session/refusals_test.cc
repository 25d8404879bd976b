// What a plan refuses plain evaluation refuses, too, in the same words and with the same code:
// where sizes stand open until a run, where a node makes nothing, and where a value's rank is open.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

Model model_of(int opset, const std::string& graph) {
  return Model::from_text("<ir_version: 13, opset_import: [\"\" : " + std::to_string(opset) +
                          ", \"com.microsoft\" : 1]>\n" + graph);
}

Tensor zeros(ElementType type, const Shape& shape) {
  Tensor tensor(type, shape);
  if (tensor.byte_size() > 0) std::memset(tensor.mutable_data(), 0, tensor.byte_size());
  return tensor;
}

Tensor floats(std::vector<float> values, Shape shape) {
  return Tensor::of<float>(values, std::move(shape));
}

Tensor integers(std::vector<int64_t> values, Shape shape) {
  return Tensor::of<int64_t>(values, std::move(shape));
}

struct Outcome {
  std::optional<Value> output;
  std::string error;
  ErrorCode code = ErrorCode::internal;
};

Outcome outcome_of(const Model& model, const std::vector<NamedValue>& inputs, bool plain) {
  Outcome outcome;
  try {
    outcome.output = Session(model, {.reference = plain}).run(inputs)[0];
  } catch (const Error& error) {
    outcome.error = error.what();
    outcome.code = error.code();
  }
  return outcome;
}

void expect_refused(int opset, const std::string& graph, const std::vector<NamedValue>& inputs,
                    const std::string& mentions) {
  const Model model = model_of(opset, graph);
  const Outcome planned = outcome_of(model, inputs, false), plain = outcome_of(model, inputs, true);
  EXPECT_FALSE(planned.output) << "the plan ran";
  EXPECT_FALSE(plain.output) << "plain evaluation ran";
  EXPECT_EQ(planned.error, plain.error);
  EXPECT_EQ(planned.code, plain.code);
  EXPECT_NE(planned.error.find(mentions), std::string::npos) << planned.error;
}

Shape expect_shape(int opset, const std::string& graph, const std::vector<NamedValue>& inputs) {
  const Model model = model_of(opset, graph);
  const Outcome planned = outcome_of(model, inputs, false), plain = outcome_of(model, inputs, true);
  EXPECT_TRUE(planned.output) << planned.error;
  EXPECT_TRUE(plain.output) << plain.error;
  if (!planned.output || !plain.output) return {};
  EXPECT_EQ(planned.output->tensor().shape(), plain.output->tensor().shape());
  return plain.output->tensor().shape();
}

TEST(Refusals, WhereThatMakesNothingStillBroadcasts) {
  const std::string graph =
      "g (bool[n] c, bool[0] x) => (y) <bool[3,0,0] z = {}> { y = Where(c, x, z) }";
  const auto inputs = [](int64_t n) {
    return std::vector<NamedValue>{{"c", zeros(ElementType::boolean, {n})},
                                   {"x", zeros(ElementType::boolean, {0})}};
  };
  expect_refused(16, graph, inputs(3), "do not broadcast: 3 against 0");
  EXPECT_EQ(expect_shape(16, graph, inputs(1)), (Shape{3, 0, 0}));
}

TEST(Refusals, BinaryOperatorsSayWhichSizesDoNotBroadcast) {
  const std::string graph = "g (float[n] x, float[m] z) => (y) { y = Add(x, z) }";
  expect_refused(16, graph, {{"x", floats({1, 2, 3}, {3})}, {"z", floats({1, 2}, {2})}},
                 "shapes [3] and [2] do not broadcast");
}

TEST(Refusals, BlocksOfAScaleWhoseRankIsOpen) {
  const std::string graph =
      "g (float[2, 4, 2] x, float[] s) => (y) { y = QuantizeLinear<block_size = 8>(x, s) }";
  expect_refused(25, graph,
                 {{"x", zeros(ElementType::float32, {2, 4, 2})}, {"s", floats({1, 1, 1, 1}, {4})}},
                 "with block_size the scale must have the rank of X");
  EXPECT_EQ(expect_shape(25, graph,
                         {{"x", zeros(ElementType::float32, {2, 4, 2})}, {"s", floats({1}, {1})}}),
            (Shape{2, 4, 2}));
}

TEST(Refusals, BlocksAsLargeAsNumbersGo) {
  const std::string graph =
      "g (float[2, 2] x, float[a, b] s) => (y) "
      "{ y = QuantizeLinear<axis = 1, block_size = 9223372036854775806>(x, s) }";
  EXPECT_EQ(
      expect_shape(25, graph,
                   {{"x", zeros(ElementType::float32, {2, 2})}, {"s", floats({1, 1}, {2, 1})}}),
      (Shape{2, 2}));
}

TEST(Refusals, GatheredBlocksWhoseScaleMayRepeat) {
  const std::string graph =
      "g (float8e4m3fn[4, 32] x, int64[2] i, float[a, b] s) => (y) "
      "{ y = com.microsoft.GatherBlockQuantized<block_size = 16>(x, i, s) }";
  const auto inputs = [](const Shape& scales) {
    Tensor scale(ElementType::float32, scales);
    for (float& one : scale.mutable_elements<float>()) one = 1;
    return std::vector<NamedValue>{{"x", zeros(ElementType::float8e4m3fn, {4, 32})},
                                   {"i", integers({0, 1}, {2})},
                                   {"s", scale}};
  };
  EXPECT_EQ(expect_shape(20, graph, inputs({1, 2})), (Shape{2, 32}));
  EXPECT_EQ(expect_shape(20, graph, inputs({4, 2})), (Shape{2, 32}));
  expect_refused(20, graph, inputs({3, 2}), "scales must have the shape of data");
}

TEST(Refusals, SequencesLongerThanTheInput) {
  const char* const graph =
      "g (float[2,3,4] x, float[1,5,4] w, float[1,5,5] r, int32[3] lengths) => (float y) "
      "{ y = RNN<hidden_size = 5>(x, w, r, \"\", lengths) }";
  for (const int32_t wrong : {3, -1}) {
    expect_refused(21, graph,
                   {{"x", zeros(ElementType::float32, {2, 3, 4})},
                    {"w", zeros(ElementType::float32, {1, 5, 4})},
                    {"r", zeros(ElementType::float32, {1, 5, 5})},
                    {"lengths", Tensor::of<int32_t>({2, 0, wrong}, {3})}},
                   "must be in [0, 2], the steps of X; element 2 is " + std::to_string(wrong));
  }
}

TEST(Refusals, ResizeWhoseSizesMayBeEmpty) {
  const std::string graph =
      "g (float[n] x, float[] s, int64[m] z) => (y) { y = Resize(x, , s, z) }";
  const auto inputs = [](std::vector<int64_t> sizes) {
    const auto count = static_cast<int64_t>(sizes.size());
    return std::vector<NamedValue>{{"x", floats({1, 2}, {2})},
                                   {"s", floats({2}, {1})},
                                   {"z", integers(std::move(sizes), {count})}};
  };
  EXPECT_EQ(expect_shape(13, graph, inputs({})), (Shape{4}));
  EXPECT_EQ(expect_shape(13, graph, inputs({3})), (Shape{3}));
  expect_refused(13, graph, inputs({3, 3}), "sizes must have 1 elements");
  expect_refused(18,
                 "g (int64[] z) => (y) <float x = {1}, float s = {2}> { y = Resize(x, , s, z) }",
                 {{"z", integers({}, {0})}}, "must hold 0 elements");
}

TEST(Refusals, StatesOfScanKeepTheirShape) {
  const std::string graph =
      "g (float[n] s, float[3] x) => (y) { y = Scan<num_scan_inputs = 1, body = b (t, e) => (u) "
      "{ u = Identity(e) }>(s, x) }";
  expect_refused(23, graph, {{"s", floats({1, 2}, {2})}, {"x", floats({1, 2, 3}, {3})}},
                 "state 0 comes into an iteration with shape [2] and leaves it with []");
}

TEST(Refusals, ReshapeCopiesASizeForAComputedZero) {
  // The first size asked for is that of z, which is 0 in one of the runs.
  const std::string graph =
      "g (float[a, b] x, float[n] z) => (y) { one = Constant<value_ints = [6]>() size = Shape(z) "
      "shape = Concat<axis = 0>(size, one) y = Reshape(x, shape) }";
  EXPECT_EQ(
      expect_shape(13, graph, {{"x", floats({1, 2, 3, 4, 5, 6}, {2, 3})}, {"z", floats({1}, {1})}}),
      (Shape{1, 6}));
  EXPECT_EQ(expect_shape(13, graph,
                         {{"x", zeros(ElementType::float32, {0, 3})},
                          {"z", zeros(ElementType::float32, {0})}}),
            (Shape{0, 6}));
  const Model model = model_of(13, graph);
  const std::vector<NamedValue> copied = {{"x", zeros(ElementType::float32, {2, 0})},
                                          {"z", zeros(ElementType::float32, {0})}};
  for (const bool plain : {false, true})
    EXPECT_FALSE(outcome_of(model, copied, plain).output) << "plain: " << plain;
}

TEST(Refusals, ReshapeLeavesNoElementsBesideASizeOfZero) {
  const std::string graph =
      "g (float[a, b] x, float[n] z) => (y) { open = Constant<value_ints = [-1]>() size = Shape(z) "
      "shape = Concat<axis = 0>(open, size) y = Reshape(x, shape) }";
  const auto inputs = [](Shape x, int64_t n) {
    return std::vector<NamedValue>{{"x", zeros(ElementType::float32, std::move(x))},
                                   {"z", zeros(ElementType::float32, {n})}};
  };
  EXPECT_EQ(expect_shape(20, graph, inputs({4, 3}, 2)), (Shape{6, 2}));
  EXPECT_EQ(expect_shape(20, graph, inputs({3, 0}, 2)), (Shape{0, 2}));
  const Model model = model_of(20, graph);
  for (const bool plain : {false, true}) {
    EXPECT_FALSE(outcome_of(model, inputs({3, 1}, 2), plain).output) << "plain: " << plain;
    EXPECT_TRUE(outcome_of(model, inputs({3, 0}, 0), plain).output) << "plain: " << plain;
  }
}

TEST(Refusals, MasksOfAttentionWhoseSizesAreOpen) {
  const std::string graph =
      "g (float[a, b] m) => (y) <float[1, 1, 3, 2] x = {1, 2, 3, 4, 5, 6}> "
      "{ y = Attention(x, x, x, m) }";
  expect_refused(24, graph, {{"m", zeros(ElementType::float32, {2, 3})}},
                 "attn_mask must broadcast to batch, heads and queries");
  EXPECT_EQ(expect_shape(24, graph, {{"m", zeros(ElementType::float32, {1, 3})}}),
            (Shape{1, 1, 3, 2}));
}

TEST(Refusals, DropoutThatKeepsAllStillWantsOneRatio) {
  const std::string graph =
      "g (float[2] x, float[n] ratio) => (y) { d = Dropout(x, ratio) y = Neg(d) }";
  expect_refused(22, graph, {{"x", floats({1, 2}, {2})}, {"ratio", floats({0.5, 0.5}, {2})}},
                 "must hold one element");
  EXPECT_EQ(expect_shape(22, graph, {{"x", floats({1, 2}, {2})}, {"ratio", floats({0.5}, {1})}}),
            (Shape{2}));
}

TEST(Refusals, OutputsThatTheNewestVersionDoesNotHave) {
  const Model model = model_of(7,
                               "g (float[1, 2] x, float[2] s) => (y, e) { y, a, b, c, e = "
                               "BatchNormalization(x, s, s, s, s) }");
  for (const bool plain : {false, true}) {
    const Outcome outcome =
        outcome_of(model, {{"x", floats({1, 2}, {1, 2})}, {"s", floats({1, 1}, {2})}}, plain);
    EXPECT_FALSE(outcome.output);
    EXPECT_NE(outcome.error.find("output 'e'"), std::string::npos) << outcome.error;
  }
}

TEST(Refusals, HyperConnectionsOfAScalar) {
  expect_refused(20,
                 "g (float x, float[a, b] y, float[a, b] z) => (o) <float[1] m = {1}> { o = "
                 "com.microsoft.HyperConnectionPostMix<num_branches = 2>(x, y, z, m) }",
                 {{"x", floats({1}, {})}, {"y", floats({1}, {1, 1})}, {"z", floats({1}, {1, 1})}},
                 "has no dimension");
}

TEST(Refusals, StringSplitsAtMostTheLeastNumber) {
  const std::string graph =
      "g (string[1] x) => (y, n) { y, n = StringSplit<delimiter = \"-\", maxsplit = "
      "-9223372036854775808>(x) }";
  Tensor text(ElementType::string, {1});
  text.mutable_elements<std::string>()[0] = "a-b-c";
  EXPECT_EQ(expect_shape(20, graph, {{"x", text}}), (Shape{1, 3}));
}

}  // namespace
}  // namespace sardonyx
