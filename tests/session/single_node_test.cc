// Nodes that random tests and fuzzing found refused, wrong or fatal: planned and plain.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "sardonyx/infer.h"
#include "sardonyx/session.h"
#include "wire/text_parse.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

Model model_of(int opset, const std::string& graph) {
  return Model::from_text("<ir_version: 10, opset_import: [\"\" : " + std::to_string(opset) +
                          ", \"ai.onnx.ml\" : 3]>\n" + graph);
}

Tensor floats(std::vector<float> values, Shape shape) {
  return Tensor::of<float>(values, std::move(shape));
}

Tensor integers(std::vector<int64_t> values, Shape shape) {
  return Tensor::of<int64_t>(values, std::move(shape));
}

std::vector<float> floats_of(const Value& value) {
  const auto elements = value.tensor().elements<float>();
  return {elements.begin(), elements.end()};
}

// The first output, which the planned and the plain run give alike.
Value run(int opset, const std::string& graph, const std::vector<NamedValue>& inputs) {
  const Model model = model_of(opset, graph);
  const Value planned = Session(model).run(inputs)[0];
  const Value plain = Session(model, {.reference = true}).run(inputs)[0];
  EXPECT_EQ(planned.tensor().shape(), plain.tensor().shape());
  return planned;
}

// Both runs end with an Error, whose kind is not a defect of our own.
void expect_refused(int opset, const std::string& graph, const std::vector<NamedValue>& inputs,
                    const std::string& mentions) {
  for (const bool plain : {false, true}) {
    SCOPED_TRACE(plain ? "plain" : "planned");
    try {
      (void)Session(model_of(opset, graph), {.reference = plain}).run(inputs);
      ADD_FAILURE() << "it ran";
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
      EXPECT_NE(std::string(error.what()).find(mentions), std::string::npos) << error.what();
    }
  }
}

// Overflowed, or took as many steps.
TEST(SingleNode, HeadsWithoutElementsMayBeAnyNumber) {
  for (const int64_t length : {1, 3}) {
    const Value y = run(23,
                        "g (float[B, L, 0] x) => (float[B, L, 0] y) "
                        "{ y = Attention<q_num_heads = 2305843009213693952, "
                        "kv_num_heads = 2305843009213693952>(x, x, x) }",
                        {{"x", floats({}, {2, length, 0})}});
    EXPECT_EQ(y.tensor().shape(), (Shape{2, length, 0}));
  }
}

// --- Bounds of scalars, which change no shape

TEST(SingleNode, SliceOfAScalarChecksBoundsThatOnlyTheRunKnows) {
  const std::string graph =
      "g (float[] x, int64[n] s, int64[m] e) => (float[] y) { y = Slice(x, s, e) }";
  expect_refused(13, graph,
                 {{"x", floats({1}, {})}, {"s", integers({0}, {1})}, {"e", integers({1}, {1})}},
                 "starts");
  const std::string stepped =
      "g (float[0] x, int64[1] s, int64[1] e, int64[1] a, int64[1] st) => (y)"
      " { y = Slice(x, s, e, a, st) }";
  const Tensor one = integers({1}, {1}), zero = integers({0}, {1});
  expect_refused(
      13, stepped,
      {{"x", floats({}, {0})}, {"s", zero}, {"e", one}, {"a", zero}, {"st", integers({0}, {1})}},
      "steps must not be 0");
}

TEST(SingleNode, PadOfAScalarChecksPadsThatOnlyTheRunKnows) {
  const std::string graph =
      "g (float[] x, int64[n] p, int64[m] a) => (float[] y) { y = Pad(x, p, , a) }";
  expect_refused(
      18, graph,
      {{"x", floats({1}, {})}, {"p", integers({1, 1}, {2})}, {"a", integers({700'000'000}, {1})}},
      "");
  expect_refused(18, "g (float[] x, int64[n] p) => (float[] y) { y = Pad(x, p) }",
                 {{"x", floats({1}, {})}, {"p", integers({1, 1}, {2})}}, "pads must have 0");
}

TEST(SingleNode, ReshapeToAScalarNeedsOneElement) {
  const std::string graph = "g (float[n] x, int64[0] s) => (float[] y) { y = Reshape(x, s) }";
  for (const int64_t n : {0, 5}) {
    expect_refused(21, graph, {{"x", Tensor(ElementType::float32, {n})}, {"s", integers({}, {0})}},
                   "must hold");
  }
  EXPECT_EQ(run(21, graph, {{"x", floats({7}, {1})}, {"s", integers({}, {0})}})
                .tensor()
                .elements<float>()[0],
            7);
}

TEST(SingleNode, ValuesThatDecideNoShapeAreNoDefect) {
  // Axes of rank 5, more of them than inference looks at.
  const std::string graph =
      "g (float[2,3] x, int64[a,b,c,d,e] axes) => (y) { y = ReduceL2(x, axes) }";
  expect_refused(18, graph,
                 {{"x", Tensor(ElementType::float32, {2, 3})},
                  {"axes", Tensor(ElementType::int64, {2, 3, 4, 20, 33})}},
                 "");
}

// --- Inputs that are one number

TEST(SingleNode, PositionsAreOneElement) {
  Sequence items;
  items.items = {floats({1}, {1}), floats({2}, {1})};
  for (const char* op : {"SequenceAt(s, p)", "SequenceErase(s, p)", "SequenceInsert(s, x, p)"}) {
    SCOPED_TRACE(op);
    const std::string graph =
        std::string("g (seq(float) s, int64[n] p, float[1] x) => (y) { y = ") + op + " }";
    expect_refused(11, graph, {{"s", items}, {"p", integers({}, {0})}, {"x", floats({3}, {1})}},
                   "must hold one element");
  }
}

TEST(SingleNode, AxisOfCumSumIsOneElement) {
  const std::string graph = "g (float[3] x, int64[n] a) => (y) { y = CumSum(x, a) }";
  expect_refused(14, graph, {{"x", floats({1, 2, 3}, {3})}, {"a", integers({}, {0})}},
                 "must hold one element");
  EXPECT_EQ(floats_of(run(14, graph, {{"x", floats({1, 2, 3}, {3})}, {"a", integers({0}, {1})}})),
            (std::vector<float>{1, 3, 6}));
}

TEST(SingleNode, ThresholdsOfSuppressionAreOneElement) {
  const std::string graph =
      "g (float[1,1,4] b, float[1,1,1] s, int64[n] m, float[k] t) => (y)"
      " { y = NonMaxSuppression(b, s, m, t) }";
  expect_refused(11, graph,
                 {{"b", floats({0, 0, 1, 1}, {1, 1, 4})},
                  {"s", floats({1}, {1, 1, 1})},
                  {"m", integers({}, {0})},
                  {"t", floats({}, {0})}},
                 "must hold one element");
}

// --- Absent inputs

TEST(SingleNode, VariadicInputsAreNotLeftOut) {
  expect_refused(25, "g (float[2] x) => (y) { y = Sum(x, , x) }", {{"x", floats({1, 2}, {2})}}, "");
  const std::string scan =
      "g (float[2] x) => (y, z) { y, z = Scan<num_scan_inputs = 2,"
      " body = b (p, q) => (r, s) { r = Identity(p) s = Identity(p) }>(x, \"\") }";
  expect_refused(9, scan, {{"x", floats({1, 2}, {2})}}, "");
}

TEST(SingleNode, GroupsBeyondAllChannelsAreRefused) {
  for (const std::string op : {"Conv", "ConvTranspose"}) {
    const std::string node = "{ y = " + op + "<group = 9223372036854775807>(x, w) }";
    const NamedValue x{"x", floats({1}, {})};
    expect_refused(11, "g (float[] x) => (y) <float[2, 2, 1] w = {1, 1, 1, 1}>" + node, {x}, op);
    expect_refused(11, "g (float[] x, float[a, b, c] w) => (y)" + node,
                   {x, {"w", floats({1, 1, 1, 1}, {2, 2, 1})}}, op);
  }
}

TEST(SingleNode, UpgradesOfNodesWithTooFewInputsAreRefused) {
  const char* const nodes[] = {"OneHot(x)", "PRelu(x)", "Upsample(x)", "BatchNormalization(x)",
                               "Scatter(x)"};
  const int opsets[] = {9, 6, 9, 8, 9};
  for (size_t i = 0; i < std::size(nodes); ++i) {
    SCOPED_TRACE(nodes[i]);
    const std::string graph = std::string("g (float[2,2] x) => (y) { y = ") + nodes[i] + " }";
    expect_refused(opsets[i], graph, {{"x", floats({1, 2, 3, 4}, {2, 2})}}, "");
    // Inference lowers without the checker before it.
    EXPECT_THROW((void)infer_types(model_of(opsets[i], graph)), Error);
  }
}

TEST(SingleNode, AnAxisBeyondAllRanksIsRefusedAtOnce) {
  expect_refused(
      1,
      "g (float[2] x, float[2] s) => (y, z) { y, z = SimplifiedLayerNormalization<axis = "
      "-2359397994630469242>(x, s) }",
      {{"x", floats({1, 2}, {2})}, {"s", floats({1, 2}, {2})}}, "axis");
}

TEST(SingleNode, MoreStringsThanMemoryHoldsAreRefused) {
  expect_refused(
      8, "g (string[1] x, int64[1] s) => (y) { y = Expand(x, s) }",
      {{"x", Tensor::of<std::string>({"a"}, {1})}, {"s", integers({2873458867690720655}, {1})}},
      "");
}

// --- Digits

TEST(SingleNode, TextOfAPowerOfTwoInHalfPrecisionReadsBackAsIt) {
  // Below a power of two numbers lie half as far apart as above it.
  for (const char* type : {"10", "16"}) {
    SCOPED_TRACE(type);
    const std::string to = std::string("Cast<to = ") + type + ">";
    const std::string graph = "g (float[n] x) => (string[n] s, float[n] y) { h = " + to +
                              "(x) s = Cast<to = 8>(h) b = " + to + "(s) y = Cast<to = 1>(b) }";
    std::vector<float> powers;
    for (int i = -14; i < 16; ++i) powers.push_back(std::ldexp(1.0f, i));
    if (std::string(type) == "16") powers.push_back(std::ldexp(1.0f, 30));
    const Shape shape{static_cast<int64_t>(powers.size())};
    for (const bool plain : {false, true}) {
      const auto outputs =
          Session(model_of(21, graph), {.reference = plain}).run({{"x", floats(powers, shape)}});
      EXPECT_EQ(floats_of(outputs[1]), powers);
    }
  }
}

TEST(SingleNode, TextOfANumberOutOfRangeIsZeroOrInfinite) {
  const std::string zeros(400, '0');
  const std::vector<std::string> texts = {"0." + zeros + "1e5", "0" + zeros + "1" + zeros,
                                          "1" + zeros + "e-300", "-1e-400", "0.01e60"};
  const Value y = run(21, "g (string[n] x) => (float[n] y) { y = Cast<to = 1>(x) }",
                      {{"x", Tensor::of<std::string>(texts, {5})}});
  EXPECT_EQ(floats_of(y), (std::vector<float>{0, INFINITY, INFINITY, 0, INFINITY}));
}

TEST(SingleNode, ScalerTakesTheOffsetAwayBeforeItRounds) {
  const std::string graph =
      " x) => (y) { y = ai.onnx.ml.Scaler<offset = [1.7e9], scale = [0.5]>(x) }";
  EXPECT_EQ(floats_of(run(21, "g (double[1,2]" + graph,
                          {{"x", Tensor::of<double>({1.7e9 + 0.25, 1.7e9 + 3}, {1, 2})}})),
            (std::vector<float>{0.125f, 1.5f}));
  std::vector<int64_t> counting;
  std::vector<float> halves;
  for (int i = 0; i < 150; ++i) {
    counting.push_back(1700000000 + i);
    halves.push_back(static_cast<float>(i) / 2);
  }
  EXPECT_EQ(floats_of(run(21, "g (int64[n,1]" + graph, {{"x", integers(counting, {150, 1})}})),
            halves);
}

TEST(SingleNode, NormalizerTakesDoublesWhoseSquaresAreNone) {
  const std::string graph =
      "g (double[3,2] x) => (y) { y = ai.onnx.ml.Normalizer<norm = \"L2\">(x) }";
  const std::vector<double> x{3e200, -4e200, 3e-200, 4e-200, 0.0, -0.0};
  const auto y = floats_of(run(21, graph, {{"x", Tensor::of<double>(x, {3, 2})}}));
  const std::vector<float> expected{0.6f, -0.8f, 0.6f, 0.8f, 0, 0};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_FLOAT_EQ(y[i], expected[i]) << i;
}

TEST(SingleNode, CastMapKeepsTheDigitsOfWholeNumbers) {
  Map map;
  map.keys = integers({0}, {1});
  map.values.emplace_back(Tensor::scalar<std::string>("9007199254740993"));
  const Value y = run(21,
                      "g (map(int64, string) x) => (int64[1,n] y)"
                      " { y = ai.onnx.ml.CastMap<cast_to = \"TO_INT64\">(x) }",
                      {{"x", std::move(map)}});
  EXPECT_EQ(y.tensor().elements<int64_t>()[0], 9007199254740993);
}

// --- Sizes that only the run knows

TEST(SingleNode, ListsOfFeaturesFitTheWidthThatTheRunBrings) {
  const std::string scaler =
      "g (float[n,k] x) => (y) { y = ai.onnx.ml.Scaler<offset = [1.0, 2.0], scale = [3.0, 4.0]>(x) "
      "}";
  EXPECT_EQ(floats_of(run(21, scaler, {{"x", floats({2, 4}, {1, 2})}})),
            (std::vector<float>{3, 8}));
  expect_refused(21, scaler, {{"x", floats({1, 2, 3}, {1, 3})}}, "one per feature");
  const std::string imputer =
      "g (float[n] x) => (y) { y = ai.onnx.ml.Imputer<imputed_value_floats = [1.0, 2.0],"
      " replaced_value_float = 0.0>(x) }";
  expect_refused(21, imputer, {{"x", floats({0, 0, 0}, {3})}}, "one per feature");
}

TEST(SingleNode, AScaleMayTurnOutToBeOneForAll) {
  const std::string graph =
      "g (float[3] x, float[n] s, uint8[n] z) => (y) { y = QuantizeLinear<axis = 0>(x, s, z) }";
  const Value y = run(13, graph,
                      {{"x", floats({1, 2, 3}, {3})},
                       {"s", floats({0.5f}, {1})},
                       {"z", Tensor::of<uint8_t>({1}, {1})}});
  const auto bytes = y.tensor().elements<uint8_t>();
  EXPECT_EQ(std::vector<int>(bytes.begin(), bytes.end()), (std::vector<int>{3, 5, 7}));
}

TEST(SingleNode, UpdatesFitIndicesWhoseDepthOnlyTheRunKnows) {
  const std::string graph =
      "g (float[4] x, int64[a,b] i, float[c] u) => (y) { y = ScatterND(x, i, u) }";
  const Tensor x = floats({1, 2, 3, 4}, {4});
  EXPECT_EQ(floats_of(run(16, graph,
                          {{"x", x}, {"i", integers({2, 0}, {2, 1})}, {"u", floats({7, 8}, {2})}})),
            (std::vector<float>{8, 2, 7, 4}));
  expect_refused(16, graph, {{"x", x}, {"i", integers({2, 0, 1}, {3, 1})}, {"u", floats({7}, {1})}},
                 "updates must have shape");
  expect_refused(16, graph, {{"x", x}, {"i", integers({0, 0}, {1, 2})}, {"u", floats({7}, {1})}},
                 "rank");
}

TEST(SingleNode, NumbersForEachDimensionAreCountedForScalarsToo) {
  const Tensor x = floats({1}, {}), one = integers({1}, {1});
  expect_refused(13, "g (float[] x, int64[n] r) => (y) { y = Tile(x, r) }", {{"x", x}, {"r", one}},
                 "0 elements");
  expect_refused(18, "g (float[] x, int64[n] r) => (y) { y = CenterCropPad(x, r) }",
                 {{"x", x}, {"r", one}}, "0 elements");
  expect_refused(19, "g (float[] x, int64[n] r) => (y) { y = Resize(x, , , r) }",
                 {{"x", x}, {"r", one}}, "0 elements");
  expect_refused(19, "g (float[] x, float[n] r) => (y) { y = Resize(x, , r) }",
                 {{"x", x}, {"r", floats({1}, {1})}}, "0 elements");
}

// --- Meaning

TEST(SingleNode, NonZeroOfAScalarHasNoRows) {
  const std::string graph = "g (float[] x) => (y) { y = NonZero(x) }";
  EXPECT_EQ(run(13, graph, {{"x", floats({2}, {})}}).tensor().shape(), (Shape{0, 1}));
  EXPECT_EQ(run(13, graph, {{"x", floats({0}, {})}}).tensor().shape(), (Shape{0, 0}));
}

TEST(SingleNode, DropoutOfNothingGivesNothing) {
  for (const bool training : {false, true})
    EXPECT_EQ(run(22,
                  "g (float[n] x, bool t) => (float[n] y, bool[n] mask) <float r = {0.5}>"
                  "{ y, mask = Dropout (x, r, t) }",
                  {{"x", floats({}, {0})}, {"t", Tensor::scalar<bool>(training)}})
                  .tensor()
                  .shape(),
              (Shape{0}));
}

TEST(SingleNode, ThresholdedReluOfNanIsZero) {
  for (const char* type : {"float", "double"}) {
    const std::string graph = std::string("g (float[2] x) => (float[2] y) { w = Cast<to = ") +
                              (std::string(type) == "float" ? "1" : "11") +
                              ">(x) v = ThresholdedRelu<alpha = 1.0>(w) y = Cast<to = 1>(v) }";
    EXPECT_EQ(floats_of(run(22, graph, {{"x", floats({NAN, 2}, {2})}})),
              (std::vector<float>{0, 2}));
  }
}

// total = (2 - 1) * 3 + 1 - 6 = -2: one row less on both sides of a pool, none of a convolution.
TEST(SingleNode, SamePaddingCropsPoolsWhereWindowsLeaveGaps) {
  const std::string pool =
      "g (float[1,1,6] x) => (y) { y = MaxPool<kernel_shape = [1], strides = [3],"
      " auto_pad = \"SAME_UPPER\">(x) }";
  const Tensor x = floats({0, 1, 2, 3, 4, 5}, {1, 1, 6});
  EXPECT_EQ(floats_of(run(12, pool, {{"x", x}})), (std::vector<float>{1, 4}));
  const std::string conv =
      "g (float[1,1,6] x, float[1,1,1] w) => (y) { y = Conv<strides = [3],"
      " auto_pad = \"SAME_UPPER\">(x, w) }";
  EXPECT_EQ(floats_of(run(11, conv, {{"x", x}, {"w", floats({2}, {1, 1, 1})}})),
            (std::vector<float>{0, 6}));
}

// What a caller brings is not what the map's type says.
TEST(SingleNode, ValuesOfMapsAreOneElementEach) {
  const auto map_of = [](std::vector<int64_t> keys, std::vector<Tensor> values) {
    Map map;
    const auto count = static_cast<int64_t>(keys.size());
    map.keys = integers(std::move(keys), {count});
    for (Tensor& value : values) map.values.emplace_back(std::move(value));
    return map;
  };
  const std::string floats_in = "g (map(int64, float) x) => (y) { y = ai.onnx.ml.",
                    text_in = "g (map(int64, string) x) => (y) { y = ai.onnx.ml.";
  for (const char* node : {"DictVectorizer<int64_vocabulary = [5, 7]>(x) }", "CastMap(x) }"}) {
    SCOPED_TRACE(node);
    const Tensor none = floats({}, {0}), one = floats({1}, {});
    expect_refused(21, floats_in + node, {{"x", map_of({5, 7}, {one, none})}}, "one element");
    expect_refused(21, floats_in + node, {{"x", map_of({5, 7}, {one})}}, "2 keys and 1 values");
  }
  expect_refused(21, text_in + "CastMap<cast_to = \"TO_STRING\">(x) }",
                 {{"x", map_of({5}, {Tensor(ElementType::string, {0})})}}, "one element");
}

// Operators that a session makes trust their attributes: no file may name them.
TEST(SingleNode, ModelsCannotNameInternalOperators) {
  const std::string program =
      "program = [2, 2, 0, 900, 0, 0, 2, 0], extents = [0], params = [1.0, 2.0]";
  const Model model = Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 22, \"sardonyx\" : 1]>\n"
      "g (float[4] x) => (float[4] y) { y = sardonyx.FusedElementwise<" +
      program + ">(x) }");
  for (const bool plain : {false, true}) {
    try {
      Session(model, {.reference = plain}).run({{"x", floats({1, 2, 3, 4}, {4})}});
      FAIL() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_NE(std::string(error.what()).find("kept for what a session makes"), std::string::npos);
    }
  }
}

// A block longer than the columns of a small matrix: it is not filled up.
TEST(SingleNode, BlocksLongerThanTheMatrix) {
  const std::string graph =
      "g (float[1,3] x) => (float[1,2] y) <int8[3,2] q = {1, 2, 3, 4, 5, 6}, float[1,2] s = {0.5, "
      "2}>"
      " { w = DequantizeLinear<axis = 0, block_size = 1048576>(q, s) y = MatMul(x, w) }";
  EXPECT_EQ(floats_of(run(21, graph, {{"x", floats({1, 1, 1}, {1, 3})}})),
            (std::vector<float>{4.5f, 24}));
}

TEST(SingleNode, ReshapeToMoreElementsThanCanBeCounted) {
  expect_refused(14, "g (float[a,b] x, int64[n] s) => (y) { y = Reshape(x, s) }",
                 {{"x", floats({1, 2}, {1, 2})}, {"s", integers({1LL << 40, 1LL << 40, 3}, {3})}},
                 "");
}

// --- Elements that are pairs of floats, and text

template <class T>
Tensor complex_of(ElementType type, std::vector<T> parts, Shape shape) {
  Tensor tensor(type, std::move(shape));
  std::memcpy(tensor.mutable_data(), parts.data(), parts.size() * sizeof(T));
  return tensor;
}

template <class T>
std::vector<T> parts_of(const Value& value) {
  std::vector<T> parts(value.tensor().byte_size() / sizeof(T));
  std::memcpy(parts.data(), value.tensor().data(), value.tensor().byte_size());
  return parts;
}

// Elements of eight bytes may lie at a multiple of four in the file.
TEST(SingleNode, ComplexConstantsAreMovedFromWhereverTheyLie) {
  for (const std::string name : {"x", "xx", "xxx", "xxxx"}) {
    const std::string graph = "g (bool[2] c) => (complex64[2] y) <complex64[2] " + name +
                              " = {1, 2, 3, 4}> { y = Where(c, " + name + ", " + name + ") }";
    const ir::Model parsed =
        wire::parse_model("<ir_version: 10, opset_import: [\"\" : 16]>\n" + graph);
    for (size_t shift = 0; shift < 8; ++shift) {
      // The file's bytes from every offset: one of them puts the constant between two words.
      const std::string bytes = std::string(shift, ' ') + wire::write_model(parsed);
      const Model model(bytes.data() + shift, bytes.size() - shift, {},
                        std::make_shared<int>(0));  // borrowed, where it lies
      const Tensor c = Tensor::of<bool>({true, false}, {2});
      for (const bool plain : {false, true}) {
        const Value y = Session(model, {.reference = plain}).run({{"c", c}})[0];
        EXPECT_EQ(parts_of<float>(y), (std::vector<float>{1, 2, 3, 4}));
      }
    }
  }
}

// Two blocks of two elements overlap in the middle one of three.
template <class T>
void add_complex_blocks(ElementType type, const std::string& name) {
  const std::string graph = "g (" + name + "[1,2,2] x) => (" + name +
                            "[1,1,3] y) <int64[1] image = {3}, int64[1] block = {2}>"
                            " { y = Col2Im(x, image, block) }";
  const Value y =
      run(18, graph, {{"x", complex_of<T>(type, {1, 10, 2, 20, 3, 30, 4, 40}, {1, 2, 2})}});
  EXPECT_EQ(parts_of<T>(y), (std::vector<T>{1, 10, 5, 50, 4, 40}));
}

TEST(SingleNode, Col2ImAddsComplexNumbers) {
  add_complex_blocks<float>(ElementType::complex64, "complex64");
  add_complex_blocks<double>(ElementType::complex128, "complex128");
}

// Halfway between two elements, at the second, and outside.
template <class T>
void sample_complex(ElementType type, const std::string& name) {
  const std::string graph = "g (" + name + "[1,1,2] x) => (" + name +
                            "[1,1,3] y) <float[1,3,1] at = {0, 1, 9}>"
                            " { y = GridSample<mode = \"linear\", align_corners = 1>(x, at) }";
  const Value y = run(22, graph, {{"x", complex_of<T>(type, {1, -4, 3, 8}, {1, 1, 2})}});
  EXPECT_EQ(parts_of<T>(y), (std::vector<T>{2, 2, 3, 8, 0, 0}));
}

TEST(SingleNode, GridSampleOfComplexNumbers) {
  sample_complex<float>(ElementType::complex64, "complex64");
  sample_complex<double>(ElementType::complex128, "complex128");
}

// Both parts go between their neighbours; what lies outside is the real number given.
template <class T>
void resize_complex(ElementType type, const std::string& name) {
  const auto resized = [&](const std::string& options, const std::string& roi) {
    const std::string graph = "g (" + name + "[2] x) => (" + name + "[3] y) <float[2] roi = {" +
                              roi + "}, int64[1] sizes = {3}> { y = Resize<" + options +
                              ">(x, roi, , sizes) }";
    return parts_of<T>(run(19, graph, {{"x", complex_of<T>(type, {1, -4, 3, 8}, {2})}}));
  };
  EXPECT_EQ(
      resized("mode = \"linear\", coordinate_transformation_mode = \"align_corners\"", "0, 1"),
      (std::vector<T>{1, -4, 2, 2, 3, 8}));
  for (const std::string mode : {"nearest", "linear"})
    EXPECT_EQ(resized("coordinate_transformation_mode = \"tf_crop_and_resize\", mode = \"" + mode +
                          "\", extrapolation_value = 7.0",
                      "0, 2"),
              (std::vector<T>{1, -4, 3, 8, 7, 0}));
}

TEST(SingleNode, ResizeOfComplexNumbers) {
  resize_complex<float>(ElementType::complex64, "complex64");
  resize_complex<double>(ElementType::complex128, "complex128");
}

TEST(SingleNode, ResizeOfACropByScalesReachesItsEnd) {
  for (const std::string mode : {"linear", "cubic"}) {
    const std::string graph =
        "g (float[5] x) => (y) <float[2] roi = {0.5, 1}, float[1] scales = {2}> {"
        " y = Resize<mode = \"" +
        mode + "\", coordinate_transformation_mode = \"tf_crop_and_resize\">(x, roi, scales) }";
    const std::vector<float> y = floats_of(run(19, graph, {{"x", floats({0, 1, 2, 3, 4}, {5})}}));
    ASSERT_EQ(y.size(), 5u);
    EXPECT_EQ(y.front(), 2);
    EXPECT_EQ(y[2], 3);
    EXPECT_EQ(y.back(), 4);
  }
}

// That is less than the input, and nothing is sampled down.
TEST(SingleNode, ResizeOfACropByAScaleOfOneIsNotBlurred) {
  const auto cropped = [](const std::string& antialias) {
    const std::string graph =
        "g (float[8] x) => (y) <float[2] roi = {0.5, 1}, float[1] scales = {1}> {"
        " y = Resize<mode = \"linear\", antialias = " +
        antialias + ", coordinate_transformation_mode = \"tf_crop_and_resize\">(x, roi, scales) }";
    return floats_of(run(19, graph, {{"x", floats({0, 1, 0, 1, 0, 1, 0, 1}, {8})}}));
  };
  EXPECT_EQ(cropped("1"), cropped("0"));
}

TEST(SingleNode, OldPReluOfAScalarTakesASlopeOfOneElement) {
  const std::string graph =
      "g (float[] x) => (float[] y) <float[1] slope = {0.5}> { y = PRelu(x, slope) }";
  EXPECT_EQ(floats_of(run(6, graph, {{"x", floats({-4}, {})}})), (std::vector<float>{-2}));
}

TEST(SingleNode, GridSampleTakesTheNearestString) {
  const auto graph = [](const std::string& options) {
    return "g (string[1,1,2] x) => (string[1,1,3] y) <float[1,3,1] at = {-0.9, 0.8, 9}>"
           " { y = GridSample<align_corners = 1, " +
           options + ">(x, at) }";
  };
  const Tensor x = Tensor::of<std::string>({"left", "right"}, {1, 1, 2});
  const auto sampled = [&](const std::string& padding) {
    const Value y =
        run(22, graph("mode = \"nearest\", padding_mode = \"" + padding + "\""), {{"x", x}});
    const auto texts = y.tensor().elements<std::string>();
    return std::vector<std::string>(texts.begin(), texts.end());
  };
  EXPECT_EQ(sampled("zeros"), (std::vector<std::string>{"left", "right", ""}));
  EXPECT_EQ(sampled("border"), (std::vector<std::string>{"left", "right", "right"}));
  expect_refused(22, graph("mode = \"linear\""), {{"x", x}}, "strings have no sums");
}

// Under the sanitizers: the empty tensor has no address.
TEST(SingleNode, ResizeOfAScalarTakesNoScales) {
  const std::string graph = "g (float[] x, float[n] s) => (float[] y) { y = Resize(x, \"\", s) }";
  const std::vector<NamedValue> inputs = {{"x", floats({3}, {})},
                                          {"s", Tensor::of<float>({}, {0})}};
  EXPECT_EQ(floats_of(run(18, graph, inputs)), (std::vector<float>{3}));
  expect_refused(18, "g (float[] x) => (float[] y) { y = Resize(x) }", {{"x", floats({3}, {})}},
                 "needs one of the inputs");
}

// Under the sanitizers: constants of more than 64 KiB stay where they lie in the file.
TEST(SingleNode, OldResizeOfFarTooManyScalesIsRefused) {
  Tensor scales(ElementType::float32, {20001});
  std::ranges::fill(scales.mutable_elements<float>(), 2.0f);
  for (const size_t shift : {0, 1, 2, 3}) {
    ir::Model model = wire::parse_model(
        "<ir_version: 10, opset_import: [\"\" : 10]>\n"
        "g (float[1, 2] x) => (float[] y) { y = Resize(x, s) }");
    model.producer_name = std::string(shift + 1, 'p');
    model.graph->initializers.push_back(ir::to_proto(scales, "s"));
    const std::string bytes = wire::write_model(model);
    EXPECT_THROW((void)Session(Model(bytes.data(), bytes.size())), Error);
  }
}

ErrorCode code_of(const std::string& graph, const std::vector<NamedValue>& inputs, bool plain) {
  try {
    RunOptions limits;
    limits.memory_limit = 1 << 20;
    (void)Session(model_of(20, graph), {.reference = plain}).run(inputs, limits);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

TEST(SingleNode, StringsCountAsMemory) {
  const std::vector<NamedValue> text = {{"x", Tensor::of<std::string>({"text"}, {1})}};
  for (const bool plain : {false, true}) {
    SCOPED_TRACE(plain ? "plain" : "planned");
    EXPECT_EQ(
        code_of("g (string[1] x) => (string[] y) <int64[1] s = {100000}> { y = Expand(x, s) }",
                text, plain),
        ErrorCode::out_of_memory);
    // Constant, and so large that nothing may make it beforehand.
    EXPECT_EQ(code_of("g () => (string[] y) <string[1] x = {\"a\"}, int64[1] s = {1000000000000}> "
                      "{ y = Expand(x, s) }",
                      {}, plain),
              ErrorCode::out_of_memory);
    EXPECT_EQ(code_of("g (string[1] x) => (string[] y) <int64 n = {60}, bool go = {1}> { y = "
                      "Loop(n, go, x) <body = b (int64 i, bool c, string[1] t) => (bool o, "
                      "string[1] u) { o = Identity(c) u = StringConcat(t, t) }> }",
                      text, plain),
              ErrorCode::out_of_memory);
  }
}

}  // namespace
}  // namespace sardonyx
