// Rewritten regions (channels last, spelled-out attention) against the same graph run as it stands.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

// A constant of that shape with values between -1 and 1.
std::string weights(const std::string& name, const std::string& shape, int count) {
  return fmt::format(
      "  {0}_end = Constant<value = float {{{2}.0}}>()\n"
      "  {0}_zero = Constant<value = float {{0.0}}>()\n"
      "  {0}_one = Constant<value = float {{1.0}}>()\n"
      "  {0}_range = Range({0}_zero, {0}_end, {0}_one)\n"
      "  {0}_sin = Sin({0}_range)\n"
      "  {0}_shape = Constant<value_ints = [{1}]>()\n"
      "  {0} = Reshape({0}_sin, {0}_shape)\n",
      name, shape, count);
}

Model model_of(const std::string& signature, const std::string& body) {
  return Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\ng " + signature + " {\n" +
                          body + "}\n");
}

Tensor waves(const Shape& shape) {
  Tensor x(ElementType::float32, shape);
  float phase = 0;
  for (float& v : x.mutable_elements<float>()) v = std::cos(phase += 0.37f);
  return x;
}

int64_t count(const Session& session, std::string_view kernel) {
  int64_t found = 0;
  for (const StepDescription& step : session.steps()) {
    found += step.kernel.find(kernel) != std::string::npos;
  }
  return found;
}

void expect_near(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  const auto x = a.elements<float>(), y = b.elements<float>();
  double square = 0;
  for (const float v : y) square += double{v} * v;
  const double rms = std::sqrt(square / static_cast<double>(std::max<size_t>(y.size(), 1)));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-4 * rms + 1e-6) << "at " << i;
}

// Runs both ways; returns the rewritten session for a look at its steps.
Session compare(const Model& model, const Shape& shape) {
  SessionOptions plain;
  plain.fuse = false;
  const Session as_it_stands(model, plain);
  Session rewritten(model);
  const Tensor x = waves(shape);
  const auto expected = as_it_stands.run({{"x", x}}), found = rewritten.run({{"x", x}});
  EXPECT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) expect_near(found[i].tensor(), expected[i].tensor());
  EXPECT_EQ(count(as_it_stands, "_nhwc"), 0);
  return rewritten;
}

TEST(Nhwc, GoesThroughAWholeRegion) {
  const Session session =
      compare(model_of("(float[N, 3, H, W] x) => (float[N, C, A, B] y, float[N, 24] pooled)",
                       weights("w0", "16,3,3,3", 432) + weights("w1", "16,1,3,3", 144) +
                           weights("w2", "8,16,1,1", 128) + weights("w3", "24,24,3,3", 5184) +
                           weights("s", "24", 24) + weights("slope", "24,1,1", 24) + R"(
  a = Conv<pads = [1,1,1,1]>(x, w0)
  b = Relu(a)
  c = Conv<group = 16, pads = [1,1,1,1]>(b, w1)
  d = Conv(c, w2)
  e = MaxPool<kernel_shape = [3,3], pads = [1,1,1,1]>(c)
  f = Concat<axis = 1>(d, e)
  v = Abs(s)
  g = BatchNormalization(f, s, s, s, v)
  h = Relu(g)
  i = Conv<pads = [1,1,1,1]>(h, w3)
  j = Add(i, f)
  k = PRelu(j, slope)
  l = LRN<size = 5>(k)
  m = AveragePool<kernel_shape = [2,2], strides = [2,2]>(l)
  y = Softmax<axis = 1>(m)
  n = GlobalAveragePool(m)
  pooled = Flatten(n)
)"),
              {2, 3, 12, 10});
  EXPECT_GE(count(session, "_nhwc"), 6);
  EXPECT_EQ(count(session, "transpose.strided"), 1);  // the output y; the input comes as planes
}

TEST(Nhwc, RenamesAxes) {
  compare(model_of("(float[1, 4, 8, 9] x) => (float[1, A, B, C] y, float[1, D] z)",
                   weights("w", "16,4,3,3", 576) + R"(
  a = Conv(x, w)
  b, c = Split<axis = 1, num_outputs = 2>(a)
  starts = Constant<value_ints = [1, 0]>()
  ends = Constant<value_ints = [7, 5]>()
  axes = Constant<value_ints = [1, -2]>()
  d = Slice(b, starts, ends, axes)
  pads = Constant<value_ints = [0, 1, 2, 0, 0, 1, 0, 1]>()
  e = Pad(d, pads)
  spatial = Constant<value_ints = [2, 3]>()
  f = ReduceMean(e, spatial)
  g = Sigmoid(f)
  y = Mul(e, g)
  z = ReduceMax<keepdims = 0>(c, spatial)
)"),
          {1, 4, 8, 9});
}

TEST(Nhwc, KeepsShuffledChannelsInside) {
  const Session session =
      compare(model_of("(float[2, 6, 5, 5] x) => (float[2, 12, 5, 5] y)",
                       weights("w", "12,2,1,1", 24) + weights("v", "12,12,1,1", 144) + R"(
  a = Conv<group = 3>(x, w)
  groups = Constant<value_ints = [2, 3, 4, 5, 5]>()
  b = Reshape(a, groups)
  c = Transpose<perm = [0, 2, 1, 3, 4]>(b)
  whole = Constant<value_ints = [2, 12, 5, 5]>()
  d = Reshape(c, whole)
  y = Conv(d, v)
)"),
              {2, 6, 5, 5});
  EXPECT_EQ(count(session, "transpose.strided"), 3);
}

TEST(Nhwc, TakesTransposesOfTheModelItself) {
  const Session session = compare(model_of("(float[1, 7, 6, 5] x) => (float[1, A, B, 16] y)",
                                           weights("w", "16,5,3,3", 720) + R"(
  a = Transpose<perm = [0, 3, 1, 2]>(x)
  b = Conv(a, w)
  y = Transpose<perm = [0, 2, 3, 1]>(b)
)"),
                                  {1, 7, 6, 5});
  EXPECT_EQ(count(session, "transpose"), 0);
}

TEST(Nhwc, LinesAndVolumes) {
  compare(model_of("(float[2, 8, L] x) => (float[2, 12, M] y)", weights("w", "12,4,3", 144) + R"(
  a = Conv<group = 2, strides = [2], pads = [1, 1]>(x, w)
  b = MaxPool<kernel_shape = [2]>(a)
  y = Tanh(b)
)"),
          {2, 8, 21});
  compare(model_of("(float[1, 2, 4, 5, 6] x) => (float[1, 8, A, B, C] y)",
                   weights("w", "8,2,2,3,1", 96) + R"(
  a = Conv(x, w)
  b = AveragePool<kernel_shape = [2, 2, 2], count_include_pad = 1, pads = [1,0,0,0,1,1]>(a)
  y = Relu(b)
)"),
          {1, 2, 4, 5, 6});
}

TEST(FusedElementwise, RunTogether) {
  const Session session = compare(model_of("(float[2, N] x) => (float[2, N] y, float[2, N] z)",
                                           R"(
  half = Constant<value = float {0.5}>()
  three = Constant<value = float[1, 1] {3.0}>()
  a = Mul(x, half)
  b = Tanh(a)
  c = Sub(three, b)
  d = Exp(c)
  e = Sigmoid(x)
  f = Div(d, e)
  y = Elu<alpha = 0.7>(f)
  g = Sin(y)
  h = Pow(g, three)
  z = Add(h, h)
)"),
                                  {2, 3001});
  EXPECT_EQ(count(session, "fused_elementwise."), 2);
  EXPECT_EQ(session.steps().size(), 3u);  // the value that is used twice is one of its own
}

TEST(FusedElementwise, TakeRowsAndBounds) {
  const Session session =
      compare(model_of("(float[A, B, 100] x) => (float[A, B, 100] y)",
                       weights("r", "100", 100) + weights("s", "1,100", 100) + R"(
  low = Constant<value = float {-0.4}>()
  a = Mul(x, r)
  b = Sub(s, a)
  c = Clip(b, low)
  d = Min(c, x)
  y = Max(r, d)
)"),
              {3, 20, 100});
  EXPECT_EQ(session.steps().size(), 1u);
}

// A row that other steps make has as many elements as a row, not as the region.
TEST(FusedElementwise, LeaveComputedRowsToThemselves) {
  const Session session = compare(model_of("(float[A, B, 100] x) => (float[A, B, 100] y)", R"(
  both = Constant<value_ints = [0, 1]>()
  largest = ReduceMax<keepdims = 0>(x, both)
  t = Tanh(largest)
  r = Exp(t)
  a = Sub(x, r)
  y = Abs(a)
)"),
                                  {3, 20, 100});
  EXPECT_EQ(count(session, "fused_elementwise.2"), 2);
}

// Nobody knows the rank of what Reshape gives, nor, then, of the sum.
TEST(FusedElementwise, LeaveOpenRanksAlone) {
  const Session session(Model::from_text(R"(
<ir_version: 10, opset_import: ["" : 21]>
g (float[64] row, float[128] x, int64[K] shape) => (float y) {
  turned = Reshape(x, shape)
  sum = Add(row, turned)
  y = Relu(sum)
})"));
  const Tensor row = waves({64}), x = waves({128});
  const auto y =
      session.run({{"row", row}, {"x", x}, {"shape", Tensor::of<int64_t>({2, 64}, {2})}});
  ASSERT_EQ(y[0].tensor().shape(), (Shape{2, 64}));
  for (size_t i = 0; i < 128; ++i) {
    EXPECT_EQ(y[0].tensor().elements<float>()[i],
              std::max(row.elements<float>()[i % 64] + x.elements<float>()[i], 0.0f));
  }
}

TEST(FusedElementwise, LongChainsAreCut) {
  std::string body = "  half = Constant<value = float {0.9}>()\n  v0 = Mul(x, half)\n";
  for (int i = 1; i < 200; ++i) body += fmt::format("  v{} = Cos(v{})\n", i, i - 1);
  const Session session =
      compare(model_of("(float[5] x) => (float[5] y)", body + "  y = Neg(v199)\n"), {5});
  EXPECT_LE(session.steps().size(), 5u);
}

TEST(FusedElementwise, StandInsideChannelsLast) {
  const Session session =
      compare(model_of("(float[1, 3, 6, 6] x) => (float[1, A, B, C] y)",
                       weights("w", "16,3,3,3", 432) + weights("v", "8,16,1,1", 128) +
                           R"(
  a = Conv(x, w)
  b = Sin(a)
  c = Cos(b)
  d = Mul(c, a)
  y = Conv(d, v)
)"),
              {1, 3, 6, 6});
  EXPECT_EQ(count(session, "fused_elementwise."), 1);
  EXPECT_EQ(count(session, "transpose.strided"), 1);  // behind them; the input comes as planes
}

std::string attention_body(std::string_view middle, std::string_view end) {
  return weights("wq", "16,16", 256) + weights("wk", "16,16", 256) + weights("wv", "16,16", 256) +
         R"(
  heads = Constant<value_ints = [0, 0, 4, 4]>()
  q0 = MatMul(x, wq)
  q1 = Reshape(q0, heads)
  q = Transpose<perm = [0, 2, 1, 3]>(q1)
  k0 = MatMul(x, wk)
  k1 = Reshape(k0, heads)
  v0 = MatMul(x, wv)
  v1 = Reshape(v0, heads)
  v = Transpose<perm = [0, 2, 1, 3]>(v1)
)" + std::string(middle) +
         R"(
  p = Softmax<axis = -1>(s)
  o = MatMul(p, v)
)" + std::string(end);
}

TEST(SpelledOutAttention, ReadsAndWritesTransposedHeads) {
  const Session session =
      compare(model_of("(float[B, S, 16] x) => (float[B, S, 16] y)", attention_body(R"(
  kt = Transpose<perm = [0, 2, 3, 1]>(k1)
  raw = MatMul(q, kt)
  root = Constant<value = float {2.0}>()
  s = Div(raw, root)
)",
                                                                                    R"(
  t = Transpose<perm = [0, 2, 1, 3]>(o)
  flat = Constant<value_ints = [0, 0, 16]>()
  y = Reshape(t, flat)
)")),
              {2, 7, 16});
  EXPECT_EQ(count(session, "attention"), 1);
  EXPECT_EQ(count(session, "transpose"), 0);
}

TEST(SpelledOutAttention, WithAMaskAndKeysByHead) {
  const Session session = compare(model_of("(float[2, 5, 16] x) => (float[2, 4, 5, 4] o)",
                                           weights("m", "1,1,5,5", 25) + attention_body(R"(
  k = Transpose<perm = [0, 2, 1, 3]>(k1)
  kt = Transpose<perm = [0, 1, 3, 2]>(k)
  raw = MatMul(q, kt)
  factor = Constant<value = float {0.3}>()
  scaled = Mul(factor, raw)
  s = Add(m, scaled)
)",
                                                                                        "")),
                                  {2, 5, 16});
  EXPECT_EQ(count(session, "attention"), 1);
}

TEST(SpelledOutAttention, NotWhereScoresAreUsedElsewhere) {
  const Session session =
      compare(model_of("(float[2, 5, 16] x) => (float[2, 4, 5, 4] o, float[2, 4, 5, 5] p)",
                       attention_body(R"(
  kt = Transpose<perm = [0, 2, 3, 1]>(k1)
  s = MatMul(q, kt)
)",
                                      "")),
              {2, 5, 16});
  EXPECT_EQ(count(session, "attention"), 0);
}

}  // namespace
}  // namespace sardonyx
