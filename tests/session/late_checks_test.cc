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
                  "1 parts");
}

TEST(LateChecks, GroupsThatNoNumberOfChannelsFits) {
  // Of no output channels, which any number of groups divides.
  expect_mentions(refusal("g (float[a, b, c] x, float[d, e, f] w) => (float[i, j, k] y) { "
                          "y = Conv <group = 9223372036854775807> (x, w) }",
                          {{"x", zeros({1, 3, 8})}, {"w", zeros({0, 3, 3})}}),
                  "group");
}

}  // namespace
}  // namespace sardonyx
