// Values that a model's declarations do not promise: planned and plain say the same.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

// Both runs end with an Error of the same code and message.
std::string refusal(const std::string& text, const std::vector<NamedValue>& inputs) {
  std::vector<std::string> said;
  for (const bool plain : {false, true}) {
    SCOPED_TRACE(plain ? "plain" : "planned");
    try {
      (void)Session(Model::from_text(text), {.reference = plain}).run(inputs);
      ADD_FAILURE() << "it ran";
      said.emplace_back();
    } catch (const Error& error) {
      said.push_back(std::to_string(static_cast<int>(error.code())) + " " + error.message());
    }
  }
  EXPECT_EQ(said[0], said[1]);
  return said[1];
}

constexpr const char* head = "<ir_version: 10, opset_import: [\"\" : 21]>\n";

TEST(HostileValues, AnOptionalWithoutElementWhereATensorIsExpected) {
  const std::string text =
      std::string(head) + "g (float[4] x, optional(int64[]) o) => (y) { y = CumSum(x, o) }";
  const Tensor x(ElementType::float32, {4});
  EXPECT_NE(refusal(text, {{"x", x}, {"o", Optional()}}).find("must be tensor(int32)"),
            std::string::npos);
  EXPECT_NE(refusal(text, {{"x", x}}).find("must be tensor(int32)"), std::string::npos);
}

TEST(HostileValues, AnOptionalThatIsNotGivenHasNoElement) {
  const std::string has =
      std::string(head) + "g (optional(float[4]) o) => (bool y) { y = OptionalHasElement(o) }";
  for (const bool plain : {false, true}) {
    const auto made = Session(Model::from_text(has), {.reference = plain}).run({});
    EXPECT_FALSE(made[0].tensor().elements<bool>()[0]);
  }
  const std::string get =
      std::string(head) + "g (optional(float[4]) o) => (float[4] y) { y = OptionalGetElement(o) }";
  EXPECT_NE(refusal(get, {}).find("the optional is empty"), std::string::npos);
}

TEST(HostileValues, AnEmptySequenceAsAPosition) {
  const std::string text =
      std::string(head) +
      "g (seq(float[2]) s, float[2] x, seq(int64[]) p) => (y) { y = SequenceInsert(s, x, p) }";
  EXPECT_NE(
      refusal(text,
              {{"s", Sequence()}, {"x", Tensor(ElementType::float32, {2})}, {"p", Sequence()}})
          .find("must be tensor(int32)"),
      std::string::npos);
}

TEST(HostileValues, WhatAContainerHoldsIsOfItsType) {
  const Tensor floats(ElementType::float32, {2}), integers(ElementType::int64, {2});
  const auto sequence = [](std::vector<Value> items) {
    Sequence made;
    made.items = std::move(items);
    return made;
  };
  const std::string insert = std::string(head) +
                             "g (seq(float[2]) s, float[2] x) => (seq(float[2]) y)"
                             " { y = SequenceInsert(s, x) }";
  const auto says = [&](const std::string& text, const std::vector<NamedValue>& inputs,
                        const std::string& what) {
    const std::string said = refusal(text, inputs);
    EXPECT_EQ(said.substr(0, 1), std::to_string(static_cast<int>(ErrorCode::bad_input))) << said;
    EXPECT_NE(said.find(what), std::string::npos) << said;
  };
  says(insert, {{"s", sequence({floats, integers})}, {"x", floats}},
       "holds int64, the model takes seq(float[2])");
  says(insert, {{"s", sequence({sequence({floats})})}, {"x", floats}},
       "holds a sequence, the model takes seq(float[2])");
  // Sizes that are open have no name of the model's, and an optional is no "a optional".
  const std::string open = std::string(head) +
                           "g (seq(float[n]) s) => (seq(float[n]) y) {"
                           " y = Identity(s) }";
  says(open, {{"s", sequence({integers})}}, "holds int64, the model takes seq(float[?])");
  says(open, {{"s", Value(Optional())}}, "is an optional, the model takes seq(float[?])");
  EXPECT_EQ(Session(Model::from_text(insert))
                .run({{"s", sequence({floats})}, {"x", floats}})[0]
                .sequence()
                .items.size(),
            2U);
  Optional optional;
  optional.held = std::make_unique<Value>(integers);
  says(std::string(head) + "g (optional(float[2]) o) => (float[2] y) { y = OptionalGetElement(o) }",
       {{"o", std::move(optional)}}, "holds int64");
  Map map;
  map.keys = Tensor::of<std::string>({"a"}, {1});
  map.values.emplace_back(Tensor::scalar<float>(1));
  says(
      "<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.ml\" : 1]>\n"
      "g (map(int64, float) m) => (float[1] y)"
      " { y = ai.onnx.ml.DictVectorizer<int64_vocabulary = [1]>(m) }",
      {{"m", map}}, "has keys of string");
}

TEST(HostileValues, WhatOnlyDataDecideIsNoFaultOfTheModel) {
  const std::string text =
      std::string(head) + "g (float[2] x, int64[1] i) => (y) { y = Gather(x, i) }";
  const std::vector<int64_t> far{7};
  const std::string said = refusal(
      text, {{"x", Tensor(ElementType::float32, {2})}, {"i", Tensor::of<int64_t>(far, {1})}});
  EXPECT_EQ(said.substr(0, 1), std::to_string(static_cast<int>(ErrorCode::run_failed))) << said;
}

}  // namespace
}  // namespace sardonyx
