// Normalisation, pooling, resampling and recurrent layers of old opsets, and control flow. Expected
// values are worked out by hand from the old definitions.
#include <fmt/format.h>

#include "upgrade_support.h"

namespace sardonyx::upgrade_test {
namespace {

Tensor floats(std::initializer_list<float> elements, Shape shape) {
  return Tensor::of<float>(elements, std::move(shape));
}

// --- Pad

// The attribute's text: all begins first. Its example has a begin and an end for each axis.
TEST(UpgradePad, BeginsOfAllAxesComeFirst) {
  for (const bool first : {true, false}) {
    const auto y =
        run_old(first ? 1 : 2,
                fmt::format("g (float[1, 2] x) => (float[a, b] y) {{ y = Pad<{} = [1, 0, "
                            "0, 2], value = 9.0>(x) }}",
                            first ? "paddings" : "pads"),
                {{"x", floats({1, 2}, {1, 2})}});
    EXPECT_EQ(y[0].shape(), (Shape{2, 4}));
    expect_floats(y[0], {9, 9, 9, 9, 1, 2, 9, 9});
  }
}

// --- BatchNormalization, Dropout

const std::vector<NamedValue>& two_samples() {
  static const std::vector<NamedValue> inputs = {{"x", floats({1, 3}, {2, 1})},
                                                 {"s", floats({1}, {1})},
                                                 {"b", floats({0}, {1})},
                                                 {"m", floats({0}, {1})},
                                                 {"v", floats({1}, {1})}};
  return inputs;
}

std::string batch_normalization(const char* outputs, const char* declared, const char* attributes) {
  return fmt::format(
      "g (float[2, 1] x, float[1] s, float[1] b, float[1] m, float[1] v) => ({}) {{ {} = "
      "BatchNormalization<epsilon = 0.0{}>(x, s, b, m, v) }}",
      declared, outputs, attributes);
}

TEST(UpgradeBatchNormalization, TrainsWhereIsTestIsAbsent) {
  const auto run = [](int opset, const char* attributes) {
    return run_old(opset, batch_normalization("y", "float[2, 1] y", attributes), two_samples())[0];
  };
  expect_floats(run(6, ""), {-1, 1});
  expect_floats(run(6, ", is_test = 0"), {-1, 1});
  expect_floats(run(6, ", is_test = 1"), {1, 3});
  expect_floats(run(1, ", consumed_inputs = [0, 0, 0, 1, 1], is_test = 1"), {1, 3});
  expect_floats(run(1, ", is_test = 1"), {1, 3});  // release 1.0 knew no consumed_inputs
  expect_floats(run(7, ""), {1, 3});
}

TEST(UpgradeBatchNormalization, TrainsWhereStatisticsAreOutputs) {
  for (const int opset : {7, 9}) {
    const auto y = run_old(
        opset,
        batch_normalization("y, new_m, new_v", "float[2, 1] y, float[1] new_m, float[1] new_v",
                            ", momentum = 0.5"),
        two_samples());
    expect_floats(y[0], {-1, 1});
    expect_floats(y[1], {1});  // half of 0, half of the mean 2
    expect_floats(y[2], {1});  // the variance is 1, too
  }
}

TEST(UpgradeBatchNormalization, SavedStatistics) {
  const auto y = run_old(9,
                         batch_normalization("y, new_m, new_v, saved_m, saved_v",
                                             "float[2, 1] y, float[1] saved_m", ""),
                         two_samples());
  expect_floats(y[0], {-1, 1});
  expect_floats(y[1], {2});
  const auto message = refusal(9,
                               batch_normalization("y, new_m, new_v, saved_m, saved_v",
                                                   "float[2, 1] y, float[1] saved_v", ""),
                               two_samples());
  EXPECT_NE(message.find("saved_v"), std::string::npos) << message;
}

TEST(UpgradeBatchNormalization, SpatialZeroNormalisesEachElement) {
  const Tensor one_two = floats({1, 2}, {1, 2});
  const auto y = run_old(7,
                         "g (float[2, 1, 2] x, float[1, 2] s, float[1, 2] b, float[1, 2] m, "
                         "float[1, 2] v) => (float[2, 1, 2] y) { y = BatchNormalization<epsilon = "
                         "0.0, spatial = 0>(x, s, b, m, v) }",
                         {{"x", floats({1, 2, 3, 4}, {2, 1, 2})},
                          {"s", one_two},
                          {"b", floats({0, 10}, {1, 2})},
                          {"m", one_two},
                          {"v", floats({1, 4}, {1, 2})}});
  expect_floats(y[0], {0, 10, 2, 12});
}

TEST(UpgradeDropout, TestModeKeepsAll) {
  const std::vector<NamedValue> x = {{"x", counted({3})}};
  const std::string graph = "g (float[3] x) => (float[3] y) { y = Dropout";
  expect_floats(run_old(1, graph + "<is_test = 1, ratio = 0.9>(x) }", x)[0], {0, 1, 2});
  expect_floats(run_old(6, graph + "<is_test = 1, ratio = 0.9>(x) }", x)[0], {0, 1, 2});
  for (const int opset : {7, 10})
    expect_floats(run_old(opset, graph + "<ratio = 0.9>(x) }", x)[0], {0, 1, 2});
}

TEST(UpgradeDropout, MaskHadTheTypeOfTheData) {
  const std::vector<NamedValue> x = {{"x", counted({2})}};
  const auto old =
      run_old(7, "g (float[2] x) => (float[2] y, float[2] m) { y, m = Dropout(x) }", x);
  expect_floats(old[1], {1, 1});
  const auto later =
      run_old(10, "g (float[2] x) => (float[2] y, bool[2] m) { y, m = Dropout(x) }", x);
  EXPECT_EQ(values<bool>(later[1]), (std::vector<bool>{true, true}));
}

TEST(UpgradeDropout, TrainsWhereIsTestIsAbsent) {
  const Model model = model_of(6, "g (float[512] x) => (float[512] y) { y = Dropout(x) }");
  const Tensor y = Session(model).run({{"x", counted({512})}})[0].tensor();
  int kept = 0;
  for (int i = 1; i < 512; ++i) {
    const float v = y.elements<float>()[static_cast<size_t>(i)];
    EXPECT_TRUE(v == 0 || v == 2 * static_cast<float>(i));
    kept += v != 0;
  }
  EXPECT_GT(kept, 180);
  EXPECT_LT(kept, 330);
}

TEST(UpgradeGroupNormalization, ScalesBelongToGroups) {
  const auto y = run_old(18,
                         "g (float[1, 4, 1] x, float[2] s, float[2] b) => (float[1, 4, 1] y) { y = "
                         "GroupNormalization<num_groups = 2, epsilon = 0.0>(x, s, b) }",
                         {{"x", floats({1, 3, 5, 7}, {1, 4, 1})},
                          {"s", floats({1, 2}, {2})},
                          {"b", floats({0, 10}, {2})}});
  expect_floats(y[0], {-1, 1, 8, 12});
}

// --- pools, transposed convolution

TEST(UpgradePool, CeilModeMakesNoWindowBeyondTheInput) {
  const std::vector<NamedValue> x = {{"x", floats({1, 2}, {1, 1, 2})}};
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
    const auto y = run_old(
        std::string(op) == "LpPool"    ? 18
        : std::string(op) == "MaxPool" ? 12
                                       : 19,
        fmt::format("g (float[1, 1, 2] x) => (float[1, 1, n] y) {{ y = {}<kernel_shape = [1], "
                    "strides = [3], ceil_mode = 1>(x) }}",
                    op),
        x);
    expect_floats(y[0], {1});
  }
}

TEST(UpgradePool, PowersWereFloats) {
  const std::vector<NamedValue> x = {{"x", floats({1, 2}, {1, 1, 2})}};
  for (const float p : {2.0f, 3.0f, 2.5f}) {
    const double wanted = std::pow(1 + std::pow(2.0, p), 1.0 / static_cast<double>(p));
    const auto global = run_old(
        1,
        fmt::format("g (float[1, 1, 2] x) => (float[1, 1, 1] y) {{ y = GlobalLpPool<p: float = "
                    "{:.1f}>(x) }}",
                    p),
        x);
    expect_floats(global[0], {wanted});
    const auto open = run_old(
        1,
        fmt::format("g (float[] x) => (float[] y) {{ y = GlobalLpPool<p: float = {:.1f}>(x) }}", p),
        x);
    expect_floats(open[0], {wanted});
    const auto windows = run_old(
        1,
        fmt::format("g (float[1, 1, 2] x) => (float[1, 1, 1] y) {{ y = LpPool<p: float = {:.1f},"
                    " kernel_shape = [2]>(x) }}",
                    p),
        x);
    expect_floats(windows[0], {wanted});
  }
}

// The text of version 1 contradicts itself about the odd unit of padding; versions agree here.
TEST(UpgradeConvTranspose, OddPaddingOfAGivenShape) {
  const auto run = [](int opset) {
    return run_old(opset,
                   "g (float[1, 1, 2] x, float[1, 1, 2] w) => (float[1, 1, 2] y) { y = "
                   "ConvTranspose<output_shape = [2]>(x, w) }",
                   {{"x", floats({1, 2}, {1, 1, 2})}, {"w", floats({1, 1}, {1, 1, 2})}})[0];
  };
  expect_floats(run(11), {3, 2});
  expect_floats(run(1), {3, 2});
}

// --- resampling

TEST(UpgradeUpsample, FactorsWereAttributes) {
  const auto y = run_old(1,
                         "g (float[1, 1, 2, 1] x) => (float[1, 1, 4, 1] y) { y = Upsample<"
                         "height_scale = 2.0, width_scale = 1.0, mode = \"bilinear\">(x) }",
                         {{"x", floats({0, 4}, {1, 1, 2, 1})}});
  expect_floats(y[0], {0, 2, 4, 4});
}

TEST(UpgradeUpsample, TakesThePixelBelow) {
  const std::string graph =
      "g (float[1, 1, 1, 2] x) => (float[1, 1, 1, 3] y) { s = Constant<value = float[4] {1, 1, 1, "
      "1.5}>() y = Upsample(x, s) }";
  for (const int opset : {9, 10})  // version 10 only says that it is deprecated
    expect_floats(run_old(opset, graph, {{"x", floats({1, 2}, {1, 1, 1, 2})}})[0], {1, 1, 2});
}

std::string resize(const char* attributes, const char* scale, int length) {
  return fmt::format(
      "g (float[1, 1, n] x) => (float[1, 1, {}] y) {{ r = Constant<value = float[0] {{}}>() s = "
      "Constant<value = float[3] {{1, 1, {}}}>() y = Resize<{}>(x, r, s) }}",
      length, scale, attributes);
}

TEST(UpgradeResize, HalfPixelsForNearestNeighbours) {
  const auto run = [](const char* nearest) {
    const std::string attributes = fmt::format(
        "coordinate_transformation_mode = \"tf_half_pixel_for_nn\", mode = \"nearest\", "
        "nearest_mode = \"{}\"",
        nearest);
    return run_old(11, resize(attributes.c_str(), "2", 4), {{"x", floats({1, 2}, {1, 1, 2})}})[0];
  };
  // The output's centres lie at 0.25, 0.75, 1.25 and 1.75.
  expect_floats(run("floor"), {1, 1, 2, 2});
  expect_floats(run("round_prefer_floor"), {1, 2, 2, 2});
  expect_floats(run("round_prefer_ceil"), {1, 2, 2, 2});
  expect_floats(run("ceil"), {2, 2, 2, 2});
  const auto linear =
      run_old(11,
              resize("coordinate_transformation_mode = \"tf_half_pixel_for_nn\", mode = \"linear\"",
                     "2", 4),
              {{"x", floats({0, 4}, {1, 1, 2})}});
  expect_floats(linear[0], {1, 3, 4, 4});
}

TEST(UpgradeResize, SizesBesideEmptyScales) {
  const auto y =
      run_old(11,
              "g (float[1, 1, 2] x, int64[3] to) => (float[a, b, c] y) { e = "
              "Constant<value = float[0] {}>() y = Resize<mode = \"nearest\", "
              "coordinate_transformation_mode = \"asymmetric\", nearest_mode = "
              "\"floor\">(x, e, e, to) }",
              {{"x", floats({1, 2}, {1, 1, 2})}, {"to", Tensor::of<int64_t>({1, 1, 4}, {3})}});
  expect_floats(y[0], {1, 1, 2, 2});
}

// Version 10: below where it enlarges, above where it shrinks, axis by axis.
TEST(UpgradeResize, ScalesOfTheCaller) {
  const std::string graph =
      "g (float[1, 1, h, w] x, float[4] s) => (float[a, b, c, d] y) { y = Resize(x, s) }";
  const auto y = run_old(10, graph,
                         {{"x", floats({0, 1, 2, 3, 4, 5, 6, 7}, {1, 1, 4, 2})},
                          {"s", floats({1, 1, 0.6f, 1.5f}, {4})}});
  // Rows at 0 and 1.67: 0 and 2. Columns at 0, 0.67 and 1.33: 0, 0 and 1.
  expect_floats(y[0], {0, 0, 1, 4, 4, 5});
}

TEST(UpgradeRoiAlign, RegionsHadNoHalfPixel) {
  const auto run = [](std::initializer_list<float> region) {
    return run_old(
        10,
        "g (float[1, 1, 2, 2] x, float[1, 4] r, int64[1] i) => (float[1, 1, 1, 1] y) { y "
        "= RoiAlign<sampling_ratio = 1>(x, r, i) }",
        {{"x", counted({1, 1, 2, 2})},
         {"r", floats(region, {1, 4})},
         {"i", Tensor::of<int64_t>({0}, {1})}})[0];
  };
  expect_floats(run({0, 0, 1, 1}), {1.5});
  expect_floats(run({0, 0, 0, 0}), {1.5});  // a region is at least one pixel wide
}

TEST(UpgradeGridSample, WordsOfTheModes) {
  const auto run = [](const char* mode) {
    return run_old(
        16,
        fmt::format("g (float[1, 1, 1, 2] x, float[1, 1, 1, 2] grid) => (float[1, 1, 1, "
                    "1] y) {{ y = GridSample<align_corners = 1{}>(x, grid) }}",
                    mode),
        {{"x", floats({0, 4}, {1, 1, 1, 2})}, {"grid", floats({0, 0}, {1, 1, 1, 2})}})[0];
  };
  expect_floats(run(""), {2});
  expect_floats(run(", mode = \"bilinear\""), {2});
  expect_floats(run(", mode = \"bicubic\""), {2.375});  // 4 * 0.59375
}

// --- recurrent layers

TEST(UpgradeRecurrent, OutputSequenceIsDropped) {
  const auto y = run_old(1,
                         "g (float[2, 1, 1] x, float[1, 1, 1] w, float[1, 1, 1] r) => (float[2, 1, "
                         "1, 1] y, float[1, 1, 1] h) { y, h = RNN<hidden_size = 1, activations = "
                         "[\"relu\"], output_sequence = 1>(x, w, r) }",
                         {{"x", floats({3, 5}, {2, 1, 1})},
                          {"w", floats({1}, {1, 1, 1})},
                          {"r", floats({1}, {1, 1, 1})}});
  expect_floats(y[0], {3, 8});
  expect_floats(y[1], {8});
}

TEST(UpgradeRecurrent, GatesOfZerosHalveTheState) {
  const Tensor x = floats({0}, {1, 1, 1});
  for (const char* direction : {"", ", direction = \"foward\"", ", direction = \"forward\""}) {
    const auto gru = run_old(
        1,
        fmt::format("g (float[1, 1, 1] x, float[1, 3, 1] w, float[1, 1, 1] h0) => (float[1, 1, "
                    "1] h) {{ y, h = GRU<hidden_size = 1, output_sequence = 0{}>(x, w, w, , , "
                    "h0) }}",
                    direction),
        {{"x", x}, {"w", floats({0, 0, 0}, {1, 3, 1})}, {"h0", floats({4}, {1, 1, 1})}});
    expect_floats(gru[0], {2});
  }
  const auto lstm = run_old(
      1,
      "g (float[1, 1, 1] x, float[1, 4, 1] w, float[1, 1, 1] z, float[1, 1, 1] c0) => (float[1, 1, "
      "1] h) { y, h = LSTM<hidden_size = 1, output_sequence = 0>(x, w, w, , , z, c0) }",
      {{"x", x}, {"w", floats({0, 0, 0, 0}, {1, 4, 1})}, {"z", x}, {"c0", floats({2}, {1, 1, 1})}});
  expect_floats(lstm[0], {0.5 * std::tanh(1.0)});
}

// --- Scan

const char* const running_sum =
    "b (float s_in, float x_in) => (float s_out, float y_out) { s_out = Add(s_in, x_in) y_out = "
    "Identity(s_out) }";

std::string batched_scan(const char* lengths, const char* attributes) {
  return fmt::format(
      "g ({}float[2] s, float[2, 2] x) => (float[2] f, float[2, 2] y) {{ f, y = "
      "Scan<num_scan_inputs = 1{}, body = {}>({}, s, x) }}",
      *lengths ? "int64[2] lengths, " : "", attributes, running_sum, *lengths ? "lengths" : "\"\"");
}

TEST(UpgradeScan, EveryOperandHadABatch) {
  const std::vector<NamedValue> inputs = {{"s", floats({10, 20}, {2})},
                                          {"x", floats({1, 2, 3, 4}, {2, 2})}};
  const auto y = run_old(8, batched_scan("", ""), inputs);
  expect_floats(y[0], {13, 27});
  expect_floats(y[1], {11, 13, 23, 27});
  const auto reversed = run_old(8, batched_scan("", ", directions = [1]"), inputs);
  expect_floats(reversed[0], {13, 27});
  expect_floats(reversed[1], {12, 13, 24, 27});
}

TEST(UpgradeScan, SequencesMayEndEarly) {
  const std::vector<NamedValue> inputs = {{"lengths", Tensor::of<int64_t>({1, 2}, {2})},
                                          {"s", floats({10, 20}, {2})},
                                          {"x", floats({1, 2, 3, 4}, {2, 2})}};
  const auto y = run_old(8, batched_scan("lengths", ""), inputs);
  expect_floats(y[0], {11, 27});
  EXPECT_EQ(values<float>(y[1])[0], 11);
  EXPECT_EQ(values<float>(y[1])[3], 27);
}

// A sequence in reverse begins with its own last element, wherever the padding ends: of three
// sequences in a batch, one ends early, one fills it, one is empty.
TEST(UpgradeScan, SequencesThatEndEarlyMayBeReversed) {
  const std::vector<NamedValue> inputs = {{"lengths", Tensor::of<int64_t>({2, 3, 0}, {3})},
                                          {"s", floats({10, 20, 30}, {3})},
                                          {"x", floats({1, 2, 90, 3, 4, 5, 91, 92, 93}, {3, 3})}};
  const auto y = run_old(8,
                         fmt::format("g (int64[3] lengths, float[3] s, float[3, 3] x) => (float[3] "
                                     "f, float[3, 3] y) {{ f, y = Scan<num_scan_inputs = 1, "
                                     "directions = [1], body = {}>(lengths, s, x) }}",
                                     running_sum),
                         inputs);
  expect_floats(y[0], {13, 32, 30});
  const auto sums = values<float>(y[1]);
  EXPECT_EQ(std::vector<float>(sums.begin(), sums.begin() + 2), (std::vector<float>{12, 13}));
  EXPECT_EQ(std::vector<float>(sums.begin() + 3, sums.begin() + 6),
            (std::vector<float>{25, 29, 32}));
}

// Both directions of one input at once, the sequences of different lengths.
TEST(UpgradeScan, DirectionsAreThoseOfEachInput) {
  const auto y = run_old(
      8,
      "g (int64[2] lengths, float[2] s, float[2, 3] x) => (float[2] f, float[2, 3] y) { f, y = "
      "Scan<num_scan_inputs = 2, directions = [0, 1], body = b (float s_in, float a, float b) => "
      "(float s_out, float y_out) { s_out = Add(s_in, a) y_out = Sub(a, b) }>(lengths, s, x, x) }",
      {{"lengths", Tensor::of<int64_t>({2, 3}, {2})},
       {"s", floats({0, 0}, {2})},
       {"x", floats({1, 5, 90, 1, 2, 4}, {2, 3})}});
  expect_floats(y[0], {6, 7});
  const auto differences = values<float>(y[1]);
  EXPECT_EQ(std::vector<float>(differences.begin(), differences.begin() + 2),
            (std::vector<float>{-4, 4}));
  EXPECT_EQ(std::vector<float>(differences.begin() + 3, differences.end()),
            (std::vector<float>{-3, 0, 3}));
  const auto message = refusal(8, batched_scan("lengths", ", directions = [1, 0]"),
                               {{"lengths", Tensor::of<int64_t>({1, 2}, {2})},
                                {"s", floats({10, 20}, {2})},
                                {"x", floats({1, 2, 3, 4}, {2, 2})}});
  EXPECT_NE(message.find("directions must have 1 entries; it has 2"), std::string::npos) << message;
}

// --- transforms

TEST(UpgradeDft, AxisWasAnAttribute) {
  const auto run = [](int opset, const char* attributes) {
    return run_old(
        opset,
        fmt::format("g (float[1, 2, 1, 1] x) => (float[1, 2, 1, 2] y) {{ y = DFT{}(x) }}",
                    attributes),
        {{"x", floats({1, 3}, {1, 2, 1, 1})}})[0];
  };
  expect_floats(run(17, ""), {4, 0, -2, 0});
  expect_floats(run(17, "<axis = 2>"), {1, 0, 3, 0});
}

TEST(UpgradeQuantize, ParametersWereForTheWholeTensor) {
  const auto y = run_old(10,
                         "g (float[2, 2] x, float[1] s, uint8[1] z) => (uint8[2, 2] y) { y = "
                         "QuantizeLinear(x, s, z) }",
                         {{"x", floats({0, 1, 2, 3}, {2, 2})},
                          {"s", floats({0.5f}, {1})},
                          {"z", Tensor::of<uint8_t>({1}, {1})}});
  EXPECT_EQ(values<uint8_t>(y[0]), (std::vector<uint8_t>{1, 3, 5, 7}));
  const auto x = run_old(10,
                         "g (uint8[2, 2] x, float[1] s, uint8[1] z) => (float[2, 2] y) { y = "
                         "DequantizeLinear(x, s, z) }",
                         {{"x", Tensor::of<uint8_t>({1, 3, 5, 7}, {2, 2})},
                          {"s", floats({0.5f}, {1})},
                          {"z", Tensor::of<uint8_t>({1}, {1})}});
  expect_floats(x[0], {0, 1, 2, 3});
}

// The cap before the mask, which the text of version 23 said only from release 1.22 on.
TEST(UpgradeAttention, TheCapComesBeforeTheMask) {
  const std::vector<NamedValue> inputs = {{"q", Tensor::of<float>({1}, {1, 1, 1, 1})},
                                          {"k", Tensor::of<float>({2, 0}, {1, 1, 2, 1})},
                                          {"v", Tensor::of<float>({1, 0}, {1, 1, 2, 1})},
                                          {"m", Tensor::of<float>({-1, 0}, {1, 2})}};
  const auto y = run_old(23,
                         "g (float[1, 1, 1, 1] q, float[1, 1, 2, 1] k, float[1, 1, 2, 1] v, "
                         "float[1, 2] m) => (float[1, 1, 1, 1] y, float[1, 1, 1, 2] s) { y, , , s "
                         "= Attention<scale = 1.0, softcap = 1.0, qk_matmul_output_mode = 2>(q, k, "
                         "v, m) }",
                         inputs);
  const double first = std::exp(std::tanh(2.0) - 1);
  expect_floats(y[0], {first / (first + 1)});
  expect_floats(y[1], {std::tanh(2.0) - 1, 0});
}

}  // namespace
}  // namespace sardonyx::upgrade_test
