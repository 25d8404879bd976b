// The operator Gradient against differences of the function itself.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

constexpr const char* header =
    "<ir_version: 10, opset_import: [\"\" : 22, \"ai.onnx.preview.training\" : 1]>\n";

struct Input {
  std::string name;
  Tensor value;  // of float64
  bool differentiated = true;
};

Tensor spread(Shape shape, double low, double high) {
  Tensor tensor(ElementType::float64, std::move(shape));
  const auto n = static_cast<double>(tensor.size());
  double i = 0;
  // Steps of an irrational number visit the interval evenly, without ties.
  for (double& v : tensor.mutable_elements<double>()) {
    i += 1;
    v = low + (high - low) * std::fmod(i * 0.6180339887498949 + 0.013 * n, 1.0);
  }
  return tensor;
}

std::string declared(const Input& input) {
  std::string text = "double[";
  for (const int64_t size : input.value.shape())
    text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
  return text + "] " + input.name;
}

double value_of(const Session& session, const std::vector<Input>& inputs) {
  std::vector<NamedValue> named;
  for (const Input& input : inputs) named.emplace_back(input.name, input.value);
  return session.run(named)[0].tensor().elements<double>()[0];
}

// The derivative of `value` by differences around each element of input k.
std::vector<double> differences(const Session& session, const std::vector<Input>& inputs,
                                size_t k) {
  constexpr double step = 1e-5;
  std::vector<double> slopes;
  for (int64_t i = 0; i < inputs[k].value.size(); ++i) {
    double sides[2];
    for (int side = 0; side < 2; ++side) {
      std::vector<Input> moved = inputs;
      Tensor copy(ElementType::float64, inputs[k].value.shape());
      const auto from = inputs[k].value.elements<double>();
      std::copy(from.begin(), from.end(), copy.mutable_elements<double>().begin());
      copy.mutable_elements<double>()[static_cast<size_t>(i)] += side == 0 ? -step : step;
      moved[k].value = copy;
      sides[side] = value_of(session, moved);
    }
    slopes.push_back((sides[1] - sides[0]) / (2 * step));
  }
  return slopes;
}

// `body` computes y from the inputs. The sum of y's sines is differentiated, so that every element
// of y gets another gradient.
void check(const std::string& body, const std::vector<Input>& inputs) {
  SCOPED_TRACE(body);
  std::string formals, xs, zs, arguments, others;
  std::string results = "double value", gradients;
  for (const Input& input : inputs) {
    formals += (formals.empty() ? "" : ", ") + declared(input);
    std::string& list = input.differentiated ? xs : zs;
    list += (list.empty() ? "\"" : ", \"") + input.name + "\"";
    std::string& given = input.differentiated ? arguments : others;
    given += (given.empty() ? "" : ", ") + input.name;
    if (!input.differentiated) continue;
    results += ", double[] d_" + input.name;
    gradients += (gradients.empty() ? "" : ", ") + ("d_" + input.name);
  }
  if (!others.empty()) arguments += ", " + others;
  const std::string text = header + ("g (" + formals + ") => (" + results + ") {\n") + body +
                           "\n waves = Sin(y)\n value = ReduceSum<keepdims = 0>(waves)\n " +
                           gradients + " = ai.onnx.preview.training.Gradient<xs = [" + xs + "]" +
                           (zs.empty() ? "" : ", zs = [" + zs + "]") + ", y = \"value\">(" +
                           arguments + ")\n}";
  const Session session(Model::from_text(text));
  std::vector<NamedValue> named;
  for (const Input& input : inputs) named.emplace_back(input.name, input.value);
  const std::vector<Value> outputs = session.run(named);
  size_t output = 1;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].differentiated) continue;
    const Tensor& gradient = outputs.at(output++).tensor();
    ASSERT_EQ(gradient.shape(), inputs[k].value.shape());
    const std::vector<double> expected = differences(session, inputs, k);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(gradient.elements<double>()[i], expected[i], 2e-5 * (1 + std::abs(expected[i])))
          << inputs[k].name << " " << i;
    }
  }
}

TEST(Gradient, UnaryOperators) {
  const Input x{"x", spread({2, 5}, -0.9, 0.9)};
  for (const char* op :
       {"Neg",  "Exp",   "Tanh",     "Sigmoid",   "Softplus",    "Softsign",  "Erf",
        "Sin",  "Cos",   "Tan",      "Asin",      "Acos",        "Atan",      "Sinh",
        "Cosh", "Asinh", "Atanh",    "Abs",       "Relu",        "LeakyRelu", "Elu",
        "Selu", "Celu",  "Identity", "HardSwish", "HardSigmoid", "Mish",      "Gelu"})
    check("y = " + std::string(op) + "(x)", {x});
  check("y = Gelu<approximate = \"tanh\">(x)", {x});
  const Input positive{"x", spread({2, 5}, 1.2, 3)};
  for (const char* op : {"Sqrt", "Log", "Reciprocal", "Acosh"})
    check("y = " + std::string(op) + "(x)", {positive});
}

TEST(Gradient, BroadcastOperators) {
  const Input a{"a", spread({2, 1, 4}, 0.5, 2)}, b{"b", spread({3, 1}, 0.7, 1.5)};
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow"})
    check("y = " + std::string(op) + "(a, b)", {a, b});
  for (const char* op : {"Max", "Min", "Sum", "Mean"})
    check("y = " + std::string(op) + "(a, b, a)", {a, b});
  check("y = PRelu(a, b)", {{"a", spread({2, 3, 4}, -1, 1)}, b});
  check("half = Constant<value = double {1.0}>()\n c = Less(a, half)\n y = Where(c, a, b)", {a, b});
  check("low = Constant<value = double {0.8}>()\n y = Clip(a, low)", {a});
}

TEST(Gradient, Products) {
  check("y = MatMul(a, b)", {{"a", spread({2, 3, 4}, -1, 1)}, {"b", spread({4, 2}, -1, 1)}});
  check("y = MatMul(a, b)", {{"a", spread({4}, -1, 1)}, {"b", spread({2, 4, 3}, -1, 1)}});
  check("y = MatMul(a, b)", {{"a", spread({2, 3, 4}, -1, 1)}, {"b", spread({4}, -1, 1)}});
  for (const char* turned :
       {"transA = 0", "transA = 1", "transA = 0, transB = 1", "transA = 1, transB = 1"}) {
    const bool ta = std::string(turned).find("transA = 1") != std::string::npos,
               tb = std::string(turned).find("transB = 1") != std::string::npos;
    check("y = Gemm<alpha = 0.5, beta = 2.0, " + std::string(turned) + ">(a, b, c)",
          {{"a", spread(ta ? Shape{4, 3} : Shape{3, 4}, -1, 1)},
           {"b", spread(tb ? Shape{2, 4} : Shape{4, 2}, -1, 1)},
           {"c", spread({2}, -1, 1)}});
  }
}

TEST(Gradient, Reductions) {
  const Input x{"x", spread({2, 3, 4}, 0.5, 2)};
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}) {
    for (const char* keep : {"0", "1"})
      check("axes = Constant<value_ints = [0, -1]>()\n y = " + std::string(op) +
                "<keepdims = " + keep + ">(x, axes)",
            {x});
    check("y = " + std::string(op) + "(x)", {x});
  }
  for (const char* op : {"Softmax", "LogSoftmax"})
    check("y = " + std::string(op) + "<axis = 1>(x)", {x});
}

TEST(Gradient, Movement) {
  const Input x{"x", spread({2, 3, 4}, -1, 1)};
  const std::string one = "one = Constant<value_ints = [1]>()\n ";
  for (const char* body :
       {"s = Constant<value_ints = [4, 6]>()\n y = Reshape(x, s)", "y = Transpose(x)",
        "y = Transpose<perm = [1, 2, 0]>(x)", "y = Flatten(x)",
        "a = Constant<value_ints = [0]>()\n y = Unsqueeze(x, a)",
        "s = Constant<value_ints = [5, 2, 3, 4]>()\n y = Expand(x, s)",
        "y = Concat<axis = 1>(x, x)",
        "a, b, c = Split<axis = 1, num_outputs = 3>(x)\n y = Mul(a, c)",
        "s = Constant<value_ints = [3, 0]>()\n e = Constant<value_ints = [0, 2]>()\n"
        " a = Constant<value_ints = [2, 1]>()\n t = Constant<value_ints = [-2, 1]>()\n"
        " y = Slice(x, s, e, a, t)",
        "i = Constant<value_ints = [2, 0, 2, -1]>()\n y = Gather<axis = 1>(x, i)",
        "i = Constant<value = int64[2, 1, 4] {0, 1, 2, 0, 2, 2, 1, 0}>()\n"
        " y = GatherElements<axis = 1>(x, i)",
        "i = Constant<value = int64[2, 2] {0, 1, 1, 2}>()\n y = GatherND(x, i)",
        "r = Constant<value_ints = [2, 1, 3]>()\n y = Tile(x, r)",
        "p = Constant<value_ints = [0, 1, 0, 1, 0, 2]>()\n y = Pad(x, p)",
        "p = Constant<value_ints = [0, 1, 0, 0, 0, 2]>()\n y = Pad<mode = \"reflect\">(x, p)",
        "a = Constant<value_int = 2>()\n y = CumSum<exclusive = 1>(x, a)"})
    check(body, {x});
  check(
      "i = Constant<value = int64[1, 3, 4] {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}>()\n"
      " y = ScatterElements(x, i, u)",
      {x, {"u", spread({1, 3, 4}, -1, 1)}});
}

TEST(Gradient, Layers) {
  const Input x{"x", spread({2, 3, 5, 4}, -1, 1)}, scale{"s", spread({3}, 0.5, 2)},
      bias{"b", spread({3}, -1, 1)};
  check(
      "m = Constant<value = double[3] {0.1, 0.2, -0.3}>()\n"
      " v = Constant<value = double[3] {1.0, 2.0, 0.5}>()\n"
      " y = BatchNormalization(x, s, b, m, v)",
      {x, scale, bias});
  check("y = GlobalAveragePool(x)", {x});
  check("y = LayerNormalization<axis = -2>(x, s, b)",
        {x, {"s", spread({5, 4}, 0.5, 2)}, {"b", spread({5, 4}, -1, 1)}});
  for (const char* form : {"", "<strides = [2, 1], pads = [1, 0, 0, 1]>",
                           "<dilations = [2, 1], auto_pad = \"SAME_UPPER\">"})
    check("y = Conv" + std::string(form) + "(x, w, c)",
          {x, {"w", spread({4, 3, 2, 3}, -1, 1)}, {"c", spread({4}, -1, 1)}});
  check("y = Conv<group = 3, strides = [2, 2]>(x, w)", {x, {"w", spread({6, 1, 2, 2}, -1, 1)}});
}

TEST(Gradient, Windows) {
  const Input x{"x", spread({2, 3, 5, 4}, -1, 1)};
  for (const char* form :
       {"kernel_shape = [2, 2]", "kernel_shape = [2, 3], strides = [2, 1], pads = [1, 0, 0, 2]",
        "kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1",
        "kernel_shape = [3, 2], dilations = [2, 1], auto_pad = \"SAME_LOWER\""}) {
    check("y = MaxPool<" + std::string(form) + ">(x)", {x});
    check("y = AveragePool<" + std::string(form) + ">(x)", {x});
  }
  check("y = AveragePool<kernel_shape = [2, 2], pads = [1, 1, 0, 1], count_include_pad = 1>(x)",
        {x});
  const Input blocks{"x", spread({1, 8, 2, 3}, -1, 1)};
  check("y = DepthToSpace<blocksize = 2, mode = \"CRD\">(x)", {blocks});
  check("y = SpaceToDepth<blocksize = 2>(x)", {{"x", spread({1, 2, 4, 2}, -1, 1)}});
}

TEST(Gradient, Losses) {
  const Input x{"x", spread({3, 4, 2}, -2, 2)};
  const std::string labels =
      "t = Constant<value = int64[3, 2] {0, 3, 1, 1, 2, 0}>()\n"
      " w = Constant<value = double[4] {0.5, 2.0, 1.0, 3.0}>()\n ";
  for (const char* form : {"", "<reduction = \"none\">", "<reduction = \"sum\">",
                           "<ignore_index = 1>", "<ignore_index = 1, reduction = \"sum\">"}) {
    for (const char* weights : {"", ", w"}) {
      const std::string call = std::string(form) + "(x, t" + weights + ")";
      check(labels + "y = SoftmaxCrossEntropyLoss" + call, {x});
      check(labels + "y = NegativeLogLikelihoodLoss" + call, {x});
    }
  }
  check(labels + "l, p = SoftmaxCrossEntropyLoss(x, t, w)\n y = Mul(l, p)", {x});
}

TEST(Gradient, ValuesOfItsOwnAndSecondOrder) {
  // At another place than where y stands, and with respect to a value in between.
  const std::string text = std::string(header) +
                           "g (float x, float at) => (float d, float e, float f) {\n"
                           " h = Mul(x, x)\n y = Mul(h, x)\n"
                           " d = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"y\">(at)\n"
                           " e = ai.onnx.preview.training.Gradient<xs = [\"h\"], zs = [\"x\"], y = "
                           "\"y\">(h, x)\n"
                           " g = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"y\">(x)\n"
                           " f = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"g\">(x)\n}";
  const Session session(Model::from_text(text));
  const auto outputs =
      session.run({{"x", Tensor::scalar<float>(2)}, {"at", Tensor::scalar<float>(5)}});
  EXPECT_FLOAT_EQ(outputs[0].tensor().elements<float>()[0], 75);
  EXPECT_FLOAT_EQ(outputs[1].tensor().elements<float>()[0], 2);
  EXPECT_FLOAT_EQ(outputs[2].tensor().elements<float>()[0], 12);
}

TEST(Gradient, WhatYDoesNotDependOnHasNone) {
  const Session session(Model::from_text(
      std::string(header) +
      "g (float[2] x, float[2] z) => (float[2] d) {\n y = Exp(z)\n"
      " d = ai.onnx.preview.training.Gradient<xs = [\"x\"], zs = [\"z\"], y = \"y\">(x, z)\n}"));
  const auto outputs =
      session.run({{"x", Tensor::of<float>({1, 2}, {2})}, {"z", Tensor::of<float>({1, 2}, {2})}});
  EXPECT_EQ(outputs[0].tensor().elements<float>()[1], 0);
}

TEST(Gradient, ErrorsSayWhatIsMissing) {
  const auto message = [](const std::string& nodes) {
    try {
      const Session session(
          Model::from_text(header + ("g (float[3, 3] x) => (float[3, 3] d) {\n" + nodes + "}")));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(
      message("y = Det(x)\n d = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"y\">(x)")
          .find("has no gradient"),
      std::string::npos);
  EXPECT_NE(
      message("y = Exp(x)\n d = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"q\">(x)")
          .find("'q'"),
      std::string::npos);
}

}  // namespace
}  // namespace sardonyx
