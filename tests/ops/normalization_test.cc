// Normalisations, softmaxes, reductions, sorting, and how their old versions are upgraded.
#include "nn_support.h"

namespace sardonyx::ops_test {
namespace {

using ops::ValueFacts;

float at(const Tensor& tensor, int64_t i) {
  return tensor.elements<float>()[static_cast<size_t>(i)];
}

// --- BatchNormalization

struct BatchNorm {
  Tensor x, scale, bias, mean, variance;
  explicit BatchNorm(Random& random, Shape shape) : x(random.floats(shape)) {
    const Shape c{shape[1]};
    scale = random.floats(c), bias = random.floats(c), mean = random.floats(c),
    variance = random.floats(c);
    for (float& v : variance.mutable_elements<float>()) v = std::abs(v) + 0.1f;
  }
  std::vector<Tensor> inputs() const { return {x, scale, bias, mean, variance}; }
  std::map<std::string, Value> named() const {
    return {{"x", x}, {"s", scale}, {"b", bias}, {"m", mean}, {"v", variance}};
  }
};

TEST(BatchNormalization, InferenceIsTheFormula) {
  Random random(1);
  const BatchNorm n(random, {2, 3, 4, 5});
  Tensor wanted(ElementType::float32, {2, 3, 4, 5});
  for (int64_t i = 0; i < 120; ++i) {
    const int64_t c = i / 20 % 3;
    wanted.mutable_elements<float>()[static_cast<size_t>(i)] =
        (at(n.x, i) - at(n.mean, c)) / std::sqrt(at(n.variance, c) + 1e-5f) * at(n.scale, c) +
        at(n.bias, c);
  }
  expect_near(run_node("BatchNormalization", n.inputs())[0], wanted);
}

TEST(BatchNormalization, TrainingUsesTheBatchAndMovesTheStatistics) {
  Random random(2);
  const BatchNorm n(random, {4, 2, 6});
  const auto y = run_node("BatchNormalization <training_mode = 1, momentum = 0.75>", n.inputs(), 3);
  for (int64_t c = 0; c < 2; ++c) {
    double sum = 0, squares = 0;
    for (int64_t b = 0; b < 4; ++b) {
      for (int64_t i = 0; i < 6; ++i)
        sum += at(n.x, (b * 2 + c) * 6 + i), squares += std::pow(at(n.x, (b * 2 + c) * 6 + i), 2);
    }
    const double mean = sum / 24, variance = squares / 24 - mean * mean;
    EXPECT_NEAR(at(y[1].tensor(), c), 0.75 * at(n.mean, c) + 0.25 * mean, 1e-5);
    EXPECT_NEAR(at(y[2].tensor(), c), 0.75 * at(n.variance, c) + 0.25 * variance, 1e-5);
    EXPECT_NEAR(
        at(y[0].tensor(), c * 6),
        (at(n.x, c * 6) - mean) / std::sqrt(variance + 1e-5) * at(n.scale, c) + at(n.bias, c),
        1e-4);
  }
}

TEST(BatchNormalization, OldVersionsSayTrainingInTheirOwnWays) {
  const auto training = [](std::string_view node, int64_t since) {
    const Upgraded up = upgraded(node, since);
    return std::pair(up.nodes.back().find("training_mode")->i.value(),
                     up.nodes.back().outputs.size());
  };
  EXPECT_EQ(training("y = BatchNormalization <is_test = 1> (x, s, b, m, v)", 6),
            (std::pair<int64_t, size_t>(0, 1)));
  EXPECT_EQ(training("y = BatchNormalization (x, s, b, m, v)", 6),
            (std::pair<int64_t, size_t>(1, 3)));  // the newest lists all three, two of them absent
  EXPECT_EQ(training("y = BatchNormalization (x, s, b, m, v)", 9),
            (std::pair<int64_t, size_t>(0, 1)));
  EXPECT_EQ(training("y, a, c = BatchNormalization (x, s, b, m, v)", 9),
            (std::pair<int64_t, size_t>(1, 3)));
  // saved_mean is made, saved_var never was defined.
  const auto nodes = upgraded("y, a, c, d, e = BatchNormalization (x, s, b, m, v)", 9).nodes;
  EXPECT_EQ(nodes.back().outputs, std::vector<std::string>{"d"});
}

TEST(BatchNormalization, SpatialZeroHasParametersForEachElement) {
  Random random(3);
  BatchNorm n(random, {2, 6});
  const Value wanted = run_node("BatchNormalization", n.inputs())[0];
  auto values = n.named();
  values["x"] = n.x.reshaped({2, 3, 2});
  for (const char* name : {"s", "b", "m", "v"})
    values[name] = values[name].tensor().reshaped({3, 2});
  const Value y =
      run(upgraded("y = BatchNormalization <spatial = 0> (x, s, b, m, v)", 7), values, "y");
  EXPECT_EQ(y.tensor().shape(), (Shape{2, 3, 2}));
  expect_near(y.tensor().reshaped({2, 6}), wanted);
}

// --- Layer, RMS, group

TEST(LayerNormalization, ScaleMayVaryOverTheRows) {
  Random random(4);
  const Tensor x = random.floats({2, 3, 4}), scale = random.floats({2, 1, 4}),
               bias = random.floats({4});
  const Tensor ones =
      run_node("ConstantOfShape <value = float[1] {1.0}>", {Tensor::of<int64_t>({4}, {1})})[0]
          .tensor();
  const Tensor plain = run_node("LayerNormalization", {x, ones})[0].tensor();
  const Tensor wanted =
      run_node("Add", {run_node("Mul", {plain, scale})[0].tensor(), bias})[0].tensor();
  expect_near(run_node("LayerNormalization", {x, scale, bias})[0], wanted);
}

TEST(LayerNormalization, MomentsAndTypes) {
  Random random(5);
  const Tensor x = random.floats({3, 8}), scale = random.floats({8});
  const auto y = run_node("LayerNormalization", {x, scale}, 3);
  EXPECT_EQ(y[1].tensor().shape(), (Shape{3, 1}));
  double sum = 0;
  for (int64_t i = 0; i < 8; ++i) sum += at(x, i);
  EXPECT_NEAR(at(y[1].tensor(), 0), sum / 8, 1e-6);
  for (const auto type : {ElementType::float16, ElementType::bfloat16, ElementType::float64}) {
    const auto other =
        run_node("LayerNormalization", {converted(x, type), converted(scale, type)}, 2);
    EXPECT_EQ(other[0].tensor().element_type(), type);
    EXPECT_EQ(other[1].tensor().element_type(), ElementType::float32);
    expect_near(other[0], y[0], 0.03);
  }
}

TEST(RMSNormalization, MixedTypesFollowTheScale) {
  Random random(6);
  const Tensor x = random.floats({2, 5, 16}), scale = random.floats({16});
  const Value wanted = run_node("RMSNormalization", {x, scale})[0];
  const Value half = run_node("RMSNormalization", {x, converted(scale, ElementType::float16)})[0];
  EXPECT_EQ(half.tensor().element_type(), ElementType::float16);
  expect_near(half, wanted, 0.01);
  double squares = 0;
  for (int64_t i = 0; i < 16; ++i) squares += std::pow(at(x, i), 2);
  EXPECT_NEAR(at(wanted.tensor(), 3), at(x, 3) / std::sqrt(squares / 16 + 1e-5) * at(scale, 3),
              1e-5);
}

TEST(GroupNormalization, OldScalesBelongToGroups) {
  Random random(7);
  const Tensor x = random.floats({2, 6, 5}), scale = random.floats({3}), bias = random.floats({3});
  Tensor wide_scale(ElementType::float32, {6}), wide_bias(ElementType::float32, {6});
  for (size_t c = 0; c < 6; ++c) {
    wide_scale.mutable_elements<float>()[c] = scale.elements<float>()[c / 2];
    wide_bias.mutable_elements<float>()[c] = bias.elements<float>()[c / 2];
  }
  const Value wanted =
      run_node("GroupNormalization <num_groups = 3>", {x, wide_scale, wide_bias})[0];
  expect_near(run(upgraded("y = GroupNormalization <num_groups = 3> (x, s, b)", 18),
                  {{"x", x}, {"s", scale}, {"b", bias}}, "y"),
              wanted);
  EXPECT_NE(error_of([&] {
              run_node("GroupNormalization <num_groups = 4>", {x, wide_scale, wide_bias});
            }).find("divisible"),
            std::string::npos);
}

TEST(MeanVarianceNormalization, AnyAxes) {
  Random random(8);
  const Tensor x = random.floats({3, 4, 5});
  for (const char* axes : {"[0]", "[2]", "[0, 2]", "[1, 2]", "[0, 1, 2]", "[-1, 0]"}) {
    const std::string attribute = std::string("axes = ") + axes;
    const Tensor y = run_node("MeanVarianceNormalization <" + attribute + ">", {x})[0].tensor();
    const Tensor mean =
        run(upgraded("y = ReduceMean <" + attribute + "> (x)", 13), {{"x", y}}, "y").tensor();
    const Tensor power =
        run(upgraded("y = ReduceL2 <" + attribute + "> (x)", 13), {{"x", y}}, "y").tensor();
    const double count = static_cast<double>(x.size()) / static_cast<double>(mean.size());
    for (int64_t i = 0; i < mean.size(); ++i) {
      EXPECT_NEAR(at(mean, i), 0, 1e-5);
      EXPECT_NEAR(at(power, i), std::sqrt(count), 1e-3);
    }
  }
}

// 1e-9 is added to the deviation, here 2e-9.
TEST(MeanVarianceNormalization, SmallDeviations) {
  for (const int rows : {1, 2}) {  // rows of floats are made one by one and together
    Tensor x(ElementType::float32, {rows, 2});
    for (size_t i = 0; i < static_cast<size_t>(2 * rows); ++i)
      x.mutable_elements<float>()[i] = i % 2 == 0 ? 1e-9f : 5e-9f;
    const Tensor y = run_node("MeanVarianceNormalization <axes = [1]>", {x})[0].tensor();
    for (int64_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(at(y, i), i % 2 == 0 ? -2. / 3 : 2. / 3, 1e-6);
  }
}

// --- Softmax

TEST(Softmax, OldVersionsWorkOnAllTrailingAxes) {
  Random random(9);
  const Tensor x = random.floats({2, 3, 4});
  for (const int64_t axis : {0, 1, 2}) {
    const int64_t rows = axis == 0 ? 1 : axis == 1 ? 2 : 6;
    for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
      const Tensor wanted =
          run_node(std::string(op), {x.reshaped({rows, 24 / rows})})[0].tensor().reshaped(
              {2, 3, 4});
      const std::string node = fmt::format("y = {} <axis = {}> (x)", op, axis);
      expect_near(run(upgraded(node, 11), {{"x", x}}, "y"), wanted);
      std::map<std::string, ValueFacts, std::less<>> known{
          {"x", ValueFacts::of(ir::ValueType::tensor(ElementType::float32, {2, 3, 4}))}};
      const Upgraded up = upgraded(node, 11, known);
      EXPECT_EQ(up.nodes.size(), axis == 2 ? 1u : 4u);
      expect_near(run(up, {{"x", x}}, "y"), wanted);
    }
  }
  // The old default is axis 1.
  expect_near(run(upgraded("y = Softmax (x)", 1), {{"x", x}}, "y"),
              run_node("Softmax", {x.reshaped({2, 12})})[0].tensor().reshaped({2, 3, 4}));
}

TEST(Softmax, AxisOutOfRangeTeaches) {
  const auto message = error_of([] {
    run_node("Softmax <axis = 5>", {Tensor(ElementType::float32, {2, 3, 4})});
  });
  EXPECT_NE(message.find("axis must be in [-3, 2]; got 5"), std::string::npos) << message;
}

// --- Reductions

TEST(Reduce, ShapesAreKnownAsFarAsTheAxesAre) {
  const Inferred g(R"(g (float[batch, c, h, w] x, int64[2] axes) => (float[a] y) {
    spatial = Constant <value_ints = [-1, -2]> ()
    mean = ReduceMean (x, spatial)
    gone = ReduceMean <keepdims = 0> (x, spatial)
    all = ReduceSum <keepdims = 0> (x)
    open = ReduceMax (x, axes)
    fewer = ReduceMax <keepdims = 0> (x, axes)
    same = ReduceSum <noop_with_empty_axes = 1> (x)
    shape = Shape (x)
    zero = Constant <value_ints = [0]> ()
    count = ReduceProd <keepdims = 0> (shape, zero)
    total = ReduceSum (shape)
  })");
  EXPECT_EQ(g.shape("mean"), "[batch,c,1,1]");
  EXPECT_EQ(g.shape("gone"), "[batch,c]");
  EXPECT_EQ(g.shape("all"), "[]");
  EXPECT_EQ(g["open"].type.shape->size(), 4u);
  EXPECT_EQ(g["fewer"].type.shape->size(), 2u);
  EXPECT_EQ(g.shape("same"), "[batch,c,h,w]");
  EXPECT_EQ(g.elements("count"), "[batch*c*h*w]");
  EXPECT_EQ(g.elements("total"), "[batch + c + h + w]");
}

TEST(Reduce, AxesThatOnlyTheRunKnows) {
  Random random(10);
  const Tensor x = random.floats({3, 4, 5}), axes = Tensor::of<int64_t>({-1, 0}, {2});
  expect_same(run_node("ReduceSum", {x, axes})[0], run_node("ReduceSum", {x, axes}, 1, {1})[0]);
  EXPECT_NE(error_of([&] {
              run_node("ReduceSum", {x, Tensor::of<int64_t>({3}, {1})});
            }).find("[-3, 2]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("ReduceSum", {x, Tensor::of<int64_t>({0, -3}, {2})}, 1, {1});
            }).find("repeat"),
            std::string::npos);
}

TEST(Reduce, AttributeAxesBecomeAnInput) {
  Random random(11);
  const Tensor x = random.floats({3, 4});
  expect_near(run(upgraded("y = ReduceMean <axes = [1], keepdims = 0> (x)", 13), {{"x", x}}, "y"),
              run_node("ReduceMean <keepdims = 0>", {x, Tensor::of<int64_t>({1}, {1})})[0]);
  EXPECT_EQ(upgraded("y = ReduceSum (x, a)", 13).nodes.size(), 1u);
  EXPECT_EQ(upgraded("y = ReduceSum <axes = [0]> (x)", 11).nodes.size(), 2u);
}

TEST(ArgMax, KeepsOrDropsTheAxis) {
  const Tensor x = Tensor::of<float>({1, 3, 3, 0, 0, -1}, {2, 3});
  EXPECT_EQ(elements<int64_t>(run_node("ArgMax <axis = 1>", {x})[0]), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(elements<int64_t>(run_node("ArgMax <axis = -1, select_last_index = 1>", {x})[0]),
            (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(run_node("ArgMin <axis = 0, keepdims = 0>", {x})[0].tensor().shape(), (Shape{3}));
}

TEST(TopK, SizesComeFromK) {
  const Inferred g(R"(g (float[batch, n] x, int64[1] k) => (float[a] y) {
    five = Constant <value_ints = [5]> ()
    a, ai = TopK (x, five)
    b, bi = TopK (x, k)
  })");
  EXPECT_EQ(g.shape("a"), "[batch,5]");
  EXPECT_EQ(g["b"].type.shape->size(), 2u);
  const Tensor x = Tensor::of<float>({3, 1, 2, 5}, {4});
  const auto y = run_node("TopK", {x, Tensor::of<int64_t>({2}, {1})}, 2);
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{5, 3}));
  EXPECT_EQ(elements<int64_t>(y[1]), (std::vector<int64_t>{3, 0}));
  EXPECT_NE(error_of([&] {
              run_node("TopK", {x, Tensor::of<int64_t>({9}, {1})}, 2);
            }).find("K must be at most"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("TopK", {x, Tensor::of<int64_t>({-1}, {1})}, 2);
            }).find("negative"),
            std::string::npos);
  const Upgraded up = upgraded("v, i = TopK <k = 2> (x)", 1);
  EXPECT_EQ(elements<float>(run(up, {{"x", x}}, "v")), (std::vector<float>{5, 3}));
}

TEST(CumSum, AxisIsCheckedInTheRun) {
  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(elements<float>(run_node("CumSum", {x, Tensor::scalar<int64_t>(0)})[0]),
            (std::vector<float>{1, 2, 4, 6}));
  EXPECT_EQ(elements<float>(run_node("CumProd <reverse = 1>", {x, Tensor::scalar<int32_t>(-1)})[0]),
            (std::vector<float>{2, 2, 12, 4}));
  EXPECT_NE(error_of([&] {
              run_node("CumSum", {x, Tensor::scalar<int64_t>(2)});
            }).find("[-2, 1]"),
            std::string::npos);
  // What inference knows of a row would leave nothing that looks at it.
  const Inferred g(R"(g (int64 axis) => (y) {
    row = Constant <value_ints = [1, 2]> ()
    zero = Constant <value_int = 0> ()
    x = CumSum (row, zero)
    y = CumSum (row, axis)
  })");
  EXPECT_EQ(g.elements("x"), "[1,3]");
  EXPECT_EQ(g.elements("y"), "?");
}

// --- Dropout

TEST(Dropout, InferenceIsTheInput) {
  Random random(12);
  const Tensor x = random.floats({3, 4});
  const auto y = run_node("Dropout", {x}, 2);
  expect_same(y[0], x);
  for (const bool kept : elements<bool>(y[1])) EXPECT_TRUE(kept);
}

TEST(Dropout, TrainingDropsAndScales) {
  const Tensor x =
      run_node("ConstantOfShape <value = float[1] {1.0}>", {Tensor::of<int64_t>({10000}, {1})})[0]
          .tensor();
  const Tensor ratio = Tensor::scalar<float>(0.25f), on = Tensor::scalar<bool>(true);
  const auto y = run_node("Dropout <seed = 7>", {x, ratio, on}, 2);
  int64_t kept = 0;
  for (size_t i = 0; i < 10000; ++i) {
    const bool keep = y[1].tensor().elements<bool>()[i];
    ASSERT_FLOAT_EQ(y[0].tensor().elements<float>()[i], keep ? 1 / 0.75f : 0);
    kept += keep;
  }
  EXPECT_NEAR(static_cast<double>(kept), 7500, 200);
  expect_same(run_node("Dropout <seed = 7>", {x, ratio, on})[0], y[0]);
  EXPECT_NE(error_of([&] {
              run_node("Dropout", {x, Tensor::scalar<float>(1), on});
            }).find("ratio must be in [0, 1)"),
            std::string::npos);
}

TEST(Dropout, OldVersions) {
  Random random(13);
  const Tensor x = random.floats({5});
  const Upgraded one = upgraded("y, m = Dropout <is_test = 1, ratio = 0.3> (x)", 6);
  expect_same(run(one, {{"x", x}}, "y"), x);
  EXPECT_EQ(run(one, {{"x", x}}, "m").tensor().element_type(), ElementType::float32);
  EXPECT_EQ(upgraded("y = Dropout (x)", 1).nodes.back().inputs.size(), 3u);
  EXPECT_EQ(upgraded("y = Dropout (x)", 7).nodes.back().inputs.size(), 2u);
  EXPECT_EQ(upgraded("y, m = Dropout (x)", 10).nodes.back().outputs[1], "m");
}

}  // namespace
}  // namespace sardonyx::ops_test
