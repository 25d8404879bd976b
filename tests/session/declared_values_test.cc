// What a model declares of the values between its nodes, and scalars that come with dimensions.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

struct Loaded {
  explicit Loaded(const std::string& graph, bool plain = false, bool strict = false)
      : model(Model::from_text(
            "<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph,
            {.strict = strict, .warn = [this](const Warning& w) { warnings.push_back(w); }})),
        session(model, options_of(plain)) {}

  static SessionOptions options_of(bool plain) {
    SessionOptions options;
    options.reference = plain, options.threads = 1;
    return options;
  }

  std::vector<Warning> warnings;
  Model model;
  Session session;
};

std::string graph_with(const std::string& declared) {
  return "g (float[n, 4] x) => (float[n, 4] z) <" + declared + "> { h = Relu(x) z = Neg(h) }";
}

TEST(DeclaredValues, ContradictionsAreWarnedOfWhenTheSessionIsMade) {
  struct Case {
    const char* declared;
    const char* rule;
    const char* says;
  };
  const Case cases[] = {
      {"float[n, 5] h", "G-20", "value_info declares 'h' as float[n,5]; the node makes float[n,4]"},
      {"float[4] h", "G-20", "declares 'h' as float[4]"},
      {"int32[n, 4] h", "SH-17", "declares 'h' as int32[n,4]"},
  };
  for (const Case& c : cases) {
    for (const bool plain : {false, true}) {
      const Loaded made(graph_with(c.declared), plain);
      ASSERT_EQ(made.warnings.size(), 1u) << c.declared;
      EXPECT_EQ(made.warnings[0].rule, c.rule);
      EXPECT_EQ(made.warnings[0].place, "Relu making 'h'");
      EXPECT_NE(made.warnings[0].message.find(c.says), std::string::npos)
          << made.warnings[0].message;
      // What is computed stands.
      EXPECT_EQ(made.session.run({{"x", Tensor(ElementType::float32, {2, 4})}})[0].tensor().shape(),
                (Shape{2, 4}));
      EXPECT_EQ(made.warnings.size(), 1u);
    }
  }
}

TEST(DeclaredValues, WhatMayBeIsNotWarnedOf) {
  for (const char* declared : {"float[n, 4] h", "float[m, 4] h", "float[7, 4] h", "float[] h",
                               "float[n, 4] nobody", "float[n, 5] z"}) {
    EXPECT_TRUE(Loaded(graph_with(declared)).warnings.empty()) << declared;
  }
}

TEST(DeclaredValues, SecondSessionsSayNothingNew) {
  Loaded made(graph_with("float[n, 5] h"));
  const Session second(made.model, Loaded::options_of(false));
  EXPECT_EQ(made.warnings.size(), 1u);
}

TEST(DeclaredValues, InitializersAndConstantsAreHeldToo) {
  const Loaded made(
      "g (float[3] x) => (float[3] z) <float[3] w = {1, 2, 3}, float[4] w, float[1] c> "
      "{ c = Constant <value = float {2.0}> () h = Mul(w, c) z = Add(x, h) }");
  ASSERT_EQ(made.warnings.size(), 2u);
  EXPECT_EQ(made.warnings[0].place, "initializer 'w'");
  EXPECT_NE(made.warnings[0].message.find("the initializer is float[3]"), std::string::npos);
  EXPECT_NE(made.warnings[1].message.find("'c'"), std::string::npos);
}

// The branch that is taken decides the rank of all that follows: such models are planned by runs.
TEST(DeclaredValues, ModelsThatRunsPlanAreHeldOnce) {
  const std::string graph =
      "g (float[a, b] x) => (z) <float[a, 9] s, float[a, b] h> { h = Relu(x) "
      "one = Constant <value = int64 {1}> () shape = Shape <start = 1> (x) "
      "size = Squeeze(shape) is_one = Equal(size, one) "
      "s = If (is_one) <then_branch = t () => (y) { axes = Constant <value = int64[1] {1}> () "
      "y = Squeeze(h, axes) }, else_branch = e () => (w) { w = Identity(h) }> "
      "k = Concat <axis = 0> (h, h) z = Neg(s) }";
  Loaded made(graph);
  const size_t before = made.warnings.size();
  made.session.run({{"x", Tensor(ElementType::float32, {2, 1})}});
  made.session.run({{"x", Tensor(ElementType::float32, {2, 3})}});
  EXPECT_EQ(made.warnings.size(), before);
}

constexpr const char* scalar_graph = "g (float[2] x, float s) => (float[2] z) { z = Mul(x, s) }";

std::vector<Value> run_scaled(const Session& session, const Shape& shape) {
  Tensor x(ElementType::float32, {2}), s(ElementType::float32, shape);
  x.mutable_elements<float>()[0] = 3, x.mutable_elements<float>()[1] = 5;
  for (int64_t i = 0; i < s.size(); ++i) s.mutable_elements<float>()[static_cast<size_t>(i)] = 2;
  return session.run({{"x", x}, {"s", s}});
}

TEST(ScalarInputs, OneElementIsTakenWithAWarning) {
  for (const bool plain : {false, true}) {
    const Loaded made(scalar_graph, plain);
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1}, Shape{1}}) {
      const std::vector<Value> z = run_scaled(made.session, shape);
      EXPECT_EQ(z[0].tensor().shape(), (Shape{2}));
      EXPECT_EQ(z[0].tensor().elements<float>()[1], 10.0f);
    }
    ASSERT_EQ(made.warnings.size(), 1u);
    EXPECT_EQ(made.warnings[0].to_string(),
              "input 's': the model takes a scalar, and is given one element of shape [1]; the "
              "element is taken; give it without dimensions");
  }
}

TEST(ScalarInputs, NothingElseIsTaken) {
  const Loaded made(scalar_graph), strict(scalar_graph, false, true);
  EXPECT_THROW(run_scaled(made.session, {2}), Error);
  EXPECT_THROW(run_scaled(made.session, {0}), Error);
  EXPECT_THROW(run_scaled(strict.session, {1}), Error);
  EXPECT_TRUE(made.warnings.empty());
}

}  // namespace
}  // namespace sardonyx
