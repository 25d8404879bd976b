// SequenceMap, LinearAttention, CausalConvWithState, FlexAttention, the optimisers, ImageDecoder:
// what the standard's own cases leave out.
#include <cmath>

#include "nn_support.h"

namespace sardonyx::ops_test {
namespace {

TEST(SequenceMap, MapsSeveralSequencesAndCapturesOuterValues) {
  Sequence a, b;
  for (int i = 0; i < 3; ++i) {
    a.items.emplace_back(Tensor::scalar<float>(static_cast<float>(i)));
    b.items.emplace_back(Tensor::scalar<float>(10));
  }
  const std::string text =
      "g (seq(float) a, seq(float) b, float k) => (seq(float) y, seq(float) z) {\n"
      " y, z = SequenceMap<body = inner (float p, float q) => (float r, float s)"
      " { r = Add(p, q) s = Mul(p, k) }>(a, b) }";
  const auto out = run(text, {a, b, Tensor::scalar<float>(2)});
  ASSERT_EQ(out[0].sequence().items.size(), 3u);
  EXPECT_EQ(elements<float>(out[0].sequence().items[2])[0], 12);
  EXPECT_EQ(elements<float>(out[1].sequence().items[2])[0], 4);
  b.items.pop_back();
  EXPECT_NE(error_of([&] {
              run(text, {a, b, Tensor::scalar<float>(2)});
            }).find("3 items"),
            std::string::npos);
  EXPECT_EQ(
      run(text, {Sequence(), Sequence(), Tensor::scalar<float>(2)})[0].sequence().items.size(), 0u);
}

// One head, by the recurrence as the standard writes it.
TEST(LinearAttention, IsItsRecurrence) {
  Random random(4);
  const int64_t length = 5, d = 3, v_size = 70;
  const Tensor q = random.floats({1, length, d}), k = random.floats({1, length, d}),
               v = random.floats({1, length, v_size}), past = random.floats({1, 1, d, v_size}),
               decay = random.floats({1, length, d}), beta = random.floats({1, length, 1});
  const auto out = run_node("LinearAttention <q_num_heads = 1, kv_num_heads = 1, scale = 0.5>",
                            {q, k, v, past, decay, beta}, 2);
  std::vector<double> state(static_cast<size_t>(d * v_size));
  for (size_t i = 0; i < state.size(); ++i) state[i] = past.elements<float>()[i];
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t m = 0; m < v_size; ++m) {
      const auto at = [&](int64_t i) -> double& {
        return state[static_cast<size_t>(i * v_size + m)];
      };
      const auto of = [&](const Tensor& x, int64_t i) {
        return static_cast<double>(x.elements<float>()[static_cast<size_t>(t * d + i)]);
      };
      double held = 0, read = 0;
      for (int64_t i = 0; i < d; ++i) {
        at(i) *= std::exp(of(decay, i));
        held += at(i) * of(k, i);
      }
      const double target = v.elements<float>()[static_cast<size_t>(t * v_size + m)];
      const double change = beta.elements<float>()[static_cast<size_t>(t)] * (target - held);
      for (int64_t i = 0; i < d; ++i) {
        at(i) += of(k, i) * change;
        read += of(q, i) * at(i);
      }
      EXPECT_NEAR(out[0].tensor().elements<float>()[static_cast<size_t>(t * v_size + m)], read / 2,
                  1e-3 * (1 + std::abs(read)));
    }
  }
}

TEST(LinearAttention, ErrorsNameTheRule) {
  Random random(5);
  const Tensor x = random.floats({1, 2, 4});
  EXPECT_NE(error_of([&] {
              run_node("LinearAttention <q_num_heads = 2, kv_num_heads = 2>", {x, x, x});
            }).find("decay"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node(
                  "LinearAttention <q_num_heads = 3, kv_num_heads = 2, update_rule = "
                  "\"linear\">",
                  {x, x, x});
            }).find("multiple"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node(
                  "LinearAttention <q_num_heads = 3, kv_num_heads = 3, update_rule = "
                  "\"linear\">",
                  {x, x, x});
            }).find("divisible"),
            std::string::npos);
}

TEST(CausalConv, PiecesAreTheWhole) {
  Random random(6);
  const Tensor x = random.floats({2, 3, 300}), w = random.floats({3, 1, 4}),
               bias = random.floats({3});
  const std::string call = "CausalConvWithState <activation = \"silu\">";
  const auto whole = run_node(call, {x, w, bias}, 2);
  const auto part = [&](int64_t begin, int64_t end) {
    return run_node("Slice", {x, Tensor::of<int64_t>({begin}, {1}), Tensor::of<int64_t>({end}, {1}),
                              Tensor::of<int64_t>({2}, {1})})[0]
        .tensor();
  };
  Tensor state = Tensor(ElementType::float32, {2, 3, 3});
  std::fill_n(state.mutable_elements<float>().begin(), 18, 0.0f);
  int64_t at = 0;
  for (const int64_t size : {1, 2, 290, 7}) {
    const auto some = run_node(call, {part(at, at + size), w, bias, state}, 2);
    for (int64_t row = 0; row < 6; ++row) {
      for (int64_t i = 0; i < size; ++i)
        EXPECT_FLOAT_EQ(
            some[0].tensor().elements<float>()[static_cast<size_t>(row * size + i)],
            whole[0].tensor().elements<float>()[static_cast<size_t>(row * 300 + at + i)]);
    }
    state = some[1].tensor();
    at += size;
  }
  EXPECT_EQ(elements<float>(state), elements<float>(whole[1]));
  EXPECT_NE(error_of([&] {
              run_node("CausalConvWithState", {x, random.floats({3, 2, 4})});
            }).find("depthwise"),
            std::string::npos);
}

TEST(FlexAttention, GraphsThatChangeNothingChangeNothing) {
  Random random(7);
  for (const char* type : {"float", "float16", "double"}) {
    const std::string text = fmt::format(
        "g ({0}[2,4,5,8] q, {0}[2,2,6,8] k, {0}[2,2,6,3] v) => ({0}[2,4,5,3] y, {0}[2,4,5,3] z) "
        "{{\n"
        " y = ai.onnx.preview.FlexAttention(q, k, v)\n"
        " z = ai.onnx.preview.FlexAttention<score_mod = m ({1}[2,4,5,6] s) => ({1}[2,4,5,6] t) "
        "{{ t = Identity(s) }}>(q, k, v) }}",
        type, std::string(type) == "double" ? "double" : "float");
    const auto input = [&](Shape shape) {
      return run_node(fmt::format("Cast <to = {}>", static_cast<int>(*element_type_named(type))),
                      {random.floats(std::move(shape))})[0];
    };
    const auto out = run(text, {input({2, 4, 5, 8}), input({2, 2, 6, 8}), input({2, 2, 6, 3})});
    const auto widened = [&](const Value& value) {
      return run_node("Cast <to = 1>", {value.tensor()})[0];
    };
    const auto y = elements<float>(widened(out[0])), z = elements<float>(widened(out[1]));
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], z[i], 2e-3) << type;
  }
  EXPECT_NE(error_of([] {
              Inferred(
                  "g (float[1,1,2,2] q) => (float[1,1,2,2] y) {\n"
                  " y = ai.onnx.preview.FlexAttention<prob_mod = m (float[1,1,2,2] s) => "
                  "(int64[1,1,2,2] t) { t = Cast<to = 7>(s) }>(q, q, q) }");
            }).find("prob_mod"),
            std::string::npos);
}

TEST(Optimizers, InputsComeInGroups) {
  const std::string text =
      "g (float r, int64 t, float[2] x, float[2] g1, float[2] v) => (float[2] y) {\n"
      " y = ai.onnx.preview.training.Momentum<alpha = 0.5, beta = 1.0, mode = \"standard\", "
      "norm_coefficient = 0.0>(r, t, x, g1";
  const Tensor x = Tensor::of<float>({1, 2}, {2});
  const std::vector<Value> inputs{Tensor::scalar<float>(0.5f), Tensor::scalar<int64_t>(1), x, x, x};
  EXPECT_EQ(elements<float>(run(text + ", v) }", inputs)[0]), (std::vector<float>{0.25f, 0.5f}));
  EXPECT_NE(error_of([&] { run(text + ") }", inputs); }).find("each parameter"), std::string::npos);
}

TEST(ImageDecoder, WhatIsNoImageGivesNoPixels) {
  const Tensor noise = Tensor::of<uint8_t>({1, 2, 3, 4}, {4});
  EXPECT_EQ(run_node("ImageDecoder", {noise})[0].tensor().shape(), (Shape{0, 0, 3}));
  const std::string picture = "P3 2 1 255 1 2 3 4 5 6";
  Tensor bytes(ElementType::uint8, {static_cast<int64_t>(picture.size())});
  std::copy(picture.begin(), picture.end(), bytes.mutable_elements<uint8_t>().begin());
  const auto bgr = run_node("ImageDecoder <pixel_format = \"BGR\">", {bytes})[0];
  EXPECT_EQ(elements<uint8_t>(bgr), (std::vector<uint8_t>{3, 2, 1, 6, 5, 4}));
  EXPECT_NE(error_of([&] {
              run_node("ImageDecoder <pixel_format = \"HSV\">", {bytes});
            }).find("Grayscale"),
            std::string::npos);
}

TEST(LinearRegressor, TargetsWithoutCoefficientsAreRefused) {
  const Tensor x = Tensor::of<float>({1, 2}, {2, 1});
  EXPECT_EQ(elements<float>(run_node(
                "ai.onnx.ml.LinearRegressor <targets = 2, coefficients = [3.0, 4.0]>", {x})[0]),
            (std::vector<float>{3, 4, 6, 8}));
  EXPECT_NE(error_of([&] {
              run_node("ai.onnx.ml.LinearRegressor <targets = 1099511627776>", {x});
            }).find("1099511627776 targets"),
            std::string::npos);
}

TEST(CastLike, RoundingModesAreCheckedWhereNothingIsRounded) {
  EXPECT_NE(error_of([&] {
              run_node("CastLike <round_mode = \"sideways\">",
                       {Tensor::of<int16_t>({1}, {1}), Tensor::of<int64_t>({1}, {1})});
            }).find("sideways"),
            std::string::npos);
}

TEST(StringNormalizer, LocalesWithADotlessI) {
  const auto normalized = [](const std::string& attributes, std::string word) {
    Tensor x(ElementType::string, {1});
    x.mutable_elements<std::string>()[0] = std::move(word);
    return elements<std::string>(
        run_node("StringNormalizer <case_change_action = " + attributes + ">", {x})[0])[0];
  };
  EXPECT_EQ(normalized("\"UPPER\", locale = \"tr_TR\"", "iı"), "İI");
  EXPECT_EQ(normalized("\"LOWER\", locale = \"az-AZ\"", "Iİ"), "ıi");
  EXPECT_EQ(normalized("\"LOWER\", locale = \"tr\"", "I\u0307I"), "iı");
  EXPECT_EQ(normalized("\"UPPER\", locale = \"en_US\"", "iı"), "II");
}

// Rows of packed elements that begin and end inside bytes.
TEST(TensorScatter, PackedRowsOfAnyLength) {
  const Tensor cache =
      converted(Tensor::of<float>({1, 2, 3, 4, 5, 6, 7, 0, 1}, {1, 3, 3}), ElementType::int4);
  const Tensor update = converted(Tensor::of<float>({-1, -2, -3}, {1, 1, 3}), ElementType::int4);
  const auto y = run_node("TensorScatter", {cache, update, Tensor::of<int64_t>({1}, {1})})[0];
  EXPECT_EQ(elements<float>(as_float(y)), (std::vector<float>{1, 2, 3, -1, -2, -3, 7, 0, 1}));
}

TEST(Complex, ScatterAddsAndNonZeroFinds) {
  const float numbers[] = {1, 2, 0, 0, 0, 3}, added[] = {10, 20};
  const auto pairs = [](const float* data, int64_t n) {
    return Tensor::view(ElementType::complex64, {n}, data, static_cast<size_t>(n) * 8);
  };
  const auto sum = run_node("ScatterElements <reduction = \"add\">",
                            {pairs(numbers, 3), Tensor::of<int64_t>({2}, {1}), pairs(added, 1)})[0];
  EXPECT_EQ(static_cast<const float*>(sum.tensor().data())[4], 10);
  EXPECT_EQ(static_cast<const float*>(sum.tensor().data())[5], 23);
  EXPECT_EQ(elements<int64_t>(run_node("NonZero", {pairs(numbers, 3)})[0]),
            (std::vector<int64_t>{0, 2}));
}

}  // namespace
}  // namespace sardonyx::ops_test
