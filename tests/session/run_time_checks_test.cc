// What only a run knows of ranks, sizes and axes is checked there as strictly as inference would.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

// The message of the error that a run ends with.
std::string refusal(const std::string& graph, const std::vector<NamedValue>& inputs) {
  const Session session(Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph),
                        {.threads = 1});
  try {
    session.run(inputs);
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::internal);
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

void expect_mentions(const std::string& message, const std::string& word) {
  EXPECT_NE(message.find(word), std::string::npos) << message;
}

Tensor zeros(Shape shape) { return Tensor(ElementType::float32, std::move(shape)); }

TEST(LateChecks, OneSidedInverseTransformsTakeComplexInput) {
  expect_mentions(refusal("g (float[a, b] x) => (float[c, d] y) { "
                          "y = DFT <inverse = 1, onesided = 1> (x) }",
                          {{"x", zeros({4, 1})}}),
                  "complex input");
}

TEST(LateChecks, GroupsThatNoNumberOfChannelsFits) {
  // Of no output channels, which any number of groups divides.
  expect_mentions(refusal("g (float[a, b, c] x, float[d, e, f] w) => (float[i, j, k] y) { "
                          "y = Conv <group = 9223372036854775807> (x, w) }",
                          {{"x", zeros({1, 3, 8})}, {"w", zeros({0, 3, 3})}}),
                  "group");
}

TEST(LateChecks, HeadsDivideTheLastDimensionOfAttention) {
  const Model model = Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 23]>\n"
      "g (float[a, b, c] x) => (float[d, e, f] y) {\n"
      "  y = Attention <q_num_heads = 12, kv_num_heads = 12> (x, x, x) }");
  for (const bool plain : {false, true}) {
    const Session session(model, {.threads = 1, .reference = plain});
    EXPECT_THROW(session.run({{"x", zeros({1, 2, 3})}}), Error);
    EXPECT_NO_THROW(session.run({{"x", zeros({1, 2, 24})}}));
  }
}

// A body that flattens and shapes back keeps sizes of 0, by plan and by plain evaluation.
TEST(LateChecks, QuantizedSoftmaxOfNothing) {
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 12, \"com.microsoft\" : 1]>\n"
      "g (uint8[a, b, c] x) => (uint8[a, b, c] y)\n"
      "<float scale = {0.05}, uint8 zero = {5}, float out = {0.00390625}, uint8 none = {0}> {\n"
      "  y = com.microsoft.QLinearSoftmax <opset = 12, axis = 1> (x, scale, zero, out, none) }");
  for (const bool plain : {false, true}) {
    const Session session(model, {.threads = 1, .reference = plain});
    const auto made = session.run({{"x", Tensor(ElementType::uint8, {2, 3, 0})}});
    EXPECT_EQ(made[0].tensor().shape(), (Shape{2, 3, 0}));
  }
}

}  // namespace
}  // namespace sardonyx
