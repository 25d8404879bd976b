// Experimental operators of ONNX 1.0 to 1.4 run as today's.
#include <gtest/gtest.h>

#include <cmath>

#include "upgrade_support.h"

namespace sardonyx {
namespace {

using upgrade_test::counted;
using upgrade_test::values;

std::string model(const std::string& graph) {
  return "<ir_version: 3, opset_import: [\"\" : 8]>\n" + graph;
}

Tensor run(const std::string& graph, const std::vector<NamedValue>& inputs) {
  return Session(Model::from_text(model(graph))).run(inputs)[0].tensor();
}

TEST(Removed, Arithmetic) {
  const Tensor x = counted({3});
  const auto unary = [&](const std::string& call) {
    return values<float>(run("g (float[3] x) => (float[3] y) { y = " + call + "(x) }", {{"x", x}}));
  };
  EXPECT_EQ(unary("Affine<alpha = 2.0, beta = 1.0>"), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(unary("Affine"), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(unary("Scale<scale = 3.0>"), (std::vector<float>{0, 3, 6}));
  EXPECT_FLOAT_EQ(unary("ScaledTanh<alpha = 2.0, beta = 0.5>")[1], 2 * std::tanh(0.5f));
  EXPECT_FLOAT_EQ(unary("ParametricSoftplus<alpha = 2.0, beta = 3.0>")[1],
                  2 * std::log1p(std::exp(3.0f)));
  EXPECT_EQ(unary("ThresholdedRelu<alpha = 1.0>"), (std::vector<float>{0, 0, 2}));
}

TEST(Removed, Images) {
  const Tensor x = counted({1, 2, 2, 3});
  EXPECT_EQ(values<float>(run("g (float[1,2,2,3] x) => (float[1,2,2,3] y) {\n"
                              " y = ImageScaler<scale = 2.0, bias = [1.0, -1.0]>(x) }",
                              {{"x", x}}))[7],
            13);
  const Tensor cropped =
      run("g (float[1,2,2,3] x) => (float[1,2,1,2] y) { y = Crop<border = [1, 0, 0, 1]>(x) }",
          {{"x", x}});
  EXPECT_EQ(values<float>(cropped), (std::vector<float>{1, 2, 7, 8}));
  EXPECT_EQ(values<float>(run("g (float[1,2,2,3] x) => (float[1,2,1,1] y) {\n"
                              " y = Crop<border = [1, 1, 0, 0], scale = [1, 1]>(x) }",
                              {{"x", x}})),
            (std::vector<float>{4, 10}));
}

TEST(Removed, Fills) {
  EXPECT_EQ(values<float>(run("g (float[2] x) => (float[2, 1] y) {\n"
                              " y = ConstantFill<value = 7.0, extra_shape = [1]>(x) }",
                              {{"x", counted({2})}})),
            (std::vector<float>{7, 7}));
  const Tensor whole =
      run("g (int64[2] s) => (int64[2, 3] y) {\n"
          " y = ConstantFill<value = 4.0, input_as_shape = 1, dtype = 7>(s) }",
          {{"s", Tensor::of<int64_t>({2, 3}, {2})}});
  EXPECT_EQ(whole.shape(), (Shape{2, 3}));
  EXPECT_EQ(whole.elements<int64_t>()[5], 4);
  EXPECT_EQ(run("g (float x) => (float[2, 1] y) {\n"
                " y = GivenTensorFill<values = [5.0, 6.0], shape = [2, 1]>() }",
                {{"x", Tensor::scalar<float>(0)}})
                .shape(),
            (Shape{2, 1}));
}

TEST(Removed, Tables) {
  EXPECT_EQ(values<float>(run("g (int64[2] i) => (float[2, 2] y) {\n"
                              " y = Embedding<input_dim = 3, output_dim = 2, weights = float[2, 3] "
                              "{0, 1, 2, 3, 4, 5}>(i) }",
                              {{"i", Tensor::of<int64_t>({2, 0}, {2})}})),
            (std::vector<float>{2, 5, 0, 3}));
  EXPECT_EQ(
      values<float>(run(
          "g (float[1, 2] x, float[1, 2] w, float[1] b) => (float[1, 1] y) {\n"
          " y = FC(x, w, b) }",
          {{"x", counted({1, 2})}, {"w", counted({1, 2})}, {"b", Tensor::of<float>({10}, {1})}})),
      (std::vector<float>{11}));
  EXPECT_EQ(values<float>(run("g (float[2, 2] t, int32[1] i) => (float[2] y) {\n"
                              " y = LoopIndexTensor<axis = 1>(t, i) }",
                              {{"t", counted({2, 2})}, {"i", Tensor::of<int32_t>({1}, {1})}})),
            (std::vector<float>{1, 3}));
  EXPECT_EQ(values<float>(run("g (float[4] x, int64[1] s, int64[1] e) => (float[2] y) {\n"
                              " y = DynamicSlice(x, s, e) }",
                              {{"x", counted({4})},
                               {"s", Tensor::of<int64_t>({1}, {1})},
                               {"e", Tensor::of<int64_t>({3}, {1})}})),
            (std::vector<float>{1, 2}));
}

TEST(Removed, MeanVarianceNormalizationOfOnnx1) {
  const Tensor x = counted({2, 1, 1, 2});
  EXPECT_EQ(values<float>(run("g (float[2,1,1,2] x) => (float[2,1,1,2] y) {\n"
                              " y = MeanVarianceNormalization<normalize_variance = 0>(x) }",
                              {{"x", x}})),
            (std::vector<float>{-1.5f, -0.5f, 0.5f, 1.5f}));
}

TEST(Removed, WhatHasNoMeaningIsRefusedWithTheReason) {
  const auto refusal = [](const std::string& call) {
    try {
      run("g (float[1] x) => (float[1] y) { y = " + call + " }", {{"x", counted({1})}});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("ATen(x)").find("PyTorch"), std::string::npos) << refusal("ATen(x)");
  EXPECT_NE(refusal("GRUUnit(x, x, x, x)").find("use GRU"), std::string::npos);
}

}  // namespace
}  // namespace sardonyx
