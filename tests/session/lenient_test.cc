// Lenient reading: models that break a rule and leave no doubt run, with one warning for each rule;
// LoadOptions::strict and what is ambiguous refuse. The checker goes on reporting all of them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "check/check.h"
#include "sardonyx/session.h"
#include "session/model.h"
#include "wire/text_parse.h"

namespace sardonyx {
namespace {

const std::string opset_21 = "<ir_version: 10, opset_import: [\"\" : 21]>\n";

struct Loaded {
  Model model;
  std::vector<Warning> warnings;
};

Loaded load(const std::string& text, bool strict = false) {
  std::vector<Warning> warnings;
  LoadOptions options;
  options.strict = strict;
  options.warn = [&](const Warning& warning) { warnings.push_back(warning); };
  Model model = Model::from_text(text, options);
  model.implementation().judged();
  return {std::move(model), std::move(warnings)};
}

Tensor numbers(std::vector<float> elements) {
  const auto count = static_cast<int64_t>(elements.size());
  return Tensor::of<float>(elements, {count});
}

std::vector<float> elements(const Value& value) {
  const auto span = value.tensor().elements<float>();
  return {span.begin(), span.end()};
}

// Runs leniently, planned and plain, with one warning of the rule; strict loading refuses.
void expect_mended(const std::string& text, const std::string& rule,
                   const std::vector<NamedValue>& inputs, const std::vector<float>& expected) {
  const Loaded loaded = load(text);
  ASSERT_EQ(loaded.warnings.size(), 1u) << text;
  EXPECT_EQ(loaded.warnings[0].rule, rule) << loaded.warnings[0].to_string();
  EXPECT_FALSE(loaded.warnings[0].place.empty());
  EXPECT_FALSE(loaded.warnings[0].advice.empty());
  for (const bool plain : {false, true}) {
    const Session session(loaded.model, {.threads = 1, .reference = plain});
    EXPECT_EQ(elements(session.run(inputs).at(0)), expected) << text;
  }
  EXPECT_TRUE(check::has_errors(check::check(wire::parse_model(text)))) << text;
}

void expect_strict_refuses(const std::string& text, const std::string& rule) {
  const Loaded loaded = load(text, true);
  try {
    const Session session(loaded.model, {.threads = 1});
    ADD_FAILURE() << "no error: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_model);
    EXPECT_NE(std::string(error.what()).find("[" + rule + "]"), std::string::npos) << error.what();
  }
}

void expect_refused(const std::string& text) {
  const Loaded loaded = load(text);
  EXPECT_TRUE(loaded.warnings.empty());
  EXPECT_THROW(Session(loaded.model, {.threads = 1}), Error) << text;
}

TEST(Lenient, NodesOutOfOrder) {
  const std::string text = opset_21 +
                           "g (float[N] x) => (float[N] y) {\n"
                           "  y = Add (a, b)\n  b = Neg (a)\n  a = Mul (x, x) }";
  expect_mended(text, "G-03", {{"x", numbers({1, 2})}}, {0, 0});
  expect_strict_refuses(text, "G-03");
}

TEST(Lenient, NodesOutOfOrderInBranchesAndFunctions) {
  const std::string branch =
      opset_21 +
      "g (bool c, float[N] x) => (float[N] y) {\n"
      "  y = If (c) <then_branch = t () => (float[N] o) { o = Neg (a)\n a = Mul (x, x) },\n"
      "              else_branch = e () => (float[N] p) { p = Neg (x) }> }";
  expect_mended(branch, "G-04", {{"c", Tensor::of<bool>({true}, {})}, {"x", numbers({1, 2})}},
                {-1, -4});
  const std::string function =
      "<ir_version: 10, opset_import: [\"\" : 21, \"f\" : 1]>\n"
      "g (float[N] x) => (float[N] y) { y = f.F (x) }\n"
      "<domain: \"f\", opset_import: [\"\" : 21]>\n"
      "F (a) => (c) { c = Neg (b)\n b = Mul (a, a) }";
  expect_mended(function, "F-07", {{"x", numbers({1, 2})}}, {-1, -4});
}

// What an outer node makes late is seen by a branch of an earlier one.
TEST(Lenient, CapturedValuesOutOfOrder) {
  expect_mended(opset_21 +
                    "g (bool c, float[N] x) => (float[N] y) {\n"
                    "  y = If (c) <then_branch = t () => (float[N] o) { o = Neg (a) },\n"
                    "              else_branch = e () => (float[N] p) { p = Neg (x) }>\n"
                    "  a = Mul (x, x) }",
                "G-03", {{"c", Tensor::of<bool>({true}, {})}, {"x", numbers({1, 2})}}, {-1, -4});
}

TEST(Lenient, CyclesStayErrors) {
  expect_refused(opset_21 + "g (float[N] x) => (float[N] y) { a = Add (x, y)\n y = Neg (a) }");
}

TEST(Lenient, OperatorSetsThatNobodyImports) {
  const std::string none =
      "<ir_version: 10, opset_import: [\"ai.onnx.ml\" : 3]>\n"
      "g (float[N] x) => (float[N] y) { y = Neg (x) }";
  expect_mended(none, "M-06", {{"x", numbers({1, 2})}}, {-1, -2});
  expect_strict_refuses(none, "M-06");
  expect_mended(
      opset_21 + "g (float[N] x) => (float[N] y) { y = com.microsoft.QuickGelu <alpha = 0.0> (x) }",
      "O-04", {{"x", numbers({2, 4})}}, {1, 2});
}

// The newest version whose attributes fit: ReduceSum took its axes as an attribute up to 12.
TEST(Lenient, TheImportedVersionFitsTheNodes) {
  const Loaded loaded = load(
      "<ir_version: 7, opset_import: [\"ai.onnx.ml\" : 1]>\n"
      "g (float[N] x) => (float[M] y) { y = ReduceSum <axes = [0]> (x) }");
  ASSERT_EQ(loaded.warnings.size(), 1u);
  EXPECT_NE(loaded.warnings[0].advice.find("version 12"), std::string::npos)
      << loaded.warnings[0].advice;
}

TEST(Lenient, TwoImportsOfADomain) {
  const Loaded loaded = load(
      "<ir_version: 10, opset_import: [\"\" : 9, \"\" : 21]>\n"
      "g (float[N] x) => (float[N] y) { y = Neg (x) }");
  ASSERT_EQ(loaded.warnings.size(), 1u);
  EXPECT_EQ(loaded.warnings[0].rule, "M-08");
  EXPECT_NO_THROW(Session(loaded.model, {.threads = 1}));
}

// The operator came with opset 20.
TEST(Lenient, OperatorsBeforeTheirVersion) {
  const std::string text =
      "<ir_version: 6, opset_import: [\"\" : 11]>\n"
      "g (float[N] x) => (float[N] y) { y = Gelu (x) }";
  expect_mended(text, "O-04", {{"x", numbers({0})}}, {0});
  expect_strict_refuses(text, "O-04");
}

// ONNX Runtime has it in ai.onnx, before the standard too.
TEST(Lenient, OperatorsThatOthersPutIntoTheStandardsDomain) {
  const Loaded loaded = load(
      "<ir_version: 6, opset_import: [\"\" : 11]>\n"
      "g (float[1, N] x, float[N] s) => (float[1, N] y) {\n"
      "  y = LayerNormalization <epsilon = 0.0> (x, s) }");
  ASSERT_EQ(loaded.warnings.size(), 1u);
  EXPECT_EQ(loaded.warnings[0].rule, "O-12");
  const Session session(loaded.model, {.threads = 1});
  const auto made = session.run({{"x", Tensor::of<float>({1, 3}, {1, 2})}, {"s", numbers({1, 1})}});
  EXPECT_EQ(elements(made[0]), (std::vector<float>{-1, 1}));
}

// A misspelt attribute says nothing of the version; it is warned of by itself.
TEST(Lenient, MisspeltAttributesDoNotHideTheVersion) {
  const Loaded loaded = load(
      "<ir_version: 6, opset_import: [\"\" : 11]>\n"
      "g (float[1, N] x) => (float[1, N] y) { y = Gelu <aproximate = 0.1> (x) }");
  ASSERT_EQ(loaded.warnings.size(), 2u);
  EXPECT_EQ(loaded.warnings[0].rule, "O-04");
  EXPECT_EQ(loaded.warnings[1].rule, "D-23");
  EXPECT_NO_THROW(Session(loaded.model, {.threads = 1}));
}

TEST(Lenient, ImportsOfVersionsBelowOne) {
  expect_mended(
      "<ir_version: 8, opset_import: [\"\" : 0, \"\" : 13]>\n"
      "g (float[N] x) => (float[N] y) { y = Neg (x) }",
      "M-10", {{"x", numbers({1, 2})}}, {-1, -2});
}

TEST(Lenient, AttributesOfAnotherVersion) {
  const std::string text =
      opset_21 + "g (float[2, 2] x) => (float[2, 1] y) { y = ReduceSum <axes = [1]> (x) }";
  expect_mended(text, "D-23", {{"x", Tensor::of<float>({1, 2, 3, 4}, {2, 2})}}, {3, 7});
  // Inside a function the function's import counts.
  expect_mended(
      "<ir_version: 10, opset_import: [\"\" : 9, \"f\" : 1]>\n"
      "g (float[2, 2] x) => (float[2, 1] y) { y = f.F (x) }\n"
      "<domain: \"f\", opset_import: [\"\" : 21]>\n"
      "F (a) => (c) { c = ReduceSum <axes = [1]> (a) }",
      "D-23", {{"x", Tensor::of<float>({1, 2, 3, 4}, {2, 2})}}, {3, 7});
}

// No version knows it: it is said, and without effect.
TEST(Lenient, AttributesOfNoVersion) {
  expect_mended(opset_21 + "g (float[N] x) => (float[N] y) { y = Neg <slope = 2> (x) }", "D-23",
                {{"x", numbers({1, 2})}}, {-1, -2});
}

TEST(Lenient, ValuesAssignedTwice) {
  const std::string equal = opset_21 +
                            "g (float[N] x) => (float[N] y) {\n"
                            "  c = Constant <value_float = 2.0> ()\n"
                            "  c = Constant <value_float = 2.0> ()\n  y = Mul (x, c) }";
  expect_mended(equal, "G-21", {{"x", numbers({1, 2})}}, {2, 4});
  expect_strict_refuses(equal, "G-21");
  expect_mended(opset_21 +
                    "g (float[N] x) => (float[N] y) {\n"
                    "  u = Neg (x)\n  u = Abs (x)\n  y = Mul (x, x) }",
                "G-21", {{"x", numbers({1, 2})}}, {1, 4});
  expect_refused(opset_21 +
                 "g (float[N] x) => (float[N] y) {\n"
                 "  c = Constant <value_float = 2.0> ()\n"
                 "  c = Constant <value_float = 3.0> ()\n  y = Mul (x, c) }");
  expect_refused(opset_21 +
                 "g (float[N] x) => (float[N] y) { y = RandomNormalLike (x)\n"
                 "  y = RandomNormalLike (x) }");
}

TEST(Lenient, BranchesThatListInputs) {
  expect_mended(opset_21 +
                    "g (bool c, float[N] x) => (float[N] y) {\n"
                    "  y = If (c) <then_branch = t (float[N] x) => (float[N] o) { o = Neg (x) },\n"
                    "              else_branch = e () => (float[N] p) { p = Abs (x) }> }",
                "S-11", {{"c", Tensor::of<bool>({true}, {})}, {"x", numbers({1, 2})}}, {-1, -2});
  expect_refused(opset_21 +
                 "g (bool c, float[N] x) => (float[N] y) {\n"
                 "  y = If (c) <then_branch = t (float[N] z) => (float[N] o) { o = Neg (z) },\n"
                 "              else_branch = e () => (float[N] p) { p = Abs (x) }> }");
}

TEST(Lenient, DeadNodesThatAreBroken) {
  expect_mended(opset_21 +
                    "g (float[N] x) => (float[N] y) {\n"
                    "  dead = NoSuchOperator (x)\n  deader = Neg (dead)\n  y = Neg (x) }",
                "O-04", {{"x", numbers({1, 2})}}, {-1, -2});
  expect_refused(opset_21 +
                 "g (float[N] x) => (float[N] y) {\n"
                 "  live = NoSuchOperator (x)\n  y = Neg (live) }");
}

// A Cast to strings writes booleans as words, which a Cast to any number reads.
TEST(Lenient, CoefficientsWithoutColumns) {
  const auto model = [](const std::string& x, const std::string& node) {
    return "<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.ml\" : 1]>\ng (" + x +
           " x) => (float[n, t] y) { " + node + " }";
  };
  const std::string regressor =
      "y = ai.onnx.ml.LinearRegressor <targets = 2, coefficients = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> "
      "(x)";
  const Tensor row = Tensor::of<float>({1, 10}, {1, 2});
  const Loaded loaded = load(model("float[1, 2]", regressor));
  ASSERT_EQ(loaded.warnings.size(), 1u);
  EXPECT_NE(loaded.warnings[0].to_string().find("the first 4 count"), std::string::npos);
  for (const bool plain : {false, true}) {
    const Session session(loaded.model, {.threads = 1, .reference = plain});
    EXPECT_EQ(elements(session.run({{"x", row}}).at(0)), (std::vector<float>{21, 43}));
  }
  // The classes of a classifier are as many as its intercepts.
  const std::string classifier =
      "label, y = ai.onnx.ml.LinearClassifier <classlabels_ints = [0, 1, 2], intercepts = [0.0, "
      "0.0, "
      "0.0], coefficients = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0]> (x)";
  const Loaded classes = load(model("float[1, 2]", classifier));
  EXPECT_EQ(classes.warnings.size(), 1u);
  const Session session(classes.model, {.threads = 1});
  EXPECT_EQ(elements(session.run({{"x", row}}).at(0)), (std::vector<float>{1, 10, 11}));
  // As many as there are columns for; columns that are open; too few.
  EXPECT_TRUE(load(model("float[1, 3]", regressor)).warnings.empty());
  EXPECT_TRUE(load(model("float[1, c]", regressor)).warnings.empty());
  const Loaded few = load(model("float[1, 4]", regressor));
  EXPECT_TRUE(few.warnings.empty());
  EXPECT_THROW(Session(few.model, {.threads = 1}), Error);
  EXPECT_THROW(Session(load(model("float[1, 2]", regressor), true).model, {.threads = 1}), Error);
}

TEST(Lenient, WordsForBooleansInCasts) {
  const Model model = Model::from_text(
      opset_21 +
      "g (string[N] x) => (float[N] a, int8[N] b, bool[N] c) {\n"
      "  a = Cast <to = 1> (x)\n  b = Cast <to = 3> (x)\n  c = Cast <to = 9> (x) }");
  for (const bool plain : {false, true}) {
    const Session session(model, {.threads = 1, .reference = plain});
    const auto run = [&](std::vector<std::string> words) {
      const auto count = static_cast<int64_t>(words.size());
      return session.run({{"x", Tensor::of<std::string>(words, {count})}});
    };
    const auto made = run({"True", "false", "TRUE", "1"});
    EXPECT_EQ(elements(made[0]), (std::vector<float>{1, 0, 1, 1}));
    EXPECT_EQ(made[1].tensor().elements<int8_t>()[1], 0);
    EXPECT_EQ(made[1].tensor().elements<int8_t>()[2], 1);
    EXPECT_TRUE(made[2].tensor().elements<bool>()[0]);
    EXPECT_THROW(run({"yes"}), Error);
  }
}

// A well-formed model is neither changed nor warned of.
TEST(Lenient, SoundModelsAreLeftAlone) {
  const Loaded loaded =
      load(opset_21 + "g (float[N] x) => (float[N] y) { a = Neg (x)\n y = Abs (a) }");
  EXPECT_TRUE(loaded.warnings.empty());
  EXPECT_TRUE(loaded.model.implementation().judged().findings.empty());
}

}  // namespace
}  // namespace sardonyx
