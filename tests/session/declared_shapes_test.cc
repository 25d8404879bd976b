// What a model declares of its inputs and outputs, beside what runs are given and make.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

struct Loaded {
  Loaded(const std::string& graph, SessionOptions options = {}, bool strict = false)
      : model(Model::from_text(
            "<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph,
            {.strict = strict, .warn = [this](const Warning& w) { warnings.push_back(w); }})),
        session(model, with_one_thread(std::move(options))) {}

  static SessionOptions with_one_thread(SessionOptions options) {
    options.threads = 1;
    return options;
  }

  std::vector<Warning> warnings;
  Model model;
  Session session;
};

Tensor zeros(const Shape& shape) { return Tensor(ElementType::float32, shape); }

const SessionOptions plain{.reference = true};
const SessionOptions planned{};

std::string refusal(const Session& session, const std::vector<NamedValue>& inputs) {
  try {
    session.run(inputs);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "";
}

TEST(DeclaredShapes, RefusedAlikeByPlannedAndPlainRuns) {
  const std::string graph = "g (float[n, 4] x, float[n] y) => (float[n, 4] z) { z = Relu(x) }";
  const Loaded one(graph, planned, true), other(graph, plain, true);
  const std::vector<std::vector<NamedValue>> wrong = {
      {{"x", zeros({2, 5})}, {"y", zeros({2})}},
      {{"x", zeros({2, 4, 1})}, {"y", zeros({2})}},
      {{"x", zeros({2, 4})}, {"y", zeros({3})}},
      {{"x", Tensor(ElementType::int32, {2, 4})}, {"y", zeros({2})}},
      {{"x", Value(Sequence{})}, {"y", zeros({2})}},
  };
  const char* says[] = {"dimension 1 must be 4, and is 5", "rank 3 instead of 2",
                        "dimension 0 is 3, but 'n' is 2 by dimension 0 of input 'x'",
                        "holds int32, the model takes float[n,4]", "is a sequence"};
  for (size_t i = 0; i < wrong.size(); ++i) {
    const std::string said = refusal(one.session, wrong[i]);
    EXPECT_NE(said.find(says[i]), std::string::npos) << said;
    EXPECT_EQ(said, refusal(other.session, wrong[i]));
  }
  EXPECT_NE(refusal(one.session, wrong[1]).find("[2,4,1]"), std::string::npos);
  EXPECT_NE(refusal(one.session, wrong[2]).find("rename MODEL OUTPUT --dim y.0=NAME"),
            std::string::npos);
}

TEST(DeclaredShapes, InputsKeepTheirOwnSizesUnderOneName) {
  const std::string graph =
      "g (float[n, 2] a, float[n, 2] b, bool c) => (float[n, 2] y, float[n, 2] z) "
      "<float[n, 2] s> { s = Neg(b) y = Concat<axis = 0>(a, s) "
      "z = If(c) <then_branch = t () => (float[n, 2] u) { u = Relu(b) }, "
      "else_branch = e () => (float[n, 2] v) { v = Abs(a) }> }";
  for (const SessionOptions& options : {planned, plain}) {
    Loaded loaded(graph, options);
    const auto shapes = [&](int64_t of_a, int64_t of_b, bool condition) {
      const auto made = loaded.session.run(
          {{"a", zeros({of_a, 2})}, {"b", zeros({of_b, 2})}, {"c", Tensor::scalar(condition)}});
      return std::pair(made.at(0).tensor().shape(), made.at(1).tensor().shape());
    };
    EXPECT_EQ(shapes(2, 3, true), std::pair(Shape({5, 2}), Shape({3, 2})));
    ASSERT_EQ(loaded.warnings.size(), 1u);
    EXPECT_EQ(loaded.warnings[0].rule, "SH-10");
    EXPECT_EQ(loaded.warnings[0].place, "input 'b'");
    EXPECT_EQ(loaded.warnings[0].message,
              "dimension 0 is 3, but 'n' is 2 by dimension 0 of input 'a'");
    EXPECT_NE(loaded.warnings[0].advice.find("rename MODEL OUTPUT --dim b.0=NAME"),
              std::string::npos);
    EXPECT_EQ(shapes(4, 1, false), std::pair(Shape({5, 2}), Shape({4, 2})));
    EXPECT_EQ(loaded.warnings.size(), 1u);
    EXPECT_EQ(shapes(2, 2, true), std::pair(Shape({4, 2}), Shape({2, 2})));
    EXPECT_EQ(loaded.warnings.size(), 2u);  // of y, which has 4 rows where n is 2
  }
}

TEST(DeclaredShapes, OwnSizesThatDoNotFitAreToldWithTheNames) {
  for (const SessionOptions& options : {planned, plain}) {
    const Loaded loaded(
        "g (float[n] a, float[n] b, float[n, n] s, float[2, 2] d) => (float[n] y, float[n, n] z) "
        "<float[2, 2] d = {1, 2, 3, 4}> { y = Add(a, b) t = Transpose(s) z = MatMul(t, d) }",
        options);
    const auto run = [&](int64_t of_b, const Shape& of_s, const Shape& of_d) {
      return refusal(
          loaded.session,
          {{"a", zeros({2})}, {"b", zeros({of_b})}, {"s", zeros(of_s)}, {"d", zeros(of_d)}});
    };
    EXPECT_EQ(run(1, {2, 3}, {2, 2}), "");
    const std::string said = run(3, {2, 2}, {2, 2});
    EXPECT_NE(said.find("'n' is 2 by dimension 0 of input 'a'"), std::string::npos) << said;
    EXPECT_NE(said.find("If these sizes are as they are meant: Add making 'y'"), std::string::npos)
        << said;
    EXPECT_NE(run(1, {2, 3}, {3, 2}).find("input 'd': has shape [3,2], the model takes float[2,2]"),
              std::string::npos);
  }
}

TEST(DeclaredShapes, OwnSizesThatAStepCannotTakeAreToldWithTheNames) {
  for (const SessionOptions& options : {planned, plain}) {
    const Loaded loaded(
        "g (float[n, 3] a, float[n, 3] b) => (float[m, 3] y, float[1] z) <int64[1] three = {3}> {"
        " first = Shape<start = 0, end = 1>(a) z = Cast<to = 1>(first)"
        " shape = Concat<axis = 0>(first, three) y = Reshape(b, shape) }",
        options);
    std::string said;
    try {
      loaded.session.run({{"a", zeros({2, 3})}, {"b", zeros({5, 3})}});
    } catch (const Error& error) {
      said = error.what();
    }
    EXPECT_NE(said.find("'n' is 2 by dimension 0 of input 'a'"), std::string::npos) << said;
    EXPECT_NE(said.find("are meant: Reshape making 'y'"), std::string::npos) << said;
  }
}

TEST(DeclaredShapes, OpenSizesOfInputsHaveTheNamesOfTheirPlaces) {
  for (const SessionOptions& options : {planned, plain}) {
    const Loaded loaded(
        "g (float[?, 4, None] x, float[unk__1, 0, None] y) => (float[?, 4, None] z) "
        "{ z = Relu(x) u = Relu(y) }",
        options);
    const auto& inputs = loaded.session.inputs();
    EXPECT_EQ(inputs[0].type, "float[x.0,4,x.2]");
    EXPECT_EQ(inputs[1].type, "float[y.0,y.1,y.2]");
    EXPECT_EQ(inputs[1].shape->at(1).name, "y.1");
    EXPECT_EQ(inputs[1].shape->at(1).size, std::nullopt);
    EXPECT_EQ(loaded.session.outputs()[0].type, "float[?,4,?]");
    const auto made = loaded.session.run({{"x", zeros({2, 4, 3})}, {"y", zeros({5, 0, 6})}});
    EXPECT_EQ(made.at(0).tensor().shape(), (Shape{2, 4, 3}));
    EXPECT_NE(refusal(loaded.session, {{"x", zeros({2, 5, 3})}, {"y", zeros({5, 7, 6})}})
                  .find("has shape [2,5,3], the model takes float[x.0,4,x.2]: dimension 1"),
              std::string::npos);
    EXPECT_TRUE(loaded.warnings.empty());
  }
}

TEST(DeclaredShapes, OutputsThatAreOthersWarnOnce) {
  const std::string body = " { y = Relu(x) }";
  const std::pair<const char*, const char*> cases[] = {
      {"float[n, 5]", "dimension 1 is 4, and declared as 5"},
      {"float[n]", "rank 2 instead of 1"},
      {"float[n, n]",
       "dimension 1 is 4, and declared as 'n', which is 2 by dimension 0 of input 'x'"},
      {"int64[n, 4]", "is float[2,4], and declared as int64[n,4]"},
  };
  for (const auto& [type, says] : cases) {
    for (const SessionOptions& options : {planned, plain}) {
      Loaded loaded("g (float[n, 4] x) => (" + std::string(type) + " y)" + body, options);
      EXPECT_TRUE(loaded.warnings.empty());
      for (const int64_t n : {2, 2, 3}) {
        EXPECT_EQ(loaded.session.run({{"x", zeros({n, 4})}}).at(0).tensor().shape(), (Shape{n, 4}));
      }
      ASSERT_EQ(loaded.warnings.size(), 1u) << type;
      EXPECT_EQ(loaded.warnings[0].place, "output 'y'");
      EXPECT_NE(loaded.warnings[0].message.find(says), std::string::npos)
          << loaded.warnings[0].message;
      EXPECT_FALSE(loaded.warnings[0].advice.empty());
    }
  }
}

TEST(DeclaredShapes, OutputsThatAreAsDeclaredDoNotWarn) {
  for (const char* type : {"float[n, 4]", "float[m, 4]", "float[?, ?]", "float[0, -1]",
                           "float[None, None]", "float[unk__1, unk__1]"}) {
    for (const SessionOptions& options : {planned, plain}) {
      Loaded loaded(std::string("g (float[n, 4] x) => (") + type + " y) { y = Relu(x) }", options);
      loaded.session.run({{"x", zeros({2, 4})}});
      EXPECT_TRUE(loaded.warnings.empty()) << loaded.warnings[0].to_string();
    }
  }
}

// Sizes that data decide are looked at in every run; sizes of inputs when they change.
TEST(DeclaredShapes, OutputsAreLookedAtWheneverTheirShapesMayChange) {
  Loaded late("g (float[n] x) => (int64[1, 2] y) { y = NonZero(x) }");
  const auto of = [](std::vector<float> numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    return Tensor::of<float>(numbers, {count});
  };
  late.session.run({{"x", of({1, 1, 0})}});
  EXPECT_TRUE(late.warnings.empty());
  late.session.run({{"x", of({1, 1, 1})}});
  EXPECT_EQ(late.warnings.size(), 1u);

  Loaded sized("g (float[n] x) => (float[2] y) { y = Relu(x) }");
  sized.session.run({{"x", zeros({2})}});
  EXPECT_TRUE(sized.warnings.empty());
  sized.session.run({{"x", zeros({3})}});
  EXPECT_EQ(sized.warnings.size(), 1u);
}

TEST(DeclaredShapes, WarnsOnceForEachOutputOfASession) {
  Loaded loaded(
      "g (float[n] x) => (float[7] y, float[n] z, float[8] w) "
      "{ y = Relu(x) z = Neg(x) w = Abs(x) }");
  for (const int64_t n : {2, 3}) loaded.session.run({{"x", zeros({n})}});
  EXPECT_EQ(loaded.warnings.size(), 2u);
  const Session other(loaded.model, {.threads = 1});
  other.run({{"x", zeros({2})}});
  EXPECT_EQ(loaded.warnings.size(), 4u);
}

}  // namespace
}  // namespace sardonyx
