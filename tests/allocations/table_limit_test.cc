// What operators make for a size, beside their outputs and scratch memory, counts against a run's
// limit before it has its memory: each operator runs with little, and the peak stays near that.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "allocations/failing_new.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

struct Given {
  const char* name;
  ElementType type;
  Shape shape;
  std::vector<int64_t> values = {};  // empty: 0 1 2 … within what the type holds
};

struct Case {
  const char* name;
  const char* graph;
  std::vector<Given> inputs;
};

Tensor tensor_of(const Given& given) {
  Tensor tensor(given.type, given.shape);
  const int64_t count = tensor.size();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t value = given.values.empty()
                              ? (i * 7919) % 1'000'003
                              : given.values[static_cast<size_t>(i) % given.values.size()];
    switch (given.type) {
      case ElementType::float32:
        static_cast<float*>(tensor.mutable_data())[i] = static_cast<float>(value);
        break;
      case ElementType::int64: static_cast<int64_t*>(tensor.mutable_data())[i] = value; break;
      case ElementType::int32:
        static_cast<int32_t*>(tensor.mutable_data())[i] = static_cast<int32_t>(value);
        break;
      case ElementType::string:
        static_cast<std::string*>(tensor.mutable_data())[i] = "a b c d e f g h i j k l m n o p";
        break;
      default:
        static_cast<uint8_t*>(tensor.mutable_data())[i] = static_cast<uint8_t>(value & 127);
        break;
    }
  }
  return tensor;
}

constexpr auto f32 = ElementType::float32;
constexpr auto i64 = ElementType::int64;
constexpr auto i32 = ElementType::int32;
constexpr auto u8 = ElementType::uint8;
constexpr auto boolean = ElementType::boolean;

const Case cases[] = {
    {"ResizeNearestBytes",
     "(uint8[a,b,c,d] x, int64[4] s) => (y) { y = Resize<mode = \"nearest\">(x, , , s) }",
     {{"x", u8, {1, 1, 1, 2}}, {"s", i64, {4}, {1, 1, 1, 3'000'000}}}},
    {"ResizeNearestFixed",
     "(uint8[1,1,1,2] x) => (y) <int64[4] s = {1, 1, 1, 3000000}> { y = Resize<mode = "
     "\"nearest\">(x, , , s) }",
     {{"x", u8, {1, 1, 1, 2}}}},
    {"ResizeLinear",
     "(uint8[a,b,c,d] x, int64[4] s) => (y) { y = Resize<mode = \"linear\">(x, , , s) }",
     {{"x", u8, {1, 1, 1, 2}}, {"s", i64, {4}, {1, 1, 1, 700'000}}}},
    {"ResizeCubic",
     "(float[a,b,c,d] x, int64[4] s) => (y) { y = Resize<mode = \"cubic\">(x, , , s) }",
     {{"x", f32, {1, 1, 1, 2}}, {"s", i64, {4}, {1, 1, 1, 500'000}}}},
    {"ResizeCubicFixed",
     "(float[1,1,1,2] x) => (y) <int64[4] s = {1, 1, 1, 500000}> { y = Resize<mode = "
     "\"cubic\">(x, , , s) }",
     {{"x", f32, {1, 1, 1, 2}}}},
    {"ResizeAntialias",
     "(float[a,b,c,d] x, int64[4] s) => (y) { y = Resize<mode = \"linear\", antialias = 1>(x, , , "
     "s) }",
     {{"x", f32, {1, 1, 1, 1'000'000}}, {"s", i64, {4}, {1, 1, 1, 3}}}},
    {"Unique",
     "(int32[n] x) => (y, f, i, c) { y, f, i, c = Unique(x) }",
     {{"x", i32, {1'000'000}}}},
    {"UniqueBytes", "(uint8[n] x) => (y) { y = Unique<sorted = 0>(x) }", {{"x", u8, {2'000'000}}}},
    {"UniqueRows", "(uint8[n,m] x) => (y) { y = Unique<axis = 0>(x) }", {{"x", u8, {700'000, 2}}}},
    {"NonMaxSuppression",
     "(float[1,n,4] b, float[1,1,n] s, int64 m) => (y) { y = NonMaxSuppression(b, s, m) }",
     {{"b", f32, {1, 400'000, 4}, {0}}, {"s", f32, {1, 1, 400'000}}, {"m", i64, {}, {10}}}},
    {"NonZero", "(bool[n] x) => (y) { y = NonZero(x) }", {{"x", boolean, {2'000'000}, {1}}}},
    {"Compress",
     "(uint8[n] x, bool[n] c) => (y) { y = Compress(x, c) }",
     {{"x", u8, {3'000'000}}, {"c", boolean, {3'000'000}, {1}}}},
    {"TopK",
     "(float[n] x, int64[1] k) => (v, i) { v, i = TopK(x, k) }",
     {{"x", f32, {1'000'000}}, {"k", i64, {1}, {500'000}}}},
    {"OneHot",
     "(int64[n] x, int64 d, float[2] v) => (y) { y = OneHot(x, d, v) }",
     {{"x", i64, {1}, {0}}, {"d", i64, {}, {4'000'000}}, {"v", f32, {2}, {0, 1}}}},
    {"HannWindow", "(int64 n) => (y) { y = HannWindow(n) }", {{"n", i64, {}, {4'000'000}}}},
    {"BlackmanWindow", "(int64 n) => (y) { y = BlackmanWindow(n) }", {{"n", i64, {}, {4'000'000}}}},
    {"MelWeightMatrix",
     "(int64 a, int64 b, int64 c, float l, float h) => (y) { y = MelWeightMatrix(a, b, c, l, h) }",
     {{"a", i64, {}, {1000}},
      {"b", i64, {}, {20'000}},
      {"c", i64, {}, {16'000}},
      {"l", f32, {}, {0}},
      {"h", f32, {}, {8'000}}}},
    {"DFT",
     "(float[1,n,1] x, int64 l) => (y) { y = DFT(x, l) }",
     {{"x", f32, {1, 4, 1}}, {"l", i64, {}, {300'007}}}},
    {"STFT",
     "(float[1,n,1] x, int64 s, float[m] w) => (y) { y = STFT(x, s, w) }",
     {{"x", f32, {1, 200'000, 1}}, {"s", i64, {}, {199'000}}, {"w", f32, {100'003}, {1}}}},
    {"Range",
     "(int64 a, int64 b, int64 c) => (y) { y = Range(a, b, c) }",
     {{"a", i64, {}, {0}}, {"b", i64, {}, {2'000'000}}, {"c", i64, {}, {1}}}},
    {"ConstantOfShape",
     "(int64[1] s) => (y) { y = ConstantOfShape(s) }",
     {{"s", i64, {1}, {4'000'000}}}},
    {"EyeLike", "(uint8[n,m] x) => (y) { y = EyeLike<dtype = 11>(x) }", {{"x", u8, {2000, 2000}}}},
    {"SplitToSequence",
     "(uint8[n] x) => (y) { s = SplitToSequence(x) y = SequenceLength(s) }",
     {{"x", u8, {100'000}}}},
    {"SplitToSequenceBySize",
     "(uint8[n] x, int64 k) => (y) { s = SplitToSequence(x, k) y = SequenceLength(s) }",
     {{"x", u8, {100'000}}, {"k", i64, {}, {1}}}},
    {"StringSplit",
     "(string[n] x) => (y, c) { y, c = StringSplit(x) }",
     {{"x", ElementType::string, {20'000}}}},
    {"StringNormalizer",
     "(string[n] x) => (y) { y = StringNormalizer<case_change_action = \"UPPER\">(x) }",
     {{"x", ElementType::string, {60'000}}}},
    {"Tile",
     "(uint8[n] x, int64[1] r) => (y) { y = Tile(x, r) }",
     {{"x", u8, {1}}, {"r", i64, {1}, {6'000'000}}}},
    {"Expand",
     "(uint8[1] x, int64[1] r) => (y) { y = Expand(x, r) }",
     {{"x", u8, {1}}, {"r", i64, {1}, {6'000'000}}}},
    {"Pad",
     "(uint8[n] x, int64[2] p) => (y) { y = Pad(x, p) }",
     {{"x", u8, {1}}, {"p", i64, {2}, {0, 6'000'000}}}},
    {"PadReflect",
     "(uint8[n] x, int64[2] p) => (y) { y = Pad<mode = \"reflect\">(x, p) }",
     {{"x", u8, {2'000'000}}, {"p", i64, {2}, {1'000'000, 1'500'000}}}},
    {"AffineGrid",
     "(float[1,2,3] t, int64[4] s) => (y) { y = AffineGrid(t, s) }",
     {{"t", f32, {1, 2, 3}}, {"s", i64, {4}, {1, 1, 1000, 1000}}}},
    {"GridSample",
     "(float[1,1,h,w] x, float[1,a,b,2] g) => (y) { y = GridSample(x, g) }",
     {{"x", f32, {1, 1, 4, 4}}, {"g", f32, {1, 1000, 1000, 2}, {0}}}},
    {"RoiAlign",
     "(float[1,1,h,w] x, float[n,4] r, int64[n] b) => (y) { y = RoiAlign<output_height = 300, "
     "output_width = 300, sampling_ratio = 8>(x, r, b) }",
     {{"x", f32, {1, 1, 9, 9}}, {"r", f32, {2, 4}, {0, 0, 8, 8}}, {"b", i64, {2}, {0}}}},
    {"Col2Im",
     "(float[1,n,m] x, int64[2] s, int64[2] k) => (y) { y = Col2Im(x, s, k) }",
     {{"x", f32, {1, 4, 1'000'000}}, {"s", i64, {2}, {1001, 1001}}, {"k", i64, {2}, {2, 2}}}},
    {"Einsum",
     "(float[n] a, float[m] b, float[k] c) => (y) { y = Einsum<equation = "
     "\"i,j,k->\">(a, b, c) }",
     {{"a", f32, {100}}, {"b", f32, {100}}, {"c", f32, {300}}}},
    {"EinsumPairs",
     "(float[n,m] a, float[m,k] b, float[k,l] c) => (y) { y = Einsum<equation = "
     "\"ij,jk,kl->il\">(a, b, c) }",
     {{"a", f32, {1500, 2}}, {"b", f32, {2, 1500}}, {"c", f32, {1500, 2}}}},
    {"CumSum",
     "(int32[n] x, int64 a) => (y) { y = CumSum(x, a) }",
     {{"x", i32, {2'000'000}, {1}}, {"a", i64, {}, {0}}}},
    {"ReverseSequence",
     "(uint8[n,m] x, int64[m] l) => (y) { y = ReverseSequence(x, l) }",
     {{"x", u8, {2, 2'000'000}}, {"l", i64, {2'000'000}, {1}}}},
    {"GatherND",
     "(uint8[n] x, int64[m,1] i) => (y) { y = GatherND(x, i) }",
     {{"x", u8, {4}}, {"i", i64, {1'000'000, 1}, {1}}}},
    {"ScatterND",
     "(uint8[n] x, int64[m,1] i, uint8[m] u) => (y) { y = ScatterND(x, i, u) }",
     {{"x", u8, {4}}, {"i", i64, {1'000'000, 1}, {1}}, {"u", u8, {1'000'000}}}},
    {"Multinomial",
     "(float[n,m] x) => (y) { y = Multinomial<sample_size = 4, seed = 1.0>(x) }",
     {{"x", f32, {2, 1'000'000}, {0}}}},
    {"Bernoulli",
     "(uint8[n] x) => (y) { f = Cast<to = 1>(x) y = Bernoulli<seed = 1.0>(f) }",
     {{"x", u8, {400'000}, {0}}}},
    {"ArgMax", "(float[n,m] x) => (y) { y = ArgMax<axis = 0>(x) }", {{"x", f32, {2, 1'000'000}}}},
    {"Softmax", "(float[n,m] x) => (y) { y = Softmax<axis = 0>(x) }", {{"x", f32, {2, 500'000}}}},
    {"LpNormalization",
     "(float[n,m] x) => (y) { y = LpNormalization<axis = 0>(x) }",
     {{"x", f32, {2, 500'000}}}},
    {"LRN", "(float[1,c,h,w] x) => (y) { y = LRN<size = 3>(x) }", {{"x", f32, {1, 500'000, 1, 1}}}},
    {"MaxUnpool",
     "(float[1,1,n,m] x, int64[1,1,n,m] i) => (y) { y = MaxUnpool<kernel_shape = [2, "
     "2], strides = [2, 2]>(x, i) }",
     {{"x", f32, {1, 1, 500, 500}}, {"i", i64, {1, 1, 500, 500}, {0}}}},
    {"Det", "(float[n,n] x) => (y) { y = Det(x) }", {{"x", f32, {1200, 1200}}}},
    {"MatMulInteger",
     "(uint8[n,m] a, uint8[m,k] b) => (y) { y = MatMulInteger(a, b) }",
     {{"a", u8, {1, 2000}}, {"b", u8, {2000, 1000}}}},
    {"Conv",
     "(float[1,1,n] x, float[1,1,k] w) => (y) { y = Conv(x, w) }",
     {{"x", f32, {1, 1, 200'000}}, {"w", f32, {1, 1, 100'000}, {0}}}},
    {"TransposedStrings",
     "(string[n,m] x) => (y) { y = Transpose(x) }",
     {{"x", ElementType::string, {300, 300}}}},
    {"Attention",
     "(float[1,1,n,4] q, float[1,1,n,4] k) => (y) { y = Attention(q, k, k) }",
     {{"q", f32, {1, 1, 2000, 4}, {0}}, {"k", f32, {1, 1, 2000, 4}, {0}}}},
    {"Loop",
     "(int64 n, float[1000] x) => (y) { y = Loop(n, , ) <body = b (int64 i, bool c) => (o, "
     "z) { o = Identity(c) z = Relu(x) }> }",
     {{"n", i64, {}, {2000}}, {"x", f32, {1000}}}},
    {"GrowingLoop",
     "(int64 n, float[k] x) => (y) { y = Loop(n, , x) <body = b (int64 i, bool c, "
     "float[m] s) => (o, t) { o = Identity(c) t = Concat<axis = 0>(s, s) }> }",
     {{"n", i64, {}, {24}}, {"x", f32, {1}}}},
};

class Tables : public testing::TestWithParam<Case> {};

TEST_P(Tables, CountBeforeTheyAreMade) {
  const Case& given = GetParam();
  const Model model = Model::from_text(
      std::string("<ir_version: 11, opset_import: [\"\" : 23]>\ng ") + given.graph);
  std::vector<NamedValue> inputs;
  for (const Given& input : given.inputs) inputs.emplace_back(input.name, tensor_of(input));
  for (const bool plain : {false, true}) {
    SessionOptions options;
    options.threads = 1;
    options.reference = plain;
    const Session session(model, options);
    // What is small either way is seen by the larger limit, what is refused early by the smaller.
    for (const int64_t limit : {1 << 20, 4 << 20, 12 << 20}) {
      const long before = failing_new::in_use;
      failing_new::max_in_use = before;
      std::string refusal;
      RunOptions run;
      run.memory_limit = limit;
      try {
        session.run(inputs, run);
      } catch (const Error& error) {
        refusal = error.what();
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << refusal;
        EXPECT_NE(refusal.find("RunOptions::memory_limit"), std::string::npos) << refusal;
        EXPECT_NE(refusal.find(" making '"), std::string::npos) << refusal;
      }
      const long most = failing_new::max_in_use - before;
      EXPECT_LE(most, limit + limit / 4 + (1 << 20)) << (plain ? "plain, " : "") << refusal;
      if (std::getenv("SHOW_LIMITS") != nullptr)
        fmt::print("{:24} {:5} {:9} {:9} {}\n", given.name, plain, limit, most,
                   refusal.substr(0, 90));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Tables, testing::ValuesIn(cases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sardonyx
