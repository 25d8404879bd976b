// The operator Gradient against differences of the function itself.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "autodiff/gradient.h"
#include "gradient_cases.h"
#include "sardonyx/session.h"
#include "schema/schema.h"

namespace sardonyx::test {
namespace {

constexpr const char* gradient_header =
    "<ir_version: 10, opset_import: [\"\" : 27, \"ai.onnx.preview.training\" : 1, "
    "\"com.microsoft\" : 1, \"ai.onnx.preview\" : 1]>\n";

// How a case is put: as it stands, in float32, or without saying how large its inputs are.
enum class Form { float64, float32, open_sizes, open_batch };

std::string declared(const Input& input, Form form) {
  const std::string name = input.name + (form == Form::float32 ? "_given" : "");
  if (input.value.shape().empty()) return "double " + name;
  std::string text = "double[";
  size_t axis = 0;
  for (const int64_t size : input.value.shape()) {
    text += axis == 0 ? "" : ", ";
    const bool open =
        form == Form::open_sizes || (form == Form::open_batch && axis == 0 && input.name == "x");
    text += open ? input.name + "_" + std::to_string(axis) : std::to_string(size);
    ++axis;
  }
  return text + "] " + name;
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
      gradient_header + ("g (" + formals + ") => (" + results + ") {\n") + casts +
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

void compare_with_differences(const std::string& body, const std::vector<Input>& inputs,
                              Precision precision) {
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

// One case that fails keeps no other from being tried.
void hold_against_differences(const std::string& body, const std::vector<Input>& inputs,
                              Precision precision) {
  SCOPED_TRACE(body);
  try {
    compare_with_differences(body, inputs, precision);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

// The same in float32, and with inputs of open sizes, which may have no gradient but no wrong one.
void hold_other_forms(const std::string& body, const std::vector<Input>& inputs,
                      Precision precision) {
  if (precision == Precision::float32) return;  // it says itself what is computed in float32
  SCOPED_TRACE(body);
  std::vector<Value> expected;
  try {
    expected = run_case(Session(model_of(body, inputs, Form::float64)), inputs, Form::float64);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
    return;
  }
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

// A batch of any size, as training has it.
TEST(Gradient, OfConvolutionsAndWindowsWithAnOpenBatch) {
  int cases = 0;
  const Check check([&](const std::string& body, const std::vector<Input>& inputs, Precision) {
    SCOPED_TRACE(body);
    ++cases;
    try {
      const auto expected =
          run_case(Session(model_of(body, inputs, Form::float64)), inputs, Form::float64);
      const auto found =
          run_case(Session(model_of(body, inputs, Form::open_batch)), inputs, Form::open_batch);
      for (size_t k = 0; k < expected.size(); ++k) {
        ASSERT_EQ(found[k].tensor().shape(), expected[k].tensor().shape());
        const auto wanted = expected[k].tensor().elements<double>();
        const auto got = found[k].tensor().elements<double>();
        for (size_t i = 0; i < wanted.size(); ++i)
          EXPECT_NEAR(got[i], wanted[i], 1e-12 * (1 + std::abs(wanted[i]))) << k << " " << i;
      }
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  });
  for (const GradientCases& group : gradient_cases()) {
    for (const char* name : {"RandomConvolutions", "RandomDeformedConvolutions", "RandomPools",
                             "RandomNormalizations", "RandomLosses", "RandomSamples"}) {
      if (std::string_view(group.name) == name) group.hand_to(check);
    }
  }
  EXPECT_GT(cases, 200);
}

class GradientOf : public ::testing::TestWithParam<GradientCases> {};

TEST_P(GradientOf, IsThatOfDifferences) { GetParam().hand_to(Check(hold_against_differences)); }
TEST_P(GradientOf, IsTheSameInFloat32AndWithOpenSizes) {
  GetParam().hand_to(Check(hold_other_forms));
}
INSTANTIATE_TEST_SUITE_P(All, GradientOf, ::testing::ValuesIn(gradient_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// A rule without a case cannot be: what no case names fails here.
TEST(Gradient, EveryRuleHasACase) {
  std::string bodies;
  const Check collect(
      [&](const std::string& body, const auto&, Precision) { bodies += body + "\n"; });
  for (const GradientCases& cases : gradient_cases()) cases.hand_to(collect);
  const auto is_named = [&](const std::string& op, const std::string& value) {
    // "= Op(" or "= Op<... value ...>": the attributes of variants are words or numbers.
    const std::regex call("= ([a-z.]+\\.)?" + op + "(\\(|\\s*<)" +
                          (value.empty() ? "" : "[^>]*= \"?" + value + "\"?"));
    return std::regex_search(bodies, call);
  };
  const std::vector<std::string> names = autodiff::gradient_names();
  EXPECT_GT(names.size(), 100u);
  for (const std::string& name : names) {
    const size_t dot = name.find('.');
    const std::string value = dot == std::string::npos ? "" : name.substr(dot + 1);
    if (name == "QuantizeLinear") continue;  // gradient_quantization_test.cc
    if (name == "SumLike") continue;  // which no model can name: the gradient of a gradient has it
    EXPECT_TRUE(is_named(name.substr(0, dot), value)) << "no case has " << name;
  }
}

// Operators of the standard whose schemas do not say what is differentiable, and that have none.
const std::map<std::string_view, std::string_view> without_gradient{
    {"Bernoulli", "draws numbers; its input is a probability"},
    {"Constant", "has no inputs"},
    {"ConstantOfShape", "takes a shape"},
    {"ConvInteger", "of whole numbers"},
    {"DynamicQuantizeLinear", "gradient_quantization_test.cc"},
    {"EyeLike", "takes a shape"},
    {"Hardmax", "its values are steps"},
    {"Multinomial", "gives whole numbers"},
    {"NonMaxSuppression", "gives whole numbers"},
    {"OptionalHasElement", "gives a truth value"},
    {"QLinearConv", "of whole numbers"},
    {"QuantizeLinear", "gradient_quantization_test.cc"},
    {"RandomNormal", "has no inputs"},
    {"RandomNormalLike", "takes a shape"},
    {"RandomUniform", "has no inputs"},
    {"RandomUniformLike", "takes a shape"},
    {"SequenceEmpty", "has no inputs"},
    {"SequenceLength", "gives whole numbers"},
    {"StringNormalizer", "of text"},
};

// Whether the standard calls some input and some output differentiable; nullopt where it says
// nothing of any of them.
std::optional<bool> called_differentiable(const schema::Signature& signature) {
  bool in = false, out = false, said = false;
  const auto look = [&](std::span<const schema::Formal> formals, bool& any) {
    for (const schema::Formal& formal : formals) {
      said = said || formal.differentiable != schema::Differentiability::not_said;
      any = any || formal.differentiable == schema::Differentiability::differentiable;
    }
  };
  look(signature.inputs, in), look(signature.outputs, out);
  return said ? std::optional(in && out) : std::nullopt;
}

TEST(Gradient, EveryDifferentiableOperatorIsTried) {
  std::string bodies;
  const Check collect(
      [&](const std::string& body, const auto&, Precision) { bodies += body + "\n"; });
  for (const GradientCases& cases : gradient_cases()) cases.hand_to(collect);
  int tried = 0;
  std::string_view last;
  for (const schema::Signature& signature : schema::all_signatures()) {
    if (!signature.domain.empty() || signature.name == last) continue;
    last = signature.name;
    const schema::Signature& newest = *schema::newest("", last);
    if (newest.deprecated || newest.extra || newest.until != 0) continue;
    const auto called = called_differentiable(newest);
    if (called == std::optional(false)) continue;
    const bool has_case =
        std::regex_search(bodies, std::regex("= " + std::string(last) + "(\\(|\\s*<)"));
    tried += has_case ? 1 : 0;
    if (!called && without_gradient.contains(last)) continue;
    EXPECT_TRUE(has_case) << "no case has " << last;
  }
  EXPECT_GT(tried, 120);
}

TEST(Gradient, ValuesOfItsOwnAndSecondOrder) {
  // At another place than where y stands, and with respect to a value in between.
  const std::string text = std::string(gradient_header) +
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

// A row of zeros has no direction to grow in; the others have theirs.
TEST(Gradient, OfANormIsZeroWhereAllElementsAre) {
  const Session session(Model::from_text(
      gradient_header +
      std::string("g (double[2, 2] x) => (double[] dx) {\n"
                  "k = Constant<value_ints = [1]>()\n n = ReduceL2(x, k)\n"
                  "dx = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"n\">(x)\n}")));
  const auto made =
      session.run({{"x", Tensor::of<double>(std::vector<double>{0, 0, 3, 4}, {2, 2})}})[0].tensor();
  const std::vector<double> expected{0, 0, 0.6, 0.8};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(made.elements<double>()[i], expected[i], 1e-12);
}

// exp(x / alpha) is infinite there, and nothing of it counts.
TEST(Gradient, OfCeluIsOneWhereThePowerOverflows) {
  const Session session(Model::from_text(
      gradient_header +
      std::string("g (double[4] x) => (double[] dx) {\n y = Celu<alpha = 2.0>(x)\n"
                  "dx = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"y\">(x)\n}")));
  const auto made =
      session.run({{"x", Tensor::of<double>(std::vector<double>{5000, 3, 0, -2}, {4})}})[0]
          .tensor();
  const std::vector<double> expected{1, 1, 1, std::exp(-1.0)};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(made.elements<double>()[i], expected[i], 1e-12) << i;
}

// A channel whose values are all alike: there the deviation, which is 0, has no slope.
TEST(Gradient, OfMeanVarianceNormalizationWithoutVariance) {
  for (const bool half : {false, true}) {  // half precision has no number for 1e-9
    const std::string given = half ? "h = Cast<to = 10>(x)\n" : "h = Identity(x)\n";
    const Session session(Model::from_text(
        gradient_header +
        ("g (double[1, 2, 1, 2] x, double[2] w) => (double[] dx) {\n" + given +
         "m = MeanVarianceNormalization(h)\n n = Cast<to = 11>(m)\n"
         " y = Mul(n, w)\n"
         "dx = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"y\">(x)\n}")));
    const auto made =
        session
            .run({{"x", Tensor::of<double>(std::vector<double>{4, 4, 1, 3}, {1, 2, 1, 2})},
                  {"w", Tensor::of<double>(std::vector<double>{2, 6}, {2})}})[0]
            .tensor();
    const double slope = half ? 2 : 2e9;
    const std::vector<double> expected{-slope, slope, 0, 0};
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(made.elements<double>()[i], expected[i], 1e-6 * (1 + std::abs(expected[i]))) << i;
  }
}

// x^0 is 1 everywhere; x^-1, of which it would take none, is infinite at 0.
TEST(Gradient, OfPowersOfZero) {
  const std::string text =
      gradient_header + std::string(
                            "g (double[5] x, double[5] given) => (double[] d, double[] e) {\n"
                            "y = Pow(x, EXPONENT)\n"
                            "d = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = "
                            "\"y\">(x)\n"
                            "e = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = "
                            "\"d\">(x)\n}");
  const std::vector<double> exponents{0, 1, 2, 0, 3}, first{0, 1, 0, 0, 12}, second{0, 0, 2, 0, 12};
  for (const bool constant : {false, true}) {
    SCOPED_TRACE(constant);
    std::string one = text;
    one.replace(one.find("EXPONENT"), 8, constant ? "c" : "given");
    if (constant)
      one.insert(one.find("y = Pow"), "c = Constant<value = double[5] {0, 1, 2, 0, 3}>()\n ");
    const Session session(Model::from_text(one));
    const auto made =
        session.run({{"x", Tensor::of<double>(std::vector<double>{0, 0, 0, 2, 2}, {5})},
                     {"given", Tensor::of<double>(exponents, {5})}});
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_NEAR(made[0].tensor().elements<double>()[i], first[i], 1e-12) << i;
      EXPECT_NEAR(made[1].tensor().elements<double>()[i], second[i], 1e-12) << i;
    }
  }
}

// Of a factor that is 0 alone, the others' product.
TEST(Gradient, OfProductsWithZeros) {
  const Session session(Model::from_text(
      gradient_header +
      std::string("g (double[2, 3] x) => (double[] d, double[] e) {\n"
                  "k = Constant<value_ints = [1]>()\n p = ReduceProd(x, k)\n"
                  "d = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"p\">(x)\n"
                  "c = CumProd(x, k)\n"
                  "e = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"c\">(x)\n}")));
  const auto made =
      session.run({{"x", Tensor::of<double>(std::vector<double>{2, 0, 3, 0, 4, 0}, {2, 3})}});
  const std::vector<double> whole{0, 6, 0, 0, 0, 0}, parts{1, 8, 0, 5, 0, 0};
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(made[0].tensor().elements<double>()[i], whole[i], 1e-12) << i;
    EXPECT_NEAR(made[1].tensor().elements<double>()[i], parts[i], 1e-12) << i;
  }
}

double element_of(const Tensor& tensor, size_t i) {
  return tensor.element_type() == ElementType::float32
             ? static_cast<double>(tensor.elements<float>()[i])
             : tensor.elements<double>()[i];
}

// Inputs of one node may be of several types: the gradient of each is of its own.
TEST(Gradient, OfInputsOfSeveralTypes) {
  struct Case {
    const char* body;
    Shape x, other;
  };
  for (const Case& c : {Case{"y = Pow(x, other)", {2, 3}, {2, 3}},
                        Case{"y = BatchNormalization(x, other, other, other, other)", {2, 3}, {3}},
                        Case{"y = RMSNormalization(x, other)", {2, 3}, {3}},
                        Case{"y = Attention(x, x, x, other)", {1, 1, 2, 3}, {2, 2}},
                        Case{"y = Attention(x, x, other)", {1, 1, 2, 3}, {1, 1, 2, 3}}}) {
    SCOPED_TRACE(c.body);
    std::vector<Value> made[2];
    for (const bool narrow : {false, true}) {
      const std::string type = narrow ? "float" : "double";
      const Session session(Model::from_text(
          gradient_header +
          ("g (double" + to_string(c.x) + " x, " + type + to_string(c.other) +
           " other) => (double[] dx, " + type + "[] dother) {\n ") +
          c.body +
          "\n waves = Sin(y)\n dx, dother = ai.onnx.preview.training.Gradient<xs = [\"x\", "
          "\"other\"], y = \"waves\">(x, other)\n}"));
      Tensor x(ElementType::float64, c.x),
          other(narrow ? ElementType::float32 : ElementType::float64, c.other);
      for (size_t i = 0; i < static_cast<size_t>(x.size()); ++i)
        x.mutable_elements<double>()[i] = 0.5 + 0.25 * static_cast<double>(i);
      for (size_t i = 0; i < static_cast<size_t>(other.size()); ++i) {
        if (narrow)
          other.mutable_elements<float>()[i] = 1.5f - 0.125f * static_cast<float>(i);
        else
          other.mutable_elements<double>()[i] = 1.5 - 0.125 * static_cast<double>(i);
      }
      made[narrow] = session.run({{"x", x}, {"other", other}});
    }
    for (size_t k = 0; k < 2; ++k) {
      const Tensor &wanted = made[0][k].tensor(), &got = made[1][k].tensor();
      ASSERT_EQ(got.shape(), wanted.shape());
      for (size_t i = 0; i < static_cast<size_t>(wanted.size()); ++i)
        EXPECT_NEAR(element_of(got, i), element_of(wanted, i), 1e-5) << k << " " << i;
    }
  }
}

// Constants of formulas are double numbers: what float64 gives is not float32's.
TEST(Gradient, OfErfIsPrecise) {
  const Session session(Model::from_text(
      gradient_header +
      std::string("g (double[1] x) => (double[] dx) {\n y = Erf(x)\n"
                  "dx = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"y\">(x)\n}")));
  const auto made =
      session.run({{"x", Tensor::of<double>(std::vector<double>{0.5}, {1})}})[0].tensor();
  EXPECT_NEAR(made.elements<double>()[0], 2 / std::sqrt(std::numbers::pi) * std::exp(-0.25), 1e-14);
}

TEST(Gradient, WhatYDoesNotDependOnHasNone) {
  const Session session(Model::from_text(
      std::string(gradient_header) +
      "g (float[2] x, float[2] z) => (float[2] d) {\n y = Exp(z)\n"
      " d = ai.onnx.preview.training.Gradient<xs = [\"x\"], zs = [\"z\"], y = \"y\">(x, z)\n}"));
  const auto outputs =
      session.run({{"x", Tensor::of<float>({1, 2}, {2})}, {"z", Tensor::of<float>({1, 2}, {2})}});
  EXPECT_EQ(outputs[0].tensor().elements<float>()[1], 0);
}

TEST(Gradient, ErrorsSayWhatIsMissing) {
  const auto message = [](const std::string& nodes) {
    try {
      const Session session(Model::from_text(
          gradient_header + ("g (float[3, 3] x) => (float[3, 3] d) {\n" + nodes + "}")));
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
  EXPECT_NE(
      message("y = SequenceConstruct(x)\n d = ai.onnx.preview.training.Gradient<xs = [\"x\"], "
              "y = \"y\">(x)")
          .find("is no tensor"),
      std::string::npos);
}

// A model that asks for too much or does not fit costs an error, no memory and no time.
TEST(Gradient, HostileModelsAreRefused) {
  for (const char* nodes :
       {"k = Constant<value = float[1, 1] {1}>()\n s = Constant<value_ints = [1, 1, 1, 1, 1, 1, 1, "
        "1, 1, 1, 1, 1]>()\n"
        " h = Reshape(x, s)\n g = Constant<value = float[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 10] {0, "
        "0, 0, 0, 0, 0, 0, 0, 0, 0}>()\n"
        " y = GridSample<mode = \"cubic\">(h, g)",
        "s = Constant<value_ints = [1, 1, 1]>()\n h = Reshape(x, s)\n"
        " y = AveragePool<kernel_shape = [2000000000], pads = [1000000000, 1999999999], "
        "count_include_pad = 1>(h)",
        "c = Constant<value = bool {1}>()\n y = If(c) <then_branch = t () => (a) { a, m = "
        "Dropout(x, , c) },"
        " else_branch = e () => (b, d) { b = Exp(x)\n d = Exp(x) }>",
        "n = Constant<value = int64 {2}>()\n y = Loop(n, , x) <body = b () => () { k = "
        "RandomNormal<shape = [1]>() }>",
        "y = Scan<num_scan_inputs = -3, body = b (v) => (w) { w = RandomNormalLike(v) }>(x)",
        "y = DeformConv<offset_group = 0>(x, x, x)", "y = MaxRoiPool<pooled_shape = [1]>(x, x)"}) {
    SCOPED_TRACE(nodes);
    EXPECT_THROW(
        {
          const Session session(Model::from_text(
              gradient_header +
              ("g (float[1] x) => (float[1] d) {\n " + std::string(nodes) +
               "\n d = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"y\">(x)\n}")));
          (void)session.run({{"x", Tensor::of<float>({1}, {1})}});
        },
        Error);
  }
}

}  // namespace
}  // namespace sardonyx::test
