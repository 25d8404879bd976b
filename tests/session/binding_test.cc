// New sizes bind a plan: they evaluate expressions and infer nothing again.
#include <gtest/gtest.h>

#include <cstring>

#include "infer/evaluations.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

Model model_of(const std::string& body) {
  return Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + body);
}

Tensor filled(Shape shape) {
  Tensor tensor(ElementType::float32, std::move(shape));
  float next = -0.5f;
  for (float& v : tensor.mutable_elements<float>()) v = next = next > 0.5f ? -0.5f : next + 0.1f;
  return tensor;
}

// The formulas that a run evaluates.
int64_t evaluated_by(const Session& session, const std::vector<NamedValue>& inputs) {
  const int64_t before = infer::formulas_evaluated();
  session.run(inputs);
  return infer::formulas_evaluated() - before;
}

// A layer of a decoder with a cache, its heads split by sizes that it reads off its inputs.
const std::string decoder = R"(
g (float[batch, seq, 16] x, float[batch, 4, past, 4] old) => (float[batch, seq, 16] y, float[batch, 4, total, 4] cache) {
  shape = Shape(x)
  zero = Constant<value = int64[1] {0}>()
  one = Constant<value = int64[1] {1}>()
  two = Constant<value = int64[1] {2}>()
  heads = Constant<value = int64[2] {4, 4}>()
  hidden = Constant<value = int64[1] {16}>()
  minus = Constant<value = int64[1] {-1}>()
  b = Slice(shape, zero, one)
  s = Slice(shape, one, two)
  split = Concat<axis = 0>(b, minus, heads)
  joined = Concat<axis = 0>(b, s, hidden)
  parts = Reshape(x, split)
  q = Transpose<perm = [0, 2, 1, 3]>(parts)
  cache = Concat<axis = 2>(old, q)
  keys = Transpose<perm = [0, 1, 3, 2]>(cache)
  scores = MatMul(q, keys)
  weights = Softmax<axis = -1>(scores)
  mixed = MatMul(weights, cache)
  back = Transpose<perm = [0, 2, 1, 3]>(mixed)
  flat = Reshape(back, joined)
  sum = Add(x, flat)
  scale = ConstantOfShape<value = float[1] {1.0}>(hidden)
  y = LayerNormalization(sum, scale)
})";

TEST(Binding, NewSizesInferNothing) {
  for (const bool plain : {false, true}) {
    const Session session(model_of(decoder), {.reference = plain});
    for (const int64_t seq : {3, 1, 7, 7, 2}) {
      const int64_t evaluated =
          evaluated_by(session, {{"x", filled({2, seq, 16})}, {"old", filled({2, 4, 2 * seq, 4})}});
      // Without a plan each node is inferred when it runs: the counter counts.
      EXPECT_EQ(evaluated > 0, plain) << seq << ": " << evaluated;
    }
  }
}

TEST(Binding, NewSizesOfPicturesInferNothing) {
  const Session session(model_of(R"(
  g (float[batch, 3, height, width] image) => (float[batch, c, h, w] y, float[batch, 16] pooled) {
    kernel_shape = Constant<value = int64[4] {8, 3, 3, 3}>()
    kernel = ConstantOfShape<value = float[1] {0.1}>(kernel_shape)
    half = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(image, kernel)
    small = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(half)
    sizes = Shape(half)
    large = Resize(small, , , sizes)
    y = Concat<axis = 1>(half, large)
    means = GlobalAveragePool(y)
    pooled = Flatten(means)
  })"));
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{16, 16}, {33, 20}, {8, 9}}) {
    EXPECT_EQ(evaluated_by(session, {{"image", filled({2, 3, height, width})}}), 0)
        << height << " x " << width;
  }
}

// The body's sizes are those of its own plan, made once: neither more trips nor other sizes infer.
TEST(Binding, BodiesOfLoopsAreNotPlannedAgain) {
  const Session session(model_of(R"(
  g (int64 trips, float[N, 4] x, bool upper) => (float[N, 4] last, float[T, N] seen, float[A, B] z) {
    keep = Constant<value = bool {1}>()
    last, seen = Loop(trips, keep, x) <body = b (int64 i, bool go, float[N, 4] state) => (
        bool go_on, float[N, 4] next, float[N] row) {
      go_on = Identity(go)
      t = Tanh(state)
      next = Add(t, x)
      axis = Constant<value = int64[1] {1}>()
      row = ReduceSum<keepdims = 0>(next, axis)
    }>
    z = If(upper) <
      then_branch = t () => (float[N, 4] a) { a = Relu(last) },
      else_branch = e () => (float[4, N] c) { c = Transpose(last) }>
  })"));
  for (const auto& [trips, rows] : {std::pair<int64_t, int64_t>{2, 3}, {40, 3}, {5, 9}, {0, 1}}) {
    for (const bool upper : {true, false}) {
      EXPECT_EQ(evaluated_by(session, {{"trips", Tensor::scalar<int64_t>(trips)},
                                       {"x", filled({rows, 4})},
                                       {"upper", Tensor::scalar<bool>(upper)}}),
                0)
          << trips << " " << rows << " " << upper;
    }
  }
}

// What the data decide is inferred once more where they have: for those steps, and no others.
TEST(Binding, OnlyStepsThatDataDecideInfer) {
  const Session session(model_of(R"(
  g (float[N, 4] x, int64[2] asked) => (int64[2, K] places, float[A, B] z, float[N, 4] y) {
    a = Relu(x)
    y = Exp(a)
    places = NonZero(a)
    z = Reshape(y, asked)
  })"));
  for (const int64_t rows : {2, 6, 4}) {
    const int64_t evaluated = evaluated_by(
        session, {{"x", filled({rows, 4})}, {"asked", Tensor::of<int64_t>({4, rows}, {2})}});
    EXPECT_GE(evaluated, 1) << rows;
    EXPECT_LE(evaluated, 2) << rows;
  }
}

// A step's state is made of the sizes at hand alone: nothing of a binding before may be left in it.
TEST(Binding, NothingIsWrittenToWhatBecameEmpty) {
  const Session session(model_of(R"(
    g (float[batch, 2, 9, 8] x) => (float[batch, 2, 9, 16] y) { y = Concat<axis = 3>(x, x) })"),
                        {.threads = 1});
  std::vector<float> behind(8 * 2 * 9 * 16, 7.0f);
  for (const int64_t batch : {8, 0}) {
    const Shape shape{batch, 2, 9, 16};
    const Value inputs[] = {filled({batch, 2, 9, 8})};
    Value outputs[] = {Tensor::view(ElementType::float32, shape, behind.data(),
                                    sizeof(float) * static_cast<size_t>(288 * batch))};
    session.run(inputs, outputs);
    if (batch == 8) {
      EXPECT_EQ(behind.back(), filled({8, 2, 9, 8}).elements<float>().back());
      std::fill(behind.begin(), behind.end(), 7.0f);
    }
  }
  EXPECT_EQ(behind, std::vector<float>(behind.size(), 7.0f));
}

// A caller's tensors may lie anywhere, alone or inside of other values: what runs on them reads
// aligned copies.
TEST(Binding, InputsMayLieAnywhere) {
  const std::vector<std::pair<const char*, bool>> models = {
      {"g (double[n] x) => (double[n] y) { y = Add(x, x) }", false},
      {R"(g (seq(double[n]) x) => (double[n] y) {
            zero = Constant<value = int64 {0}>()
            item = SequenceAt(x, zero)
            y = Add(item, item)
          })",
       true}};
  std::vector<std::byte> bytes(8 * 100 + 2);
  const double numbers[] = {0.5, -3, 7};
  for (size_t i = 0; i < 100; ++i) std::memcpy(&bytes[2 + 8 * i], &numbers[i % 3], 8);
  const Tensor tensor = Tensor::view(ElementType::float64, {100}, &bytes[2], 800);
  for (const auto& [text, in_sequence] : models) {
    for (const bool plain : {false, true}) {
      const Session session(model_of(text), {.reference = plain});
      const Value x = in_sequence ? Value(Sequence{{tensor}}) : Value(tensor);
      const Tensor y = session.run({{"x", x}}).at(0).tensor();
      for (size_t i = 0; i < 100; ++i) ASSERT_EQ(y.elements<double>()[i], 2 * numbers[i % 3]);
    }
  }
}

}  // namespace
}  // namespace sardonyx
