// Element-wise operators, reductions and softmax of old opsets. Expected values are worked out by
// hand from the old definitions.
#include <fmt/format.h>

#include <limits>
#include <tuple>

#include "upgrade_support.h"

namespace sardonyx::upgrade_test {
namespace {

// In a square, b along dimension 0 and b along the last one look alike but for the numbers.
TEST(UpgradeElementwise, EveryBroadcastingOperatorHadAnAxis) {
  const Tensor a = Tensor::of<float>({8, 3, 5, 2}, {2, 2}), b = Tensor::of<float>({2, 4}, {2});
  struct Arithmetic {
    const char* op;
    std::vector<double> wanted;
  };
  const Arithmetic cases[] = {{"Add", {10, 5, 9, 6}},
                              {"Sub", {6, 1, 1, -2}},
                              {"Mul", {16, 6, 20, 8}},
                              {"Div", {4, 1.5, 1.25, 0.5}},
                              {"Pow", {64, 9, 625, 16}}};
  for (const int opset : {1, 6}) {
    for (const auto& [op, wanted] : cases) {
      SCOPED_TRACE(fmt::format("{} of opset {}", op, opset));
      const std::string node = fmt::format("y = {}<axis = 0, broadcast = 1>(a, b)", op);
      const auto y =
          run_old(opset, "g (float[2, 2] a, float[2] b) => (float[2, 2] y) {" + node + "}",
                  {{"a", a}, {"b", b}});
      expect_floats(y[0], wanted);
      const auto open = run_old(opset, "g (float[] a, float[] b) => (float[] y) {" + node + "}",
                                {{"a", a}, {"b", b}});
      expect_floats(open[0], wanted);
    }
  }
}

TEST(UpgradeElementwise, ComparisonsAndLogicHadAnAxis) {
  const auto run = [](const char* op, const char* type, const Tensor& a, const Tensor& b) {
    const auto y = run_old(6,
                           fmt::format("g ({0}[2, 2] a, {0}[2] b) => (bool[2, 2] y) {{ y = {1}"
                                       "<axis = 0, broadcast = 1>(a, b) }}",
                                       type, op),
                           {{"a", a}, {"b", b}});
    return values<bool>(y[0]);
  };
  const Tensor a = Tensor::of<float>({8, 3, 5, 2}, {2, 2}), b = Tensor::of<float>({2, 4}, {2});
  EXPECT_EQ(run("Greater", "float", a, b), (std::vector<bool>{1, 1, 1, 0}));
  EXPECT_EQ(run("Less", "float", a, b), (std::vector<bool>{0, 0, 0, 1}));
  EXPECT_EQ(run("Equal", "int64", Tensor::of<int64_t>({2, 3, 4, 5}, {2, 2}),
                Tensor::of<int64_t>({2, 4}, {2})),
            (std::vector<bool>{1, 0, 1, 0}));
  const Tensor p = Tensor::of<bool>({true, false, true, false}, {2, 2}),
               q = Tensor::of<bool>({true, false}, {2});
  EXPECT_EQ(run("And", "bool", p, q), (std::vector<bool>{1, 0, 0, 0}));
  EXPECT_EQ(run("Or", "bool", p, q), (std::vector<bool>{1, 1, 1, 0}));
  EXPECT_EQ(run("Xor", "bool", p, q), (std::vector<bool>{0, 1, 1, 0}));
}

TEST(UpgradeElementwise, BroadcastWithoutRoomIsRefused) {
  const auto message = refusal(
      6, "g (float[2] a, float[2, 2] b) => (float[2, 2] y) { y = Add<broadcast = 1>(a, b) }",
      {{"a", counted({2})}, {"b", counted({2, 2})}});
  EXPECT_NE(message.find("more dimensions than the first"), std::string::npos) << message;
}

// Of release 1.0, where Equal took floats.
TEST(UpgradeElementwise, EqualOfFloatsBeforeVersion11) {
  const auto y =
      run_old(1, "g (float[2] a, float[2] b) => (bool[2] y) { y = Equal(a, b) }",
              {{"a", Tensor::of<float>({1, 2}, {2})}, {"b", Tensor::of<float>({1, 3}, {2})}});
  EXPECT_EQ(values<bool>(y[0]), (std::vector<bool>{1, 0}));
}

TEST(UpgradeElementwise, ConsumedInputsAreIgnored) {
  const Tensor x = Tensor::of<float>({0.25f, 0.5f}, {1, 1, 2}), one = Tensor::of<float>({1}, {1});
  for (const char* op : {"Abs", "Ceil", "Clip", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu",
                         "Log", "Neg", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sqrt", "Tanh"}) {
    SCOPED_TRACE(op);
    const auto graph = [&](const char* attributes) {
      return fmt::format("g (float[1, 1, 2] x) => (float[1, 1, 2] y) {{ y = {}{}(x) }}", op,
                         attributes);
    };
    const auto hinted = run_old(1, graph("<consumed_inputs = [0]>"), {{"x", x}});
    EXPECT_EQ(values<float>(hinted[0]), values<float>(run_old(1, graph(""), {{"x", x}})[0]));
  }
  for (const char* op : {"Add", "Div", "Max", "Mean", "Min", "Mul", "PRelu", "Sub", "Sum"}) {
    SCOPED_TRACE(op);
    const auto graph = [&](const char* attributes) {
      return fmt::format(
          "g (float[1, 1, 2] x, float[1, 1, 2] z) => (float[1, 1, 2] y) {{ y = {}{}(x, z) }}", op,
          attributes);
    };
    const std::vector<NamedValue> inputs = {{"x", x}, {"z", x}};
    const auto hinted = run_old(1, graph("<consumed_inputs = [0, 0]>"), inputs);
    EXPECT_EQ(values<float>(hinted[0]), values<float>(run_old(6, graph(""), inputs)[0]));
  }
  const auto normal = [](const char* attributes) {
    return fmt::format(
        "g (float[1, 1, 2] x, float[1] s) => (float[1, 1, 2] y) {{ y = InstanceNormalization{}(x, "
        "s, s) }}",
        attributes);
  };
  const std::vector<NamedValue> inputs = {{"x", x}, {"s", one}};
  EXPECT_EQ(values<float>(run_old(1, normal("<consumed_inputs = [0]>"), inputs)[0]),
            values<float>(run_old(6, normal(""), inputs)[0]));
}

TEST(UpgradeElementwise, ClipBoundsHaveTheTypeOfTheData) {
  const std::string node = "{ y = Clip<min = -0.1, max = 1.0>(x) }";
  const auto y = run_old(6, "g (double[2] x) => (double[2] y)" + node,
                         {{"x", Tensor::of<double>({-7, 7}, {2})}});
  EXPECT_EQ(values<double>(y[0]), (std::vector<double>{static_cast<double>(-0.1f), 1}));
}

TEST(UpgradeElementwise, PReluSlopeOfUnknownLength) {
  const auto y = run_old(6, "g (float[] x, float[n] s) => (float[] y) { y = PRelu(x, s) }",
                         {{"x", Tensor::of<float>({-1, -1, -1, -1}, {1, 2, 2})},
                          {"s", Tensor::of<float>({2, 3}, {2})}});
  expect_floats(y[0], {-2, -2, -3, -3});
  const auto shared = run_old(
      6, "g (float[] x, float[n] s) => (float[] y) { y = PRelu(x, s) }",
      {{"x", Tensor::of<float>({-1, -1, -1, -1}, {1, 2, 2})}, {"s", Tensor::of<float>({2}, {1})}});
  expect_floats(shared[0], {-2, -2, -2, -2});
}

// Of the two texts of such versions the newer one counts: the largest number, not NaN.
TEST(UpgradeCast, InfinityOfTypesWithoutOne) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::of<float>({infinity, -infinity, 1}, {3});
  for (const int opset : {19, 21, 23, 24}) {
    for (const auto& [type, name, largest] :
         {std::tuple{18, "float8e4m3fnuz", 240.0}, std::tuple{20, "float8e5m2fnuz", 57344.0}}) {
      SCOPED_TRACE(fmt::format("{} of opset {}", name, opset));
      const auto run_both = [&, type = type, name = name](const char* attributes) {
        return run_old(
            opset,
            fmt::format("g (float[3] x, {1}[1] like) => (float[3] y, float[3] z) {{ a = Cast<to = "
                        "{0}{2}>(x) b = CastLike<saturate = {3}>(x, like) y = Cast<to = 1>(a) z = "
                        "Cast<to = 1>(b) }}",
                        type, name, attributes, attributes[0] == 0 ? 1 : 0),
            {{"x", x}, {"like", Tensor(*element_type_named(name), {1})}});
      };
      for (const Tensor& y : run_both("")) expect_floats(y, {largest, -largest, 1});
      for (const Tensor& y : run_both(", saturate = 0")) {
        EXPECT_TRUE(std::isnan(values<float>(y)[0]) && std::isnan(values<float>(y)[1]));
        EXPECT_EQ(values<float>(y)[2], 1);
      }
    }
  }
}

// --- reductions

TEST(UpgradeReduce, AxesWereAnAttribute) {
  struct Case {
    const char* op;
    std::vector<double> columns, all;
  };
  const double e = std::exp(1.0);
  const Case cases[] = {
      {"ReduceL1", {4, 6}, {10}},
      {"ReduceL2", {std::sqrt(10.0), std::sqrt(20.0)}, {std::sqrt(30.0)}},
      {"ReduceLogSum", {std::log(4.0), std::log(6.0)}, {std::log(10.0)}},
      {"ReduceLogSumExp",
       {std::log(e + e * e * e), std::log(e * e + e * e * e * e)},
       {std::log(e + e * e + e * e * e + e * e * e * e)}},
      {"ReduceMax", {3, 4}, {4}},
      {"ReduceMean", {2, 3}, {2.5}},
      {"ReduceMin", {1, 2}, {1}},
      {"ReduceProd", {3, 8}, {24}},
      {"ReduceSum", {4, 6}, {10}},
      {"ReduceSumSquare", {10, 20}, {30}},
  };
  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {2, 2});
  for (const auto& [op, columns, all] : cases) {
    for (const int opset : {1, 11, 12, 13, 17}) {
      if (std::string(op) == "ReduceSum" && opset >= 13) continue;
      SCOPED_TRACE(fmt::format("{} of opset {}", op, opset));
      const auto run = [&, op = op](const char* attributes) {
        return run_old(
            opset,
            fmt::format("g (float[2, 2] x) => (float[] y) {{ y = {}{}(x) }}", op, attributes),
            {{"x", x}})[0];
      };
      const Tensor kept = run("<axes = [0]>");
      EXPECT_EQ(kept.shape(), (Shape{1, 2}));
      expect_floats(kept, columns);
      EXPECT_EQ(run("<axes = [0], keepdims = 0>").shape(), (Shape{2}));
      expect_floats(run(""), all);
      expect_floats(run("<axes: ints = []>"), all);
    }
  }
}

TEST(UpgradeReduce, LogarithmsOfIntegersBeforeVersion28) {
  const Tensor x = Tensor::of<int32_t>({10, 10, 3, 3}, {2, 2});
  for (const int opset : {11, 13}) {
    const auto sum = run_old(
        opset,
        "g (int32[2, 2] x) => (int32[2] y) { y = ReduceLogSum<axes = [1], keepdims = 0>(x) }",
        {{"x", x}});
    EXPECT_EQ(values<int32_t>(sum[0]), (std::vector<int32_t>{2, 1}));  // 2.99…, 1.79…
  }
  const auto y = run_old(18,
                         "g (int64[2] x) => (int64[1] y) { a = Constant<value_ints = [0]>() y = "
                         "ReduceLogSumExp(x, a) }",
                         {{"x", Tensor::of<int64_t>({3, 3}, {2})}});
  EXPECT_EQ(values<int64_t>(y[0]), (std::vector<int64_t>{3}));  // 3 + ln 2
}

TEST(UpgradeReduce, PositionsDeclaredInt32StayInt32) {
  const Tensor x = Tensor::of<float>({3, 1, 2}, {1, 3});
  for (const char* op : {"ArgMax", "ArgMin"}) {
    const auto y = run_old(
        1, fmt::format("g (float[1, 3] x) => (int32[1, 1] y) {{ y = {}<axis = 1>(x) }}", op),
        {{"x", x}});
    EXPECT_EQ(values<int32_t>(y[0]), (std::vector<int32_t>{op[3] == 'M' && op[4] == 'a' ? 0 : 1}));
  }
  const auto top =
      run_old(1, "g (float[1, 3] x) => (float[1, 2] v, int32[1, 2] i) { v, i = TopK<k = 2>(x) }",
              {{"x", x}});
  expect_floats(top[0], {3, 2});
  EXPECT_EQ(values<int32_t>(top[1]), (std::vector<int32_t>{0, 2}));
}

TEST(UpgradeReduce, TopKHeldItsCount) {
  const auto top = run_old(
      9, "g (float[1, 3] x) => (float[1, 1] v, int64[1, 1] i) { v, i = TopK<k = 1, axis = 1>(x) }",
      {{"x", Tensor::of<float>({3, 5, 2}, {1, 3})}});
  expect_floats(top[0], {5});
  EXPECT_EQ(values<int64_t>(top[1]), (std::vector<int64_t>{1}));
}

// --- softmax

TEST(UpgradeSoftmax, OneRowFromTheAxisOn) {
  const Tensor x = Tensor::of<float>({1, 3, 2, 0}, {1, 2, 2});
  const double sum = std::exp(1.0) + std::exp(3.0) + std::exp(2.0) + 1;
  std::vector<double> soft, logs;
  for (const double v : {1.0, 3.0, 2.0, 0.0}) {
    soft.push_back(std::exp(v) / sum);
    logs.push_back(v - std::log(sum));
  }
  for (const char* type : {"float[1, 2, 2]", "float[]"}) {
    const auto run = [&](const char* op) {
      return run_old(11, fmt::format("g ({0} x) => ({0} y) {{ y = {1}(x) }}", type, op),
                     {{"x", x}})[0];
    };
    expect_floats(run("Softmax"), soft);
    expect_floats(run("LogSoftmax"), logs);
    expect_floats(run("Hardmax"), {0, 1, 0, 0});
  }
}

TEST(UpgradeSoftmax, EmptyDimensionsStayEmpty) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    const auto y =
        run_old(11, fmt::format("g (float[a, b, c] x) => (float[a, b, c] y) {{ y = {}(x) }}", op),
                {{"x", Tensor(ElementType::float32, {2, 0, 3})}});
    EXPECT_EQ(y[0].shape(), (Shape{2, 0, 3})) << op;
  }
}

TEST(UpgradeErf, IntegersAreTruncated) {
  const auto y = run_old(9, "g (int32[3] x) => (int32[3] y) { y = Erf(x) }",
                         {{"x", Tensor::of<int32_t>({0, 7, -7}, {3})}});
  EXPECT_EQ(values<int32_t>(y[0]), (std::vector<int32_t>{0, 1, -1}));
}

TEST(UpgradeGemm, BroadcastAttributeIsDropped) {
  const auto y = run_old(6,
                         "g (float[1, 2] a, float[2, 2] b, float[2] c) => (float[1, 2] y) { y = "
                         "Gemm<broadcast = 1>(a, b, c) }",
                         {{"a", Tensor::of<float>({1, 2}, {1, 2})},
                          {"b", Tensor::of<float>({1, 2, 3, 4}, {2, 2})},
                          {"c", Tensor::of<float>({100, 200}, {2})}});
  expect_floats(y[0], {107, 210});
}

}  // namespace
}  // namespace sardonyx::upgrade_test
