// What a model declares of its inputs and outputs, beside what runs are given and make.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

struct Loaded {
  Loaded(const std::string& graph, SessionOptions options = {})
      : model(Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph,
                               {.warn = [this](const Warning& w) { warnings.push_back(w); }})),
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
  const Loaded one(graph, planned), other(graph, plain);
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
