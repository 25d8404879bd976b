// MatMul, Gemm, Einsum, and their fused and integer forms.
#include "nn_support.h"

namespace sardonyx::ops_test {
namespace {

Tensor matmul_in_double(const Tensor& a, const Tensor& b) {
  const int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  Tensor y(ElementType::float32, {m, n});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < k; ++t)
        sum += static_cast<double>(a.elements<float>()[i * k + t]) * b.elements<float>()[t * n + j];
      y.mutable_elements<float>()[i * n + j] = static_cast<float>(sum);
    }
  }
  return y;
}

Tensor transposed(const Tensor& a) { return run_node("Transpose", {a})[0].tensor(); }

TEST(MatMul, ConstantAndVariableWeightsAgreeWithTheDefinition) {
  Random random(1);
  for (const auto& [m, k, n] :
       {std::tuple{1, 1, 1}, {1, 64, 33}, {7, 5, 3}, {20, 100, 65}, {3, 1, 40}}) {
    const Tensor a = random.floats({m, k}), b = random.floats({k, n});
    const Tensor wanted = matmul_in_double(a, b);
    expect_near(run_node("MatMul", {a, b})[0], wanted);
    expect_near(run_node("MatMul", {a, b}, 1, {1})[0], wanted);
    for (const auto type : {ElementType::float64, ElementType::float16, ElementType::bfloat16}) {
      expect_near(run_node("MatMul", {converted(a, type), converted(b, type)}, 1, {1})[0], wanted,
                  0.02);
    }
  }
}

TEST(MatMul, BatchesBroadcastLikeTheirExpansion) {
  Random random(2);
  const Tensor a = random.floats({2, 1, 3, 4, 5}), b = random.floats({7, 1, 5, 6});
  const Tensor shape_a = Tensor::of<int64_t>({2, 7, 3, 4, 5}, {5}),
               shape_b = Tensor::of<int64_t>({2, 7, 3, 5, 6}, {5});
  const Tensor whole_a = run_node("Expand", {a, shape_a})[0].tensor(),
               whole_b = run_node("Expand", {b, shape_b})[0].tensor();
  expect_near(run_node("MatMul", {a, b})[0], run_node("MatMul", {whole_a, whole_b})[0]);
}

TEST(MatMul, ThreadsDoNotChangeTheResult) {
  Random random(3);
  const Tensor a = random.floats({3, 70, 130}), b = random.floats({130, 90});
  for (const std::vector<int>& constants : {std::vector<int>{}, {1}}) {
    expect_same(run_node("MatMul", {a, b}, 1, constants, 4)[0],
                run_node("MatMul", {a, b}, 1, constants, 1)[0]);
  }
}

TEST(MatMul, EmptySidesGiveZerosOrNothing) {
  const Tensor none =
      run_node("MatMul",
               {Tensor(ElementType::float32, {2, 0}), Tensor(ElementType::float32, {0, 3})}, 1,
               {1})[0]
          .tensor();
  EXPECT_EQ(none.shape(), (Shape{2, 3}));
  for (const float value : none.elements<float>()) EXPECT_EQ(value, 0);
  EXPECT_EQ(run_node("MatMul", {Tensor(ElementType::float32, {0, 2}),
                                Tensor(ElementType::float32, {2, 3})})[0]
                .tensor()
                .shape(),
            (Shape{0, 3}));
}

TEST(MatMul, SymbolicShapes) {
  const Inferred g(
      R"(g (float[batch, 12, seq, 64] q, float[batch, 12, 64, kv] k, float[64] v) => (float[a] y) {
    s = MatMul (q, k)
    w = MatMul (q, v)
  })");
  EXPECT_EQ(g.shape("s"), "[batch,12,seq,kv]");
  EXPECT_EQ(g.shape("w"), "[batch,12,seq]");
}

TEST(MatMul, InnerDimensionsMustAgree) {
  const auto message = error_of([] {
    run_node("MatMul",
             {Tensor(ElementType::float32, {2, 3}), Tensor(ElementType::float32, {4, 5})});
  });
  EXPECT_NE(message.find("inner dimensions"), std::string::npos) << message;
}

TEST(FusedMatMul, EpilogueIsTheSeparateOperators) {
  Random random(4);
  const Tensor a = random.floats({2, 9, 30}), b = random.floats({30, 20}),
               bias = random.floats({20}), residual = random.floats({2, 9, 20});
  const Value sum = run_node("Add", {run_node("MatMul", {a, b})[0].tensor(), bias})[0];
  expect_near(run_node("sardonyx.MatMul <activation = \"gelu_erf\">", {a, b, bias}, 1, {1, 2})[0],
              run_node("Gelu", {sum.tensor()})[0], 1e-4);
  const Value both = run_node("Add", {sum.tensor(), residual})[0];
  expect_near(
      run_node("sardonyx.MatMul <activation = \"relu\">", {a, b, bias, residual}, 1, {1})[0],
      run_node("Relu", {both.tensor()})[0]);
  const Value last = run_node("Add", {run_node("Tanh", {sum.tensor()})[0].tensor(), residual})[0];
  expect_near(run_node("sardonyx.MatMul <activation = \"tanh\", residual_last = 1>",
                       {a, b, bias, residual})[0],
              last, 1e-4);
}

TEST(Gemm, EveryAddendAndOrientation) {
  Random random(5);
  const Tensor a = random.floats({6, 10}), b = random.floats({10, 8});
  const Tensor product = matmul_in_double(a, b);
  for (const Shape& shape : {Shape{}, {1}, {8}, {1, 8}, {6, 1}, {6, 8}, {1, 1}}) {
    const Tensor c = random.floats(shape);
    const Tensor wide = run_node("Expand", {c, Tensor::of<int64_t>({6, 8}, {2})})[0].tensor();
    Tensor wanted(ElementType::float32, {6, 8});
    for (size_t i = 0; i < 48; ++i)
      wanted.mutable_elements<float>()[i] =
          2 * product.elements<float>()[i] + 0.5f * wide.elements<float>()[i];
    for (const bool constant : {false, true}) {
      const std::vector<int> constants = constant ? std::vector<int>{1} : std::vector<int>{};
      expect_near(run_node("Gemm <alpha = 2.0, beta = 0.5>", {a, b, c}, 1, constants)[0], wanted);
      expect_near(run_node("Gemm <alpha = 2.0, beta = 0.5, transB = 1>", {a, transposed(b), c}, 1,
                           constants)[0],
                  wanted);
      expect_near(run_node("Gemm <alpha = 2.0, beta = 0.5, transA = 1>", {transposed(a), b, c}, 1,
                           constants)[0],
                  wanted);
    }
  }
}

TEST(Gemm, IntegersWrapAndScale) {
  const Tensor a = Tensor::of<int32_t>({1, 2, 3, 4}, {2, 2}),
               b = Tensor::of<int32_t>({5, 6, 7, 8}, {2, 2}),
               c = Tensor::of<int32_t>({10, 20}, {2});
  EXPECT_EQ(elements<int32_t>(run_node("Gemm <beta = 2.0>", {a, b, c})[0]),
            (std::vector<int32_t>{39, 62, 63, 90}));
  const Tensor zero = Tensor::of<int64_t>({0}, {1, 1}), one = Tensor::of<int64_t>({1}, {1, 1}),
               wide = Tensor::of<int64_t>({(int64_t{1} << 60) + 1}, {1, 1});
  EXPECT_EQ(elements<int64_t>(run_node("Gemm <beta = -1.0>", {zero, zero, wide})[0]),
            (std::vector<int64_t>{-(int64_t{1} << 60) - 1}));
  EXPECT_EQ(elements<int64_t>(run_node("Gemm <alpha = 3.0>", {wide, one})[0]),
            (std::vector<int64_t>{(int64_t{3} << 60) + 3}));
  const Tensor most = Tensor::of<int32_t>({INT32_MAX, INT32_MIN, 3, 0}, {2, 2});
  EXPECT_EQ(elements<int32_t>(run_node("Gemm <alpha = 0.0, beta = 2.0>", {a, b, most})[0]),
            (std::vector<int32_t>{-2, 0, 6, 0}));
}

TEST(Gemm, VersionOneForgetsBroadcast) {
  const Upgraded up = upgraded("y = Gemm <broadcast = 1> (a, b, c)", 1);
  ASSERT_EQ(up.nodes.size(), 1u);
  EXPECT_EQ(up.nodes[0].find("broadcast"), nullptr);
}

TEST(Einsum, IsTheSumOverItsIndices) {
  Random random(6);
  const Tensor a = random.floats({3, 4}), b = random.floats({4, 5}), c = random.floats({2, 3, 3});
  expect_near(run_node("Einsum <equation = \"ij,jk->ik\">", {a, b})[0], matmul_in_double(a, b));
  expect_near(run_node("Einsum <equation = \"ij,jk->ki\">", {a, b})[0],
              transposed(matmul_in_double(a, b)));
  Tensor diagonal(ElementType::float32, {3, 2});
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t n = 0; n < 2; ++n)
      diagonal.mutable_elements<float>()[i * 2 + n] = c.elements<float>()[n * 9 + i * 4];
  }
  expect_near(run_node("Einsum <equation = \"nii->in\">", {c})[0], diagonal);
  // A label in one operand only is summed before the product.
  double sum_a = 0, sum_b = 0;
  for (const float value : a.elements<float>()) sum_a += value;
  for (const float value : b.elements<float>()) sum_b += value;
  const Tensor both = run_node("Einsum <equation = \"ij,kl->\">", {a, b})[0].tensor();
  EXPECT_NEAR(both.elements<float>()[0], sum_a * sum_b, 1e-4);
}

// Sums over dimensions of one operand: in the order it has, turned, of a diagonal, and inside a
// product.
TEST(Einsum, SumsOfOneOperand) {
  Random random(8);
  const Tensor x = random.floats({3, 5, 4}), w = random.floats({4, 2}),
               square = random.floats({3, 3, 4});
  const auto at = [](const Tensor& t, int64_t place) { return t.elements<float>()[place]; };
  Tensor ik(ElementType::float32, {3, 4}), j_alone(ElementType::float32, {5}),
      diagonal(ElementType::float32, {4});
  for (Tensor* t : {&ik, &j_alone, &diagonal}) {
    for (float& v : t->mutable_elements<float>()) v = 0;
  }
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t k = 0; k < 4; ++k) {
      diagonal.mutable_elements<float>()[k] += at(square, i * 16 + k);
      for (int64_t j = 0; j < 5; ++j) {
        ik.mutable_elements<float>()[i * 4 + k] += at(x, (i * 5 + j) * 4 + k);
        j_alone.mutable_elements<float>()[j] += at(x, (i * 5 + j) * 4 + k);
      }
    }
  }
  expect_near(run_node("Einsum <equation = \"ijk->ik\">", {x})[0], ik);
  expect_near(run_node("Einsum <equation = \"ijk->ki\">", {x})[0], transposed(ik));
  expect_near(run_node("Einsum <equation = \"ijk->j\">", {x})[0], j_alone);
  expect_near(run_node("Einsum <equation = \"iik->k\">", {square})[0], diagonal);
  expect_near(run_node("Einsum <equation = \"ijk,kc->ic\">", {x, w})[0], matmul_in_double(ik, w));
}

TEST(Einsum, ShapesAndMistakes) {
  const Inferred g(
      R"(g (float[batch, heads, seq, 64] q, float[batch, heads, kv, 64] k) => (float[a] y) {
    s = Einsum <equation = "bhqd,bhkd->bhqk"> (q, k)
    t = Einsum <equation = "...qd,...kd->...qk"> (q, k)
  })");
  EXPECT_EQ(g.shape("s"), "[batch,heads,seq,kv]");
  EXPECT_EQ(g.shape("t"), "[batch,heads,seq,kv]");
  const Tensor a(ElementType::float32, {2, 3});
  EXPECT_NE(error_of([&] { run_node("Einsum <equation = \"ij->ik\">", {a}); }).find("output only"),
            std::string::npos);
  EXPECT_NE(error_of([&] { run_node("Einsum <equation = \"ijk->i\">", {a}); }).find("has 3 labels"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { run_node("Einsum <equation = \"ij,jk\">", {a}); }).find("names 2 operands"),
      std::string::npos);
  EXPECT_NE(error_of([&] { run_node("Einsum <equation = \"i*\">", {a}); }).find("'*'"),
            std::string::npos);
}

TEST(MatMulInteger, IsExactWithZeroPoints) {
  Random random(7);
  for (const auto& [m, k, n] : {std::tuple{1, 1, 1}, {5, 3, 40}, {70, 129, 33}}) {
    const Tensor a = random.integers<uint8_t>({m, k}, 0, 255),
                 b = random.integers<int8_t>({k, n}, -128, 127);
    const Tensor a_zero = Tensor::scalar<uint8_t>(131),
                 b_zero = random.integers<int8_t>({n}, -128, 127);
    std::vector<int32_t> wanted;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        int32_t sum = 0;
        for (int64_t t = 0; t < k; ++t)
          sum += (a.elements<uint8_t>()[i * k + t] - 131) *
                 (b.elements<int8_t>()[t * n + j] - b_zero.elements<int8_t>()[j]);
        wanted.push_back(sum);
      }
    }
    EXPECT_EQ(elements<int32_t>(run_node("MatMulInteger", {a, b, a_zero, b_zero})[0]), wanted);
    EXPECT_EQ(elements<int32_t>(run_node("MatMulInteger", {a, b, a_zero, b_zero}, 1, {1, 3}, 3)[0]),
              wanted);
  }
}

}  // namespace
}  // namespace sardonyx::ops_test
