// Nodes of old versions keep their meaning when they are upgraded.
#include "graph_support.h"

namespace sardonyx::ops_test {
namespace {

Value counting_floats(Shape shape) {
  Tensor tensor(ElementType::float32, std::move(shape));
  float next = 0;
  for (float& element : tensor.mutable_elements<float>()) element = next++;
  return tensor;
}

std::map<std::string, Value> inputs(Value x) { return {{"x", std::move(x)}}; }

TEST(Upgrade, ReshapeHeldItsShape) {
  const auto y =
      run(upgraded("y = Reshape <shape = [3, -1]> (x)", 1), inputs(counting_floats({2, 3})), "y");
  EXPECT_EQ(y.tensor().shape(), (Shape{3, 2}));
  EXPECT_NE(error_of([] { upgraded("y = Reshape (x)", 1); }).find("'shape' is absent"),
            std::string::npos);
}

TEST(Upgrade, SqueezeAndUnsqueezeHeldTheirAxes) {
  EXPECT_EQ(run(upgraded("y = Unsqueeze <axes = [0, 2]> (x)", 1), inputs(counting_floats({3})), "y")
                .tensor()
                .shape(),
            (Shape{1, 3, 1}));
  EXPECT_EQ(
      run(upgraded("y = Squeeze <axes = [0]> (x)", 11), inputs(counting_floats({1, 3, 1})), "y")
          .tensor()
          .shape(),
      (Shape{3, 1}));
  EXPECT_EQ(
      run(upgraded("y = Squeeze (x)", 1), inputs(counting_floats({1, 3, 1})), "y").tensor().shape(),
      (Shape{3}));
}

TEST(Upgrade, SliceWithoutAxesBeganAtTheFirst) {
  const auto y = run(upgraded("y = Slice <starts = [1], ends = [2147483647]> (x)", 1),
                     inputs(counting_floats({3, 2})), "y");
  EXPECT_EQ(elements<float>(y), (std::vector<float>{2, 3, 4, 5}));
}

TEST(Upgrade, SplitIntoEqualParts) {
  const auto parts = upgraded("a, b = Split <axis = 1> (x)", 2);
  EXPECT_EQ(elements<float>(run(parts, inputs(counting_floats({1, 4})), "b")),
            (std::vector<float>{2, 3}));
  const auto sizes = upgraded("a, b = Split <axis = 1, split = [1, 3]> (x)", 11);
  EXPECT_EQ(elements<float>(run(sizes, inputs(counting_floats({1, 4})), "b")),
            (std::vector<float>{1, 2, 3}));
  const auto first = upgraded("a, b = Split <axis = 1> (x, s)", 1);
  EXPECT_EQ(
      elements<float>(
          run(first, {{"x", counting_floats({1, 4})}, {"s", Tensor::of<float>({1, 3}, {2})}}, "b")),
      (std::vector<float>{1, 2, 3}));
}

TEST(Upgrade, ConcatJoinedAtAxisOne) {
  const auto y = run(upgraded("y = Concat (x, x)", 1), inputs(counting_floats({2, 1})), "y");
  EXPECT_EQ(elements<float>(y), (std::vector<float>{0, 0, 1, 1}));
}

TEST(Upgrade, TileAlongOneAxis) {
  const std::map<std::string, Value> values = {{"x", counting_floats({2, 2})},
                                               {"t", Tensor::scalar<float>(2)},
                                               {"a", Tensor::scalar<float>(1)}};
  const auto y = run(upgraded("y = Tile (x, t, a)", 1), values, "y");
  EXPECT_EQ(elements<float>(y), (std::vector<float>{0, 1, 0, 1, 2, 3, 2, 3}));
}

TEST(Upgrade, CastNamedItsTarget) {
  const auto y =
      run(upgraded(R"(y = Cast <to = "Int64"> (x))", 1), inputs(counting_floats({2})), "y");
  EXPECT_EQ(elements<int64_t>(y), (std::vector<int64_t>{0, 1}));
  EXPECT_NE(error_of([] { upgraded(R"(y = Cast <to = "NUMBER"> (x))", 1); }).find("'NUMBER'"),
            std::string::npos);
}

TEST(Upgrade, PadKeepsTheTypeOfItsValue) {
  const auto y = run(upgraded("y = Pad <paddings = [1, 0], value = 2.5> (x)", 1),
                     inputs(Tensor::of<double>({1}, {1})), "y");
  EXPECT_EQ(elements<double>(y), (std::vector<double>{2.5, 1}));
  const auto z =
      run(upgraded("y = Pad <pads = [0, -1]> (x)", 2), inputs(counting_floats({2})), "y");
  EXPECT_EQ(elements<float>(z), (std::vector<float>{0}));
}

TEST(Upgrade, OneHotLeftNegativeIndicesOff) {
  const std::map<std::string, Value> values = {{"i", Tensor::of<int64_t>({0, -1}, {2})},
                                               {"d", Tensor::scalar<int64_t>(2)},
                                               {"v", Tensor::of<float>({0, 1}, {2})}};
  EXPECT_EQ(elements<float>(run(upgraded("y = OneHot (i, d, v)", 9), values, "y")),
            (std::vector<float>{1, 0, 0, 0}));
  EXPECT_EQ(elements<float>(run(upgraded("y = OneHot (i, d, v)", 11), values, "y")),
            (std::vector<float>{1, 0, 0, 1}));
}

TEST(Upgrade, ScatterIsScatterElements) {
  const std::map<std::string, Value> values = {{"x", counting_floats({3})},
                                               {"i", Tensor::of<int64_t>({1}, {1})},
                                               {"u", Tensor::of<float>({9}, {1})}};
  EXPECT_EQ(elements<float>(run(upgraded("y = Scatter (x, i, u)", 9), values, "y")),
            (std::vector<float>{0, 9, 2}));
}

TEST(Upgrade, UpsampleTakesThePixelBelow) {
  const auto image = counting_floats({1, 1, 1, 2});
  const auto y = run(upgraded(R"(y = Upsample <height_scale = 1.0, width_scale = 2.5> (x))", 1),
                     inputs(image), "y");
  EXPECT_EQ(elements<float>(y), (std::vector<float>{0, 0, 0, 1, 1}));
  const auto z =
      run(upgraded(R"(y = Upsample <mode = "linear", scales = [1.0, 1.0, 1.0, 2.0]> (x))", 7),
          inputs(image), "y");
  EXPECT_EQ(elements<float>(z), (std::vector<float>{0, 0.5, 1, 1}));
}

// Version 10 took the pixel below where it enlarged and the one above where it shrank.
TEST(Upgrade, ResizeRoundedByDirection) {
  const auto nearest = [&](std::vector<float> scales, bool known) {
    const Tensor tensor = Tensor::of<float>(scales, {2});
    std::map<std::string, ops::ValueFacts, std::less<>> facts;
    if (known) facts.emplace("s", ops::ValueFacts::of(tensor));
    return elements<float>(run(upgraded("y = Resize (x, s)", 10, facts),
                               {{"x", counting_floats({3, 3})}, {"s", tensor}}, "y"));
  };
  for (const bool known : {true, false}) {
    EXPECT_EQ(nearest({1, 0.7f}, known), (std::vector<float>{0, 2, 3, 5, 6, 8})) << known;
    EXPECT_EQ(nearest({1, 1.5f}, known), (std::vector<float>{0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8}))
        << known;
    EXPECT_EQ(nearest({0.7f, 1.5f}, known), (std::vector<float>{0, 0, 1, 2, 6, 6, 7, 8})) << known;
  }
}

TEST(Upgrade, LabelEncoderChoseItsDirection) {
  const auto places = upgraded(
      R"(y = ai.onnx.ml.LabelEncoder <classes_strings = ["a", "b", "a"], default_int64 = 9> (x))",
      1, {{"x", ops::ValueFacts::of(ir::ValueType::tensor(ElementType::string))}});
  EXPECT_EQ(
      elements<int64_t>(run(places, inputs(Tensor::of<std::string>({"b", "a", "?"}, {3})), "y")),
      (std::vector<int64_t>{1, 0, 9}));
  const auto names =
      upgraded(R"(y = ai.onnx.ml.LabelEncoder <classes_strings = ["a", "b"]> (x))", 1,
               {{"x", ops::ValueFacts::of(ir::ValueType::tensor(ElementType::int64))}});
  EXPECT_EQ(elements<std::string>(run(names, inputs(Tensor::of<int64_t>({1, 7}, {2})), "y")),
            (std::vector<std::string>{"b", "_Unused"}));
}

}  // namespace
}  // namespace sardonyx::ops_test
