// The operator Gradient against differences of the function itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "rewrite/gradient.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

constexpr const char* header =
    "<ir_version: 10, opset_import: [\"\" : 27, \"ai.onnx.preview.training\" : 1]>\n";

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

// How a case is put: as it stands, in float32, or without saying how large its inputs are.
enum class Form { float64, float32, open_sizes };

std::string declared(const Input& input, Form form) {
  std::string text = "double[";
  size_t axis = 0;
  for (const int64_t size : input.value.shape()) {
    text += axis == 0 ? "" : ", ";
    text +=
        form == Form::open_sizes ? input.name + "_" + std::to_string(axis) : std::to_string(size);
    ++axis;
  }
  return text + "] " + input.name + (form == Form::float32 ? "_given" : "");
}

std::string of_floats(std::string body) {
  constexpr std::string_view wide = "double", narrow = "float";
  for (size_t at = 0; (at = body.find(wide, at)) != body.npos;)
    body.replace(at, wide.size(), narrow);
  return body;
}

// `body` computes y from the inputs. The sum of y's sines is differentiated, so that every element
// of y gets another gradient. Inputs and outputs are of float64 in every form.
Model model_of(const std::string& body, const std::vector<Input>& inputs, Form form) {
  std::string formals, xs, zs, arguments, others, casts, back;
  std::string results = "double value", gradients;
  for (const Input& input : inputs) {
    formals += (formals.empty() ? "" : ", ") + declared(input, form);
    if (form == Form::float32)
      casts += " " + input.name + " = Cast<to = 1>(" + input.name + "_given)\n";
    std::string& list = input.differentiated ? xs : zs;
    list += (list.empty() ? "\"" : ", \"") + input.name + "\"";
    std::string& given = input.differentiated ? arguments : others;
    given += (given.empty() ? "" : ", ") + input.name;
    if (!input.differentiated) continue;
    results += ", double[] d_" + input.name;
    gradients += (gradients.empty() ? "g_" : ", g_") + input.name;
    back += "\n d_" + input.name + " = Cast<to = 11>(g_" + input.name + ")";
  }
  if (!others.empty()) arguments += ", " + others;
  return Model::from_text(
      header + ("g (" + formals + ") => (" + results + ") {\n") + casts +
      (form == Form::float32 ? of_floats(body) : body) +
      "\n waves = Sin(y)\n sum = ReduceSum<keepdims = 0>(waves)\n value = Cast<to = 11>(sum)\n " +
      gradients + " = ai.onnx.preview.training.Gradient<xs = [" + xs + "]" +
      (zs.empty() ? "" : ", zs = [" + zs + "]") + ", y = \"sum\">(" + arguments + ")" + back +
      "\n}");
}

std::vector<Value> run_case(const Session& session, const std::vector<Input>& inputs, Form form) {
  std::vector<NamedValue> named;
  for (const Input& input : inputs)
    named.emplace_back(input.name + (form == Form::float32 ? "_given" : ""), input.value);
  return session.run(named);
}

double value_of(const Session& session, const std::vector<Input>& inputs) {
  return run_case(session, inputs, Form::float64)[0].tensor().elements<double>()[0];
}

// The derivative of `value` by differences around each element of input k.
std::vector<double> differences(const Session& session, const std::vector<Input>& inputs, size_t k,
                                double step) {
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

// Of operators that take no float64 the differences are those of float32.
enum class Precision { float64, float32 };

void hold_against_differences(const std::string& body, const std::vector<Input>& inputs,
                              Precision precision) {
  SCOPED_TRACE(body);
  const bool exact = precision == Precision::float64;
  const double step = exact ? 1e-5 : 1e-2, tolerance = exact ? 2e-5 : 5e-4;
  const Session session(model_of(body, inputs, Form::float64));
  const std::vector<Value> outputs = run_case(session, inputs, Form::float64);
  size_t output = 1;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].differentiated) continue;
    const Tensor& gradient = outputs.at(output++).tensor();
    ASSERT_EQ(gradient.shape(), inputs[k].value.shape());
    const std::vector<double> expected = differences(session, inputs, k, step);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(gradient.elements<double>()[i], expected[i],
                  tolerance * (1 + std::abs(expected[i])))
          << inputs[k].name << " " << i;
    }
  }
}

// The same in float32, and with inputs of open sizes, which may have no gradient but no wrong one.
void hold_other_forms(const std::string& body, const std::vector<Input>& inputs,
                      Precision precision) {
  if (precision == Precision::float32) return;  // it says itself what is computed in float32
  SCOPED_TRACE(body);
  const std::vector<Value> expected =
      run_case(Session(model_of(body, inputs, Form::float64)), inputs, Form::float64);
  for (const Form form : {Form::float32, Form::open_sizes}) {
    SCOPED_TRACE(form == Form::float32 ? "in float32" : "with open sizes");
    std::vector<Value> found;
    try {
      found = run_case(Session(model_of(body, inputs, form)), inputs, form);
    } catch (const Error& error) {
      EXPECT_TRUE(form == Form::open_sizes && error.code() == ErrorCode::unsupported)
          << error.what();
      continue;
    }
    const double tolerance = form == Form::float32 ? 1e-3 : 1e-12;
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_EQ(found[k].tensor().shape(), expected[k].tensor().shape());
      const auto wanted = expected[k].tensor().elements<double>();
      const auto got = found[k].tensor().elements<double>();
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_NEAR(got[i], wanted[i], tolerance * (1 + std::abs(wanted[i]))) << k << " " << i;
    }
  }
}

// The groups below hand their cases to one: to be held against differences, or to be counted.
class Check {
 public:
  using Case = void(const std::string& body, const std::vector<Input>& inputs, Precision precision);
  explicit Check(std::function<Case> each) : each_(std::move(each)) {}
  void operator()(const std::string& body, const std::vector<Input>& inputs,
                  Precision precision = Precision::float64) const {
    each_(body, inputs, precision);
  }

 private:
  std::function<Case> each_;
};

void unary_operators(const Check& check) {
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
TEST(Gradient, UnaryOperators) { unary_operators(Check(hold_against_differences)); }

void broadcast_operators(const Check& check) {
  const Input a{"a", spread({2, 1, 4}, 0.5, 2)}, b{"b", spread({3, 1}, 0.7, 1.5)};
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow"})
    check("y = " + std::string(op) + "(a, b)", {a, b});
  for (const char* op : {"Max", "Min", "Sum", "Mean"})
    check("y = " + std::string(op) + "(a, b, a)", {a, b});
  check("y = PRelu(a, b)", {{"a", spread({2, 3, 4}, -1, 1)}, b});
  check("half = Constant<value = double {1.0}>()\n c = Less(a, half)\n y = Where(c, a, b)", {a, b});
  check("low = Constant<value = double {0.8}>()\n y = Clip(a, low)", {a});
}
TEST(Gradient, BroadcastOperators) { broadcast_operators(Check(hold_against_differences)); }

void products(const Check& check) {
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
TEST(Gradient, Products) { products(Check(hold_against_differences)); }

void reductions(const Check& check) {
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
TEST(Gradient, Reductions) { reductions(Check(hold_against_differences)); }

void movement(const Check& check) {
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
TEST(Gradient, Movement) { movement(Check(hold_against_differences)); }

void layers(const Check& check) {
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
TEST(Gradient, Layers) { layers(Check(hold_against_differences)); }

void windows(const Check& check) {
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
TEST(Gradient, Windows) { windows(Check(hold_against_differences)); }

void losses(const Check& check) {
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
TEST(Gradient, Losses) { losses(Check(hold_against_differences)); }

void normalizations(const Check& check) {
  const Input x{"x", spread({2, 4, 3, 2}, -1, 1)}, s{"s", spread({4}, 0.5, 2)},
      b{"b", spread({4}, -1, 1)};
  check("y = InstanceNormalization<epsilon = 0.01>(x, s, b)", {x, s, b});
  for (const char* groups : {"1", "2", "4"})
    check("y = GroupNormalization<num_groups = " + std::string(groups) + ">(x, s, b)", {x, s, b});
  check("y = RMSNormalization<axis = 2>(x, s)", {x, {"s", spread({3, 2}, 0.5, 2)}});
  for (const char* form : {"p = 1, axis = 1", "p = 2", "axis = 0"})
    check("y = LpNormalization<" + std::string(form) + ">(x)", {x});
  check("y = MeanVarianceNormalization(x)", {x});
  check(
      "m = Constant<value = double[4] {0.1, 0.2, -0.3, 0}>()\n v = Constant<value = double[4] {1, "
      "1, 1, 1}>()\n"
      " y, rm, rv = BatchNormalization<training_mode = 1>(x, s, b, m, v)",
      {x, s, b});
}
TEST(Gradient, Normalizations) { normalizations(Check(hold_against_differences)); }

void choices(const Check& check) {
  const Input x{"x", spread({2, 3, 4}, -1, 1)};
  for (const char* form : {"axis = 1", "largest = 0", "axis = 0, sorted = 0"})
    check("k = Constant<value_ints = [2]>()\n y, i = TopK<" + std::string(form) + ">(x, k)", {x});
  for (const char* form : {"upper = 1", "upper = 0"})
    check("k = Constant<value_int = 1>()\n y = Trilu<" + std::string(form) + ">(x, k)", {x});
  check(
      "n = Constant<value_ints = [2, 1, 2]>()\n y = ReverseSequence<batch_axis = 1, time_axis = "
      "0>(x, n)",
      {x});
  for (const char* form : {"", "<exclusive = 1>", "<reverse = 1>", "<exclusive = 1, reverse = 1>"})
    check("a = Constant<value_int = 1>()\n y = CumProd" + std::string(form) + "(x, a)", {x});
  const Input plane{"x", spread({2, 3, 4, 3}, -1, 1)};
  check("y = GlobalMaxPool(x)", {plane});
  for (const char* p : {"1", "2", "3"})
    check("y = GlobalLpPool<p = " + std::string(p) + ">(x)", {plane});
  check(
      "v, i = MaxPool<kernel_shape = [2, 2], strides = [2, 1]>(x)\n"
      " y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 1]>(v, i)",
      {plane});
  check(
      "c = Constant<value = double[2, 4, 1] {0.9, 0.1, 0.5, 0.3, 0.2, 0.7, 0.6, 0.4}>()\n"
      " f = Cast<to = 1>(x)\n g = Cast<to = 1>(c)\n r = RotaryEmbedding(f, g, g)\n"
      " y = Cast<to = 11>(r)",
      {{"x", spread({2, 3, 4, 2}, -1, 1)}}, Precision::float32);
  check(
      "f = Constant<value = double[2, 4, 1] {0.9, 0.1, 0.5, 0.3, 0.2, 0.7, 0.6, 0.4}>()\n"
      " c = Concat<axis = -1>(f, f)\n g = Cast<to = 1>(c)\n h = Cast<to = 1>(x)\n"
      " r = RotaryEmbedding<interleaved = 1, num_heads = 2, rotary_embedding_dim = 4>(h, g, g)\n"
      " y = Cast<to = 11>(r)",
      {{"x", spread({2, 4, 12}, -1, 1)}}, Precision::float32);
}
TEST(Gradient, Choices) { choices(Check(hold_against_differences)); }

void more_movement(const Check& check) {
  const Input x{"x", spread({2, 3, 4}, -1, 1)}, u{"u", spread({2, 4}, -1, 1)};
  check("y = Mod<fmod = 1>(x, m)", {x, {"m", spread({4}, 0.35, 0.6), false}});
  check("a = Constant<value_ints = [1]>()\n w = Unsqueeze(x, a)\n y = Squeeze(w, a)", {x});
  check("y = Squeeze(x)", {{"x", spread({1, 3, 1}, -1, 1)}});
  const std::string nd = "i = Constant<value = int64[2, 2] {0, 2, 1, 0}>()\n ";
  check(nd + "y = ScatterND(x, i, u)", {x, u});
  check(
      "i = Constant<value = int64[2, 2] {0, 2, 0, 2}>()\n y = ScatterND<reduction = \"add\">(x, i, "
      "u)",
      {x, u});
  check(
      "i = Constant<value = int64[1, 3, 4] {1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 0, 0}>()\n"
      " y = ScatterElements<reduction = \"add\">(x, i, v)",
      {x, {"v", spread({1, 3, 4}, -1, 1)}});
  // Without training everything is kept; with a ratio of 0 the mask keeps everything, too.
  check("y = Dropout(x)", {x});
  check(
      "r = Constant<value_float = 0.0>()\n t = Constant<value = bool {1}>()\n"
      " y, kept = Dropout<seed = 3>(x, r, t)",
      {x});
  // The gradient of a gradient, in which sums over what was broadcast stand.
  check(
      "h = Mul(x, m)\n k = Mul(h, m)\n s = ReduceSum<keepdims = 0>(k)\n"
      " y = ai.onnx.preview.training.Gradient<xs = [\"m\"], zs = [\"x\"], y = \"s\">(m, x)",
      {x, {"m", spread({3, 1}, 0.5, 2)}});
}
TEST(Gradient, MoreMovement) { more_movement(Check(hold_against_differences)); }

void branches(const Check& check) {
  const Input x{"x", spread({3}, 0.2, 1)}, w{"w", spread({3}, 0.5, 2)};
  for (const char* limit : {"0.0", "9.0"}) {
    check("limit = Constant<value = double {" + std::string(limit) +
              "}>()\n m = ReduceMax<keepdims = 0>(x)\n c = Less(m, limit)\n"
              " s = Sin(x)\n"
              " y = If(c) <then_branch = t () => (a) { h = Mul(s, w)\n a = Mul(h, x) },"
              " else_branch = e () => (b) { b = Exp(x) }>",
          {x, w});
  }
  // A branch inside a branch, which hands on a value from around it.
  check(
      "c = Constant<value = bool {1}>()\n"
      " y, z = If(c) <then_branch = t () => (a, o) { a = If(c) <then_branch = tt () => (p) { p = "
      "Mul(x, w) },"
      " else_branch = te () => (q) { q = Identity(w) }>\n o = Identity(x) },"
      " else_branch = e () => (b, p) { b = Exp(x)\n p = Neg(x) }>",
      {x, w});
}
TEST(Gradient, Branches) { branches(Check(hold_against_differences)); }

void iterations(const Check& check) {
  const Input x{"x", spread({2, 3}, 0.2, 1)}, w{"w", spread({3}, 0.5, 1.2)};
  const std::string four =
      "n = Constant<value = int64 {4}>()\n go = Constant<value = bool {1}>()\n ";
  check(four +
            "y = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r) {"
            " o = Identity(c)\n t = Tanh(v)\n r = Mul(t, w) }>",
        {x, w});
  // Stacked outputs, the number of the iteration, and an end before the count is reached.
  check(four +
            "two = Constant<value = int64 {2}>()\n"
            " e, s = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r, out) {"
            " o = Less(i, two)\n k = CastLike(i, v)\n h = Mul(v, w)\n r = Sin(h)\n out = Mul(k, r) "
            "}>\n"
            " t = ReduceSum<keepdims = 0>(s)\n y = Mul(e, t)",
        {x, w});
  check(
      "zero = Constant<value = int64 {0}>()\n y = Loop(zero, , x) <body = b (int64 i, bool c, v) "
      "=> (o, r) {"
      " o = Identity(c)\n r = Mul(v, w) }>",
      {x, w});
  const Input h{"h", spread({3}, -1, 1)}, xs{"x", spread({4, 3}, -1, 1)};
  check(
      "f, y = Scan<num_scan_inputs = 1, body = b (s, e) => (t, out) {"
      " p = Mul(s, w)\n q = Add(p, e)\n t = Tanh(q)\n out = Mul(t, e) }>(h, x)",
      {h, xs, w});
  check(
      "f, s = Scan<num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0],"
      " scan_output_axes = [1], scan_output_directions = [1], body = b (s, e, g) => (t, out) {"
      " p = Mul(s, e)\n t = Add(p, g)\n out = Sin(t) }>(h, x, z)\n g = Mul(s, s)\n"
      " k = ReduceSum<keepdims = 0>(g)\n y = Mul(f, k)",
      {h, {"x", spread({3, 4}, -1, 1)}, {"z", spread({4, 3}, -1, 1)}});
  // A Loop in a Scan, and an If in it.
  check(
      "f, y = Scan<num_scan_inputs = 1, body = b (s, e) => (t, out) {"
      " n = Constant<value = int64 {2}>()\n go = Constant<value = bool {1}>()\n"
      " t = Loop(n, go, s) <body = l (int64 i, bool c, v) => (o, r) { o = Identity(c)\n"
      " one = Constant<value = int64 {1}>()\n first = Less(i, one)\n"
      " r = If(first) <then_branch = tb () => (a) { a = Mul(v, w) }, else_branch = eb () => (d) { "
      "d = Sin(e) }> }>\n"
      " out = Mul(t, e) }>(h, x)",
      {h, xs, w});
}
TEST(Gradient, Iterations) { iterations(Check(hold_against_differences)); }

void recurrent_layers(const Check& check) {
  struct Layer {
    const char* op;
    int64_t gates;
    std::vector<const char*> forms;
  };
  const Layer layers[] = {
      {"RNN",
       1,
       {"", "direction = \"reverse\", clip = 0.4, ",
        "activations = [\"Affine\"], activation_alpha = [0.5], activation_beta = [0.1], "}},
      {"GRU",
       3,
       {"", "linear_before_reset = 1, ",
        "activations = [\"HardSigmoid\", \"ScaledTanh\"], activation_alpha = [0.3, 0.8], "
        "activation_beta = [0.4, 1.1], "}},
      {"LSTM",
       4,
       {"", "input_forget = 1, ",
        "activations = [\"Softsign\", \"Elu\", \"Softplus\"], clip = 0.6, "}}};
  for (const Layer& layer : layers) {
    for (const char* form : layer.forms) {
      for (const bool both : {false, true}) {
        const std::string options = form;
        if (both && (options.find("direction") != std::string::npos ||
                     options.find("activations") != std::string::npos))
          continue;
        const int64_t d = both ? 2 : 1, n = layer.gates * 2;
        const bool lstm = layer.gates == 4;
        for (const bool lengths : {false, true}) {
          const std::string call = std::string(layer.op) + "<hidden_size = 2, " + options +
                                   (both ? "direction = \"bidirectional\", " : "") +
                                   "layout = " + (lengths && !both ? "1" : "0") + ">(x, w, r, b, " +
                                   (lengths ? "n" : "") + (lstm ? ", , , p" : "") + ")\n";
          const Shape shape = lengths && !both ? Shape{2, 3, 2} : Shape{3, 2, 2};
          std::vector<Input> inputs{{"x", spread(shape, -1, 1)},
                                    {"w", spread({d, n, 2}, -1, 1)},
                                    {"r", spread({d, n, 2}, -0.9, 1.1)},
                                    {"b", spread({d, 2 * n}, -0.5, 0.4)}};
          if (lstm) inputs.push_back({"p", spread({d, 6}, -1, 1)});
          const std::string outputs = lstm ? "s, h, c = " : "s, h = ";
          const std::string last = lstm ? "hc = Add(h, c)\n t = ReduceSum<keepdims = 0>(hc)\n"
                                        : "t = ReduceSum<keepdims = 0>(h)\n";
          check("n = Constant<value = int32[2] {3, 1}>()\n " + outputs + call + last +
                    " y = Mul(s, t)",
                inputs);
        }
      }
    }
  }
}
TEST(Gradient, RecurrentLayers) { recurrent_layers(Check(hold_against_differences)); }

void linear_maps(const Check& check) {
  const Input x{"x", spread({2, 2, 3, 4}, -1, 1)};
  for (const char* form :
       {"mode = \"nearest\"", "mode = \"linear\"", "mode = \"cubic\"",
        "mode = \"linear\", coordinate_transformation_mode = \"align_corners\"",
        "mode = \"cubic\", exclude_outside = 1, coordinate_transformation_mode = \"asymmetric\"",
        "mode = \"linear\", antialias = 1"}) {
    check(
        "s = Constant<value_floats = [1.0, 1.0, 1.7, 0.6]>()\n c = Cast<to = 1>(s)\n y = Resize<" +
            std::string(form) + ">(x, , c)",
        {x});
    check("s = Constant<value_ints = [5, 3]>()\n y = Resize<axes = [3, -2], " + std::string(form) +
              ">(x, , , s)",
          {x});
  }
  check(
      "r = Constant<value_floats = [0.1, -0.2, 0.8, 1.3]>()\n s = Constant<value_ints = [4, 3]>()\n"
      " y = Resize<axes = [2, 3], mode = \"linear\", extrapolation_value = 3.0,"
      " coordinate_transformation_mode = \"tf_crop_and_resize\">(x, r, , s)",
      {x});
  for (const char* form : {"mode = \"linear\"", "mode = \"nearest\", padding_mode = \"border\"",
                           "mode = \"cubic\", padding_mode = \"reflection\", align_corners = 1"})
    check(
        "g = Constant<value = double[2, 2, 1, 2] {0.1, -0.3, 0.8, 1.2, -0.9, 0.4, 0.35, 0.15}>()\n"
        " y = GridSample<" +
            std::string(form) + ">(x, g)",
        {x});
  check(
      "r = Constant<value = double[3, 4] {0.1, 0.2, 2.5, 2.2, 0.5, 0.1, 3, 1.9, 0, 0, 3, 2}>()\n"
      " b = Constant<value_ints = [1, 0, 1]>()\n"
      " y = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 2>(x, r, b)",
      {x});
  check(
      "i = Constant<value_ints = [3, 4]>()\n b = Constant<value_ints = [2, 2]>()\n"
      " y = Col2Im<pads = [1, 0, 0, 1], strides = [1, 2]>(x, i, b)",
      {{"x", spread({2, 8, 6}, -1, 1)}});
  check("s = Constant<value_ints = [5, 2]>()\n y = CenterCropPad<axes = [2, 3]>(x, s)", {x});
  check("s = Constant<value_ints = [1, 2, 2, 7]>()\n y = CenterCropPad(x, s)", {x});
  check("c = Constant<value = bool[3] {1, 0, 1}>()\n y = Compress<axis = -2>(x, c)", {x});
  check("c = Constant<value = bool[5] {0, 1, 1, 0, 1}>()\n y = Compress(x, c)", {x});
  const Input matrix{"x", spread({2, 3, 3}, -1, 1)};
  check("y = Det(x)", {matrix});
  check("y = LRN<size = 4, alpha = 0.7, beta = 0.6, bias = 1.2>(x)",
        {{"x", spread({2, 5, 2, 2}, -1, 1)}});
  check("i = Constant<value_ints = [1, 3]>()\n y = TensorScatter(c, u, i)",
        {{"c", spread({2, 2, 5, 3}, -1, 1)}, {"u", spread({2, 2, 2, 3}, -1, 1)}});
  check(
      "i = Constant<value_ints = [4]>()\n y = TensorScatter<axis = 1, mode = \"circular\">(c, u, "
      "i)",
      {{"c", spread({1, 5, 3}, -1, 1)}, {"u", spread({1, 2, 3}, -1, 1)}});
}
TEST(Gradient, LinearMaps) { linear_maps(Check(hold_against_differences)); }

void transposed_convolutions(const Check& check) {
  const Input x{"x", spread({2, 4, 3, 4}, -1, 1)}, bias{"c", spread({2}, -1, 1)};
  for (const char* form : {"", "<strides = [2, 3], output_padding = [1, 2]>",
                           "<dilations = [2, 1], pads = [1, 0, 0, 2]>",
                           "<strides = [2, 2], auto_pad = \"SAME_UPPER\">",
                           "<strides = [2, 2], auto_pad = \"SAME_LOWER\">",
                           "<strides = [2, 2], output_shape = [6, 8]>",
                           "<strides = [1, 2], dilations = [3, 1], output_padding = [2, 0]>"})
    check("y = ConvTranspose" + std::string(form) + "(x, w, c)",
          {x, {"w", spread({4, 2, 2, 3}, -1, 1)}, bias});
  check("y = ConvTranspose<group = 2, strides = [2, 1]>(x, w)",
        {x, {"w", spread({4, 1, 2, 2}, -1, 1)}});
  check("y = ConvTranspose(x, w)",
        {{"x", spread({1, 2, 4}, -1, 1)}, {"w", spread({2, 3, 3}, -1, 1)}});
  for (const char* p : {"1", "2", "3"}) {
    for (const char* form :
         {"kernel_shape = [2, 2]", "kernel_shape = [2, 3], strides = [2, 1], pads = [1, 0, 0, 2]",
          "kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1"})
      check("y = LpPool<p = " + std::string(p) + ", " + form + ">(x)",
            {{"x", spread({1, 2, 5, 4}, 0.1, 1)}});
  }
}
TEST(Gradient, TransposedConvolutions) { transposed_convolutions(Check(hold_against_differences)); }

void equations(const Check& check) {
  const Input a{"a", spread({2, 3, 4}, -1, 1)}, b{"b", spread({2, 4, 2}, -1, 1)};
  for (const char* equation : {"bij,bjk->bik", "bij,bjk->", "bij,bjk->kbi", "bij,bjk"})
    check("y = Einsum<equation = \"" + std::string(equation) + "\">(a, b)", {a, b});
  const Input square{"a", spread({2, 3, 3}, -1, 1)};
  for (const char* equation : {"bii->bi", "bii->b", "bij->", "...ij->...ji", "bij,bij,bjk->ik"}) {
    const std::string text = equation;
    check("y = Einsum<equation = \"" + text + "\">(a" +
              (text.find(',') == std::string::npos ? "" : ", a, a") + ")",
          {square});
  }
  check("y = Einsum<equation = \"...i,...i->...\">(a, b)",
        {{"a", spread({2, 3, 4}, -1, 1)}, {"b", spread({4}, -1, 1)}});
  check("y = Einsum<equation = \"ij,ij->ij\">(a, b)",
        {{"a", spread({2, 1}, -1, 1)}, {"b", spread({1, 3}, -1, 1)}});
}
TEST(Gradient, Equations) { equations(Check(hold_against_differences)); }

void attention(const Check& check) {
  const Input q{"q", spread({2, 4, 3, 2}, -1, 1)}, k{"k", spread({2, 2, 5, 2}, -1, 1)},
      v{"v", spread({2, 2, 5, 3}, -1, 1)}, m{"m", spread({3, 5}, -1, 1)};
  check("y = Attention(q, k, v)", {q, k, v});
  check("y = Attention<is_causal = 1, scale = 0.7, softcap = 0.9>(q, k, v, m)", {q, k, v, m});
  check(
      "m = Constant<value = bool[3, 4] {1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1}>()\n y = Attention(q, "
      "k, v, m)",
      {q, k, v});
  check("y = Attention(q, k, v, m)", {q, k, v, {"m", spread({4, 1, 3}, -1, 1)}});
  check(
      "r, pk, pv = Attention<q_num_heads = 2, kv_num_heads = 1>(q, k, v, , past, old)\n"
      " s = ReduceSum<keepdims = 0>(pk)\n t = ReduceSum<keepdims = 0>(pv)\n u = Mul(s, t)\n"
      " y = Mul(r, u)",
      {{"q", spread({2, 3, 4}, -1, 1)},
       {"k", spread({2, 2, 2}, -1, 1)},
       {"v", spread({2, 2, 3}, -1, 1)},
       {"past", spread({2, 1, 3, 2}, -1, 1)},
       {"old", spread({2, 1, 3, 3}, -1, 1)}});
}
TEST(Gradient, Attention) { attention(Check(hold_against_differences)); }

void scales_of_bytes(const Check& check) {
  const std::string bytes =
      "x = Constant<value = int8[2, 3, 2] {1, -2, 3, 2, -1, 2, 1, -3, 3, 2, 1, -2}>()\n"
      " f = Cast<to = 1>(s)\n ";
  const std::string to_double = "\n y = Cast<to = 11>(z)";
  const auto scales = [](Shape shape) { return Input{"s", spread(std::move(shape), 0.05, 0.1)}; };
  check(
      bytes +
          "o = Constant<value = int8 {1}>()\n one = Squeeze(f)\n z = DequantizeLinear(x, one, o)" +
          to_double,
      {scales({1})}, Precision::float32);
  for (const char* axis : {"1", "-2"})
    check(bytes + "z = DequantizeLinear<axis = " + axis + ">(x, f)" + to_double, {scales({3})},
          Precision::float32);
  check(bytes + "z = DequantizeLinear<axis = 0>(x, f)" + to_double, {scales({2})},
        Precision::float32);
  // The second block is a part of one.
  check(bytes +
            "o = Constant<value = int8[2, 2, 2] {1, 0, -1, 1, 2, 0, 1, -1}>()\n z = "
            "DequantizeLinear<axis = 1, block_size = 2>(x, f, o)" +
            to_double,
        {scales({2, 2, 2})}, Precision::float32);
}
TEST(Gradient, ScalesOfBytes) { scales_of_bytes(Check(hold_against_differences)); }

void sequence_layers(const Check& check) {
  // These operators take no float64.
  const auto cast = [](const std::string& names) {
    std::string text;
    for (const char name : names)
      text += fmt::format("{0}f = Cast<to = 1>({0})\n ", std::string(1, name));
    return text;
  };
  const Input x{"x", spread({2, 3, 5}, -1, 1)}, w{"w", spread({3, 1, 3}, -1, 1)};
  const Input b{"b", spread({3}, -1, 1)}, p{"p", spread({2, 3, 2}, -1, 1), false};
  const std::string to_double = "\n y = Cast<to = 11>(yf)";
  check(cast("xw") + "yf, s = CausalConvWithState(xf, wf)" + to_double, {x, w}, Precision::float32);
  check(cast("xwbp") + "yf, s = CausalConvWithState<activation = \"silu\">(xf, wf, bf, pf)" +
            to_double,
        {x, w, b, p}, Precision::float32);
  const Input q{"q", spread({2, 3, 8}, -1, 1)}, k{"k", spread({2, 3, 4}, -1, 1)};
  const Input v{"v", spread({2, 3, 6}, -1, 1)}, s{"s", spread({2, 2, 2, 3}, -1, 1), false};
  const std::string heads = "q_num_heads = 4, kv_num_heads = 2";
  check(cast("qkv") + "yf, o = LinearAttention<update_rule = \"linear\", " + heads +
            ">(qf, kf, vf)" + to_double,
        {q, k, v}, Precision::float32);
  for (const int64_t size : {2, 4}) {
    check(cast("qkvsd") + "yf, o = LinearAttention<scale = 0.7, update_rule = \"gated\", " + heads +
              ">(qf, kf, vf, sf, df)" + to_double,
          {q, k, v, s, {"d", spread({2, 3, size}, -1, 0)}}, Precision::float32);
  }
  for (const int64_t size : {1, 2}) {
    const Input beta{"b", spread({2, 3, size}, 0.2, 0.9)};
    check(cast("qkvb") + "yf, o = LinearAttention<update_rule = \"delta\", " + heads +
              ">(qf, kf, vf, , , bf)" + to_double,
          {q, k, v, beta}, Precision::float32);
    check(cast("qkvsdb") + "yf, o = LinearAttention<" + heads + ">(qf, kf, vf, sf, df, bf)" +
              to_double,
          {q, k, v, s, {"d", spread({2, 3, 2}, -1, 0)}, beta}, Precision::float32);
  }
}
TEST(Gradient, SequenceLayers) { sequence_layers(Check(hold_against_differences)); }

void for_all_groups(const Check& check) {
  for (auto* group : {unary_operators, broadcast_operators,
                      products,        reductions,
                      movement,        layers,
                      more_movement,   windows,
                      losses,          normalizations,
                      choices,         branches,
                      iterations,      recurrent_layers,
                      linear_maps,     transposed_convolutions,
                      equations,       attention,
                      sequence_layers, scales_of_bytes})
    group(check);
}

TEST(Gradient, InFloat32AndWithOpenSizes) { for_all_groups(Check(hold_other_forms)); }

// A rule without a case cannot be: what the cases above do not name fails here.
TEST(Gradient, EveryRuleHasACase) {
  std::string bodies;
  const Check collect(
      [&](const std::string& body, const auto&, Precision) { bodies += body + "\n"; });
  for_all_groups(collect);
  const auto is_named = [&](const std::string& op, const std::string& value) {
    // "= Op(" or "= Op<... value ...>": the attributes of variants are words or numbers.
    const std::regex call("= " + op + "(\\(|\\s*<)" +
                          (value.empty() ? "" : "[^>]*= \"?" + value + "\"?"));
    return std::regex_search(bodies, call);
  };
  const std::vector<std::string> names = rewrite::gradient_names();
  EXPECT_GT(names.size(), 100u);
  for (const std::string& name : names) {
    const size_t dot = name.find('.');
    const std::string value = dot == std::string::npos ? "" : name.substr(dot + 1);
    if (name == "SumLike") continue;  // which no model can name: the gradient of a gradient has it
    EXPECT_TRUE(is_named(name.substr(0, dot), value)) << "no case has " << name;
  }
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
  EXPECT_NE(message("y = DeformConv(x, x, x)\n d = ai.onnx.preview.training.Gradient<xs = [\"x\"], "
                    "y = \"y\">(x)")
                .find("has no gradient"),
            std::string::npos);
  EXPECT_NE(
      message("y = Exp(x)\n d = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"q\">(x)")
          .find("'q'"),
      std::string::npos);
}

TEST(Gradient, NumbersDrawnInAGraphNeedASeed) {
  const auto model = [](const std::string& options, const std::string& mode) {
    return Model::from_text(
        std::string(header) +
        "g (float[64] x) => (float[64] y, float[64] d) {\n"
        " n = Constant<value = int64 {2}>()\n go = Constant<value = bool {1}>()\n"
        " y = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r) {\n"
        "  o = Identity(c)\n half = Constant<value_float = 0.5>()\n"
        "  r, m = Dropout" +
        options + "(v, half" + mode +
        ") }>\n s = ReduceSum<keepdims = 0>(y)\n"
        " d = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"s\">(x)\n}");
  };
  try {
    const Session session(model("", ", go"));
    FAIL() << "the gradient would be that of other numbers";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("Dropout"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("give that node a seed"), std::string::npos);
  }
  for (const auto& [options, mode] : {std::pair("<seed = 7>", ", go"), std::pair("", "")}) {
    const Session session(model(options, mode));
    const auto outputs = session.run({{"x", Tensor::of<float>(std::vector<float>(64, 1), {64})}});
    const auto y = outputs[0].tensor().elements<float>(), d = outputs[1].tensor().elements<float>();
    for (size_t i = 0; i < 64; ++i) EXPECT_EQ(d[i], y[i]) << i;  // of x = 1 both are the factor
  }
}

}  // namespace
}  // namespace sardonyx
